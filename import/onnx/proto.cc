// Decoding of onnx.proto messages by field number. Unknown fields are skipped.
#include "import/onnx/proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "import/onnx/wire.h"

namespace ge::onnx {

namespace {

class Decoder {
 public:
  explicit Decoder(int max_depth) : max_depth_(max_depth) {}

  Status Model(std::string_view bytes, ModelProto& m) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: m.ir_version = r.Int(); break;
        case 7:
          GE_TRY(Graph(r.Bytes(), m.graph));
          m.has_graph = true;
          break;
        case 8: GE_TRY(Opset(r.Bytes(), m.opsets.emplace_back())); break;
        case 25: GE_TRY(Function(r.Bytes(), m.functions.emplace_back())); break;
        default: r.Skip();
      }
    }
    return End(r, "model");
  }

  Status ValueInfo(std::string_view bytes, ValueInfoProto& v) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: v.name = r.Bytes(); break;
        case 2: GE_TRY(Type(r.Bytes(), v.type)); break;
        default: r.Skip();
      }
    }
    return End(r, "value");
  }

 private:
  // Counts the nesting of graphs and types.
  class Nest {
   public:
    explicit Nest(Decoder& d) : d_(d) { ++d_.depth_; }
    ~Nest() { --d_.depth_; }
    Status status() const {
      if (d_.depth_ <= d_.max_depth_) return Status();
      return Error(Code::kResourceExhausted,
                   fmt::format("nested deeper than {} levels", d_.max_depth_));
    }

   private:
    Decoder& d_;
  };

  static Status End(const WireReader& r, std::string_view what) {
    if (r.ok()) return Status();
    return Error(Code::kDataLoss,
                 fmt::format("damaged or truncated file: bad protobuf data in a {}", what));
  }

  Status Opset(std::string_view bytes, OpsetProto& o) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: o.domain = r.Bytes(); break;
        case 2: o.version = r.Int(); break;
        default: r.Skip();
      }
    }
    return End(r, "operator set");
  }

  Status Function(std::string_view bytes, FunctionProto& f) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: f.name = r.Bytes(); break;
        case 4: f.inputs.push_back(r.Bytes()); break;
        case 5: f.outputs.push_back(r.Bytes()); break;
        case 6: f.attrs.push_back(r.Bytes()); break;
        case 7: GE_TRY(Node(r.Bytes(), f.nodes.emplace_back())); break;
        case 9: GE_TRY(Opset(r.Bytes(), f.opsets.emplace_back())); break;
        case 10: f.domain = r.Bytes(); break;
        case 11: GE_TRY(Attr(r.Bytes(), f.default_attrs.emplace_back())); break;
        case 13: f.overload = r.Bytes(); break;
        default: r.Skip();
      }
    }
    return End(r, "function");
  }

  Status Graph(std::string_view bytes, GraphProto& g) {
    Nest nest(*this);
    GE_TRY(nest.status());
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: GE_TRY(Node(r.Bytes(), g.nodes.emplace_back())); break;
        case 2: g.name = r.Bytes(); break;
        case 5: GE_TRY(Tensor(r.Bytes(), g.initializers.emplace_back())); break;
        case 11: GE_TRY(ValueInfo(r.Bytes(), g.inputs.emplace_back())); break;
        case 12: GE_TRY(ValueInfo(r.Bytes(), g.outputs.emplace_back())); break;
        case 13: g.value_infos.push_back(r.Bytes()); break;
        case 15: GE_TRY(Sparse(r.Bytes(), g.sparse_initializers.emplace_back())); break;
        default: r.Skip();
      }
    }
    return End(r, "graph");
  }

  Status Node(std::string_view bytes, NodeProto& n) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: n.inputs.push_back(r.Bytes()); break;
        case 2: n.outputs.push_back(r.Bytes()); break;
        case 3: n.name = r.Bytes(); break;
        case 4: n.op_type = r.Bytes(); break;
        case 5: GE_TRY(Attr(r.Bytes(), n.attrs.emplace_back())); break;
        case 7: n.domain = r.Bytes(); break;
        case 8: n.overload = r.Bytes(); break;
        default: r.Skip();
      }
    }
    return End(r, "node");
  }

  Status Attr(std::string_view bytes, AttrProto& a) {
    WireReader r(bytes);
    AttrKind seen = AttrKind::kUndefined;  // files of old versions carry no type
    while (r.Next()) {
      switch (r.field()) {
        case 1: a.name = r.Bytes(); continue;
        case 20: a.kind = static_cast<AttrKind>(r.Uint() & 0xff); continue;
        case 21: a.ref = r.Bytes(); continue;
        case 2:
          a.f = r.Float();
          seen = AttrKind::kFloat;
          continue;
        case 3:
          a.i = r.Int();
          seen = AttrKind::kInt;
          continue;
        case 4:
          a.s = r.Bytes();
          seen = AttrKind::kString;
          continue;
        case 5:
          GE_TRY(Tensor(r.Bytes(), a.tensor));
          seen = AttrKind::kTensor;
          continue;
        case 6:
          a.graph = std::make_unique<GraphProto>();
          GE_TRY(Graph(r.Bytes(), *a.graph));
          seen = AttrKind::kGraph;
          continue;
        case 7:
          r.EachFixed<float>([&](float x) { a.floats.push_back(x); });
          seen = AttrKind::kFloats;
          continue;
        case 8:
          r.EachInt([&](int64_t x) { a.ints.push_back(x); });
          seen = AttrKind::kInts;
          continue;
        case 9:
          a.strings.push_back(r.Bytes());
          seen = AttrKind::kStrings;
          continue;
        case 14:
          a.type = std::make_unique<TypeProto>();
          GE_TRY(Type(r.Bytes(), *a.type));
          seen = AttrKind::kType;
          continue;
        case 22:
          a.sparse = std::make_unique<SparseTensorProto>();
          GE_TRY(Sparse(r.Bytes(), *a.sparse));
          seen = AttrKind::kSparse;
          continue;
        default: r.Skip();
      }
    }
    if (a.kind == AttrKind::kUndefined) a.kind = seen;
    return End(r, "attribute");
  }

  // Only the name; the rest is decoded where it is needed.
  Status Tensor(std::string_view bytes, TensorProto& t) {
    t.body = bytes;
    WireReader r(bytes);
    while (r.Next()) {
      if (r.field() == 8) {
        t.name = r.Bytes();
      } else {
        r.Skip();
      }
    }
    return End(r, "tensor");
  }

  Status Sparse(std::string_view bytes, SparseTensorProto& s) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: GE_TRY(Tensor(r.Bytes(), s.values)); break;
        case 2: GE_TRY(Tensor(r.Bytes(), s.indices)); break;
        case 3: r.EachInt([&](int64_t d) { s.dims.push_back(d); }); break;
        default: r.Skip();
      }
    }
    return End(r, "sparse tensor");
  }

  Status Type(std::string_view bytes, TypeProto& t) {
    Nest nest(*this);
    GE_TRY(nest.status());
    using Kind = TypeProto::Kind;
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1:
          t.kind = Kind::kTensor;
          GE_TRY(TensorTypeBody(r.Bytes(), t));
          break;
        case 4:
          t.kind = Kind::kSequence;
          GE_TRY(ElementType(r.Bytes(), t));
          break;
        case 9:
          t.kind = Kind::kOptional;
          GE_TRY(ElementType(r.Bytes(), t));
          break;
        case 5:
          t.kind = Kind::kMap;
          r.Skip();
          break;
        case 8:
          t.kind = Kind::kSparse;
          r.Skip();
          break;
        case 7:
          t.kind = Kind::kOpaque;
          r.Skip();
          break;
        default: r.Skip();
      }
    }
    return End(r, "type");
  }

  Status ElementType(std::string_view bytes, TypeProto& t) {
    WireReader r(bytes);
    t.element = std::make_unique<TypeProto>();
    while (r.Next()) {
      if (r.field() == 1) {
        GE_TRY(Type(r.Bytes(), *t.element));
      } else {
        r.Skip();
      }
    }
    return End(r, "type");
  }

  Status TensorTypeBody(std::string_view bytes, TypeProto& t) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: t.elem_type = r.Int(); break;
        case 2:
          t.has_shape = true;
          GE_TRY(Shape(r.Bytes(), t));
          break;
        default: r.Skip();
      }
    }
    return End(r, "tensor type");
  }

  Status Shape(std::string_view bytes, TypeProto& t) {
    WireReader r(bytes);
    while (r.Next()) {
      if (r.field() == 1) {
        GE_TRY(Dim(r.Bytes(), t.dims.emplace_back()));
      } else {
        r.Skip();
      }
    }
    return End(r, "shape");
  }

  Status Dim(std::string_view bytes, DimProto& d) {
    WireReader r(bytes);
    while (r.Next()) {
      switch (r.field()) {
        case 1: d.value = r.Int(); break;
        case 2: d.param = r.Bytes(); break;
        default: r.Skip();
      }
    }
    // So exporters spell a dim without a name: two of them need not be equal.
    const bool named = std::any_of(d.param.begin(), d.param.end(), [](char c) {
      const auto u = static_cast<unsigned char>(c);
      return std::isalnum(u) || u >= 0x80;
    });
    if (!named || d.param == "None") d.param = {};
    return End(r, "dim");
  }

  int max_depth_;
  int depth_ = 0;
};

}  // namespace

Result<ModelProto> ReadModel(std::string_view bytes, int max_depth) {
  ModelProto model;
  GE_TRY(Decoder(max_depth).Model(bytes, model));
  if (!model.has_graph) return Error(Code::kDataLoss, "not an ONNX model: the file holds no graph");
  return model;
}

Result<ValueInfoProto> ReadValueInfo(std::string_view bytes) {
  ValueInfoProto v;
  GE_TRY(Decoder(/*max_depth=*/16).ValueInfo(bytes, v));
  return v;
}

}  // namespace ge::onnx

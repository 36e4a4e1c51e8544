// Text form of tensor types.
#include "type/tensor_type.h"

namespace ge {

bool TensorType::IsStatic() const {
  for (Expr d : dims) {
    if (!d.IsConst()) return false;
  }
  return true;
}

std::string ToString(const TensorType& type) {
  std::string out(Name(type.dtype));
  out += "[";
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (i) out += ",";
    out += ToString(type.dims[i]);
  }
  out += "]";
  if (!type.layout.IsNd()) out += "{" + ToString(type.layout) + "}";
  return out;
}

Result<TensorType> ParseTensorType(TextReader& reader, ExprArena& arena) {
  TensorType t;
  const std::optional<DType> dtype =
      reader.Peek().kind == TokenKind::kName ? ParseDType(reader.Peek().text) : std::nullopt;
  if (!dtype) return reader.Fault("expected an element type");
  t.dtype = *dtype;
  reader.Next();
  GE_TRY(reader.Expect("["));
  if (!reader.Is("]")) {
    do {
      GE_ASSIGN(Expr d, ParseExpr(reader, arena));
      t.dims.push_back(d);
    } while (reader.Accept(","));
  }
  GE_TRY(reader.Expect("]"));
  if (reader.Accept("{")) {
    GE_ASSIGN(t.layout, ParseLayout(reader));
    GE_TRY(reader.Expect("}"));
    std::vector<bool> covered(t.dims.size(), t.layout.IsNd());
    for (const LayoutDim& d : t.layout.dims) {
      if (d.axis >= t.rank()) return reader.Fault("the layout names an axis beyond the rank");
      covered[d.axis] = true;
    }
    for (bool c : covered) {
      if (!c) return reader.Fault("the layout leaves out an axis");
    }
  }
  return t;
}

Result<TensorType> ParseTensorType(std::string_view text, ExprArena& arena) {
  TextReader reader(text);
  GE_ASSIGN(TensorType t, ParseTensorType(reader, arena));
  GE_TRY(reader.ExpectEnd());
  return t;
}

}  // namespace ge

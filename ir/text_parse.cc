// Text to Graph. What the text leaves out is inferred: types of a node's outputs may be missing
// (all of a node's, or none), then Infer gives them.
#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "base/text.h"
#include "ir/opdef.h"
#include "ir/text.h"

namespace ge {

namespace {

using AttrMap = std::map<std::string, Attr, std::less<>>;

constexpr int64_t kMaxConstantElements = int64_t{1} << 40;

class Parser {
 public:
  Parser(std::string_view text, std::shared_ptr<Model> model)
      : reader_(text), model_(std::move(model)) {}

  Result<std::unique_ptr<Graph>> ParseFile() {
    while (reader_.Is("symbol")) GE_TRY(ParseSymbol());
    while (reader_.Is("check")) GE_TRY(ParseCheck());
    GE_ASSIGN(auto g, ParseGraph());
    GE_TRY(reader_.ExpectEnd());
    return g;
  }

  Result<AttrMap> ParseAttrsOnly() {
    AttrMap attrs;
    if (!reader_.AtEnd()) GE_TRY(ParseAttrMap(attrs));
    GE_TRY(reader_.ExpectEnd());
    return attrs;
  }

 private:
  struct Scope {
    Graph* graph;
    std::unordered_map<std::string, ValueId> names;
  };

  ExprArena& arena() { return model_->arena; }
  Graph& graph() { return *scopes_.back().graph; }
  Status Fault(const std::string& message) { return reader_.Fault(message); }

  Status ParseSymbol() {
    GE_TRY(reader_.Expect("symbol"));
    GE_ASSIGN(std::string name, reader_.Name());
    SymbolFacts facts;
    while (!reader_.AtEnd() && !reader_.Is("symbol") && !reader_.Is("check") &&
           !reader_.Is("graph")) {
      GE_ASSIGN(std::string field, reader_.Name());
      GE_TRY(reader_.Expect("="));
      GE_ASSIGN(int64_t value, reader_.Int());
      if (field == "lo") {
        facts.lo = value;
      } else if (field == "hi") {
        facts.hi = value;
      } else if (field == "multiple") {
        if (value < 1) return Fault("multiple must be at least 1");
        facts.multiple_of = value;
      } else if (field == "hint") {
        facts.hint = value;
      } else {
        return Fault("symbols have lo, hi, multiple and hint, not " + field);
      }
    }
    arena().Symbol(name, facts);
    return Status();
  }

  Status ParseCheck() {
    GE_TRY(reader_.Expect("check"));
    GE_ASSIGN(Expr condition, ParseExprUntil(":", ":"));
    GE_TRY(reader_.Expect(":"));
    GE_ASSIGN(std::string message, reader_.Quoted());
    model_->checks.push_back({condition, std::move(message)});
    return Status();
  }

  // An Expr that ends before `a` or `b` outside of parentheses.
  Result<Expr> ParseExprUntil(std::string_view a, std::string_view b) {
    const size_t begin = reader_.position();
    for (int depth = 0; !reader_.AtEnd(); reader_.Next()) {
      if (depth == 0 && (reader_.Is(a) || reader_.Is(b))) break;
      if (reader_.Is("(")) ++depth;
      if (reader_.Is(")")) --depth;
    }
    const std::string_view text = reader_.text().substr(begin, reader_.position() - begin);
    Result<Expr> e = ParseExpr(text, arena());
    if (!e.ok()) return Fault(e.status().message());
    return e;
  }

  Result<std::vector<Expr>> ParseExprList() {
    std::vector<Expr> list;
    GE_TRY(reader_.Expect("["));
    while (!reader_.Accept("]")) {
      GE_ASSIGN(Expr e, ParseExprUntil(",", "]"));
      list.push_back(e);
      if (!reader_.Accept(",") && !reader_.Is("]")) return Fault("',' or ']' expected");
    }
    return list;
  }

  // f32[a,b]{layout}: the brace belongs to the type only if nothing stands before it.
  Result<TensorType> ParseType() {
    const size_t begin = reader_.position();
    reader_.Next();
    size_t end = reader_.position();
    if (reader_.Is("[")) {
      end = SkipTo("]");
      if (reader_.Is("{") && reader_.position() == end) end = SkipTo("}");
    }
    Result<TensorType> type = ParseTensorType(reader_.text().substr(begin, end - begin), arena());
    if (!type.ok()) return Fault(type.status().message());
    return type;
  }

  // Moves past the next `close`; the position after it.
  size_t SkipTo(std::string_view close) {
    while (!reader_.AtEnd() && !reader_.Is(close)) reader_.Next();
    const size_t end = reader_.position() + (reader_.AtEnd() ? 0 : 1);
    reader_.Next();
    return end;
  }

  Status ParseValueType(Value& v) {
    if (reader_.Accept("opaque")) {
      v.kind = ValueKind::kOpaque;
    } else {
      if (reader_.Accept("seq")) v.kind = ValueKind::kSequence;
      if (reader_.Accept("opt")) v.kind = ValueKind::kOptional;
      GE_ASSIGN(v.type, ParseType());
    }
    if (reader_.Accept("halo")) {
      GE_TRY(reader_.Expect("["));
      while (!reader_.Accept("]")) {
        Halo h;
        GE_ASSIGN(int64_t axis, reader_.Int());
        GE_TRY(reader_.Expect(":"));
        GE_ASSIGN(h.lo, reader_.Int());
        GE_TRY(reader_.Expect(":"));
        GE_ASSIGN(h.hi, reader_.Int());
        h.axis = static_cast<int>(axis);
        if (reader_.Accept("fill")) {
          GE_ASSIGN(h.fill, reader_.Int());
        }
        v.halo.push_back(h);
        if (!reader_.Accept(",") && !reader_.Is("]")) return Fault("',' or ']' expected");
      }
    }
    if (reader_.Accept("elems")) {
      GE_ASSIGN(std::vector<Expr> elems, ParseExprList());
      v.elems = std::move(elems);
    }
    return Status();
  }

  template <class T>
  Status ParseNumbers(std::vector<std::byte>& out) {
    while (!reader_.Is("}")) {
      T x;
      if constexpr (std::is_floating_point_v<T>) {
        GE_ASSIGN(double d, reader_.Float());
        x = static_cast<T>(d);
      } else if constexpr (std::is_same_v<T, uint64_t>) {
        GE_ASSIGN(x, reader_.Unsigned());
      } else {
        GE_ASSIGN(int64_t i, reader_.Int());
        if (static_cast<int64_t>(static_cast<T>(i)) != i) return Fault("number out of range");
        x = static_cast<T>(i);
      }
      const auto* bytes = reinterpret_cast<const std::byte*>(&x);
      out.insert(out.end(), bytes, bytes + sizeof(T));
      if (!reader_.Accept(",") && !reader_.Is("}")) return Fault("',' or '}' expected");
    }
    return Status();
  }

  Status ParseDecimal(DType t, std::vector<std::byte>& out) {
    switch (t) {
      case DType::kF32: return ParseNumbers<float>(out);
      case DType::kF64: return ParseNumbers<double>(out);
      case DType::kI64: return ParseNumbers<int64_t>(out);
      case DType::kI32: return ParseNumbers<int32_t>(out);
      case DType::kI16: return ParseNumbers<int16_t>(out);
      case DType::kI8: return ParseNumbers<int8_t>(out);
      case DType::kU64: return ParseNumbers<uint64_t>(out);
      case DType::kU32: return ParseNumbers<uint32_t>(out);
      case DType::kU16: return ParseNumbers<uint16_t>(out);
      case DType::kU8:
      case DType::kBool: return ParseNumbers<uint8_t>(out);
      default: return Fault(fmt::format("constants of {} are written in hex", Name(t)));
    }
  }

  static int Digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }

  Status ParseHex(std::vector<std::byte>& out) {
    GE_ASSIGN(std::string text, reader_.Quoted());
    if (text.size() % 2 != 0) return Fault("odd number of hex digits");
    out.reserve(text.size() / 2);
    for (size_t i = 0; i < text.size(); i += 2) {
      const int hi = Digit(text[i]), lo = Digit(text[i + 1]);
      if (hi < 0 || lo < 0) return Fault("hex digits expected");
      out.push_back(static_cast<std::byte>(hi * 16 + lo));
    }
    return Status();
  }

  // After the word `const`.
  Result<Constant> ParseConstant() {
    GE_ASSIGN(TensorType type, ParseType());
    Constant c;
    c.dtype = type.dtype;
    int64_t count = 1;
    for (const Expr& d : type.dims) {
      if (!d.IsConst() || d.value() < 0) return Fault("dims of a constant are numbers");
      if (d.value() > 0 && count > kMaxConstantElements / d.value())
        return Fault("constant too large");
      count *= d.value();
      c.dims.push_back(d.value());
    }
    if (c.dtype == DType::kString) {
      GE_TRY(reader_.Expect("{"));
      while (!reader_.Accept("}")) {
        GE_ASSIGN(std::string s, reader_.Quoted());
        c.strings.push_back(std::move(s));
        if (!reader_.Accept(",") && !reader_.Is("}")) return Fault("',' or '}' expected");
      }
      if (static_cast<int64_t>(c.strings.size()) != count)
        return Fault(fmt::format("{} strings given for {}", c.strings.size(), ToString(type)));
      return c;
    }
    auto bytes = std::make_shared<std::vector<std::byte>>();
    if (reader_.Accept("hex")) {
      GE_TRY(ParseHex(*bytes));
    } else if (reader_.Is("hash")) {
      return Fault("this text was printed without its large constants and cannot be read");
    } else {
      GE_TRY(reader_.Expect("{"));
      GE_TRY(ParseDecimal(c.dtype, *bytes));
      GE_TRY(reader_.Expect("}"));
    }
    if (static_cast<int64_t>(bytes->size()) != BytesFor(c.dtype, count))
      return Fault(fmt::format("{} bytes given for {}, {} needed", bytes->size(), ToString(type),
                               BytesFor(c.dtype, count)));
    c.bytes = *bytes;
    c.keep = std::move(bytes);
    return c;
  }

  Status ParseAttrList(Attr& out) {
    GE_TRY(reader_.Expect("["));
    if (reader_.Peek().kind == TokenKind::kQuoted) {
      std::vector<std::string> list;
      while (!reader_.Accept("]")) {
        GE_ASSIGN(std::string s, reader_.Quoted());
        list.push_back(std::move(s));
        if (!reader_.Accept(",") && !reader_.Is("]")) return Fault("',' or ']' expected");
      }
      out = std::move(list);
      return Status();
    }
    std::vector<int64_t> ints;
    std::vector<float> floats;
    while (!reader_.Accept("]")) {
      Attr item;
      GE_TRY(ParseNumber(item));
      if (auto* i = std::get_if<int64_t>(&item)) ints.push_back(*i);
      if (auto* f = std::get_if<float>(&item)) floats.push_back(*f);
      if (!reader_.Accept(",") && !reader_.Is("]")) return Fault("',' or ']' expected");
    }
    if (!ints.empty() && !floats.empty()) return Fault("list of both integers and floats");
    if (floats.empty()) {
      out = std::move(ints);
    } else {
      out = std::move(floats);
    }
    return Status();
  }

  Status ParseNumber(Attr& out) {
    const size_t begin = reader_.position();
    const bool negative = reader_.Accept("-");
    const TokenKind kind = reader_.Peek().kind;
    if (negative) reader_.Seek(begin);
    if (kind == TokenKind::kInt) {
      GE_ASSIGN(int64_t i, reader_.Int());
      out = i;
    } else {
      GE_ASSIGN(double d, reader_.Float());
      out = static_cast<float>(d);
    }
    return Status();
  }

  Status ParseAttr(Attr& out) {
    if (reader_.Peek().kind == TokenKind::kQuoted) {
      GE_ASSIGN(out, reader_.Quoted());
      return Status();
    }
    if (reader_.Is("[")) return ParseAttrList(out);
    const bool ints = reader_.Accept("ints"), floats = reader_.Accept("floats"),
               strings = reader_.Accept("strings");
    if (ints || floats || strings) {
      if (ints) out = std::vector<int64_t>();
      if (floats) out = std::vector<float>();
      if (strings) out = std::vector<std::string>();
      GE_TRY(reader_.Expect("["));
      return reader_.Expect("]");
    }
    if (reader_.Accept("const")) {
      GE_ASSIGN(Constant c, ParseConstant());
      out = std::make_shared<const Constant>(std::move(c));
      return Status();
    }
    return ParseNumber(out);
  }

  Status ParseAttrMap(AttrMap& attrs) {
    GE_TRY(reader_.Expect("{"));
    while (!reader_.Accept("}")) {
      GE_ASSIGN(std::string name, reader_.Name());
      GE_TRY(reader_.Expect("="));
      Attr attr;
      GE_TRY(ParseAttr(attr));
      if (!attrs.emplace(name, std::move(attr)).second) return Fault("attribute given twice");
      if (!reader_.Accept(",") && !reader_.Is("}")) return Fault("',' or '}' expected");
    }
    return Status();
  }

  Result<std::string> ParseValueName() {
    GE_TRY(reader_.Expect("%"));
    return reader_.Name();
  }

  Result<ValueId> ParseRef() {
    if (reader_.Accept("_")) return kNone;
    GE_ASSIGN(std::string name, ParseValueName());
    auto it = scopes_.back().names.find(name);
    if (it == scopes_.back().names.end()) return Fault("value %" + name + " is not defined before");
    return it->second;
  }

  Status Define(const std::string& name, ValueId v) {
    if (!scopes_.back().names.emplace(name, v).second)
      return Fault("value %" + name + " is defined twice");
    return Status();
  }

  Result<std::unique_ptr<Graph>> ParseGraph() {
    TextReader::Nest nest(reader_);
    GE_TRY(nest.status());
    GE_TRY(reader_.Expect("graph"));
    auto g = std::make_unique<Graph>();
    g->model = model_;
    scopes_.push_back({g.get(), {}});
    if (reader_.AtName()) {
      GE_ASSIGN(g->name, reader_.Name());
    }
    GE_TRY(reader_.Expect("("));
    while (!reader_.Accept(")")) {
      GE_ASSIGN(std::string name, ParseValueName());
      GE_TRY(reader_.Expect(":"));
      const ValueId v = g->AddInput(name, {});
      GE_TRY(ParseValueType(g->value(v)));
      GE_TRY(Define(name, v));
      if (!reader_.Accept(",") && !reader_.Is(")")) return Fault("',' or ')' expected");
    }
    // The outputs are defined later: read them at the end.
    GE_TRY(reader_.Expect("->"));
    GE_TRY(reader_.Expect("("));
    const size_t outputs = reader_.position();
    while (!reader_.AtEnd() && !reader_.Is("{")) reader_.Next();
    GE_TRY(reader_.Expect("{"));
    while (!reader_.Is("}")) GE_TRY(ParseStatement());
    const size_t end = reader_.position();
    reader_.Seek(outputs);
    while (!reader_.Accept(")")) {
      GE_ASSIGN(ValueId v, ParseRef());
      if (v == kNone) return Fault("a graph output cannot be absent");
      g->outputs.push_back(v);
      if (!reader_.Accept(",") && !reader_.Is(")")) return Fault("',' or ')' expected");
    }
    GE_TRY(reader_.Expect("{"));
    reader_.Seek(end);
    GE_TRY(reader_.Expect("}"));
    scopes_.pop_back();
    return g;
  }

  struct Named {  // one result of a statement, before its producer is known
    std::string name;
    Value value;
    bool wanted = false, typed = false;
  };

  Status ParseStatement() {
    std::vector<Named> results;
    while (!reader_.Accept("=")) {
      Named r;
      if (!reader_.Accept("_")) {
        r.wanted = true;
        GE_ASSIGN(r.name, ParseValueName());
        if (reader_.Accept(":")) {
          r.typed = true;
          GE_TRY(ParseValueType(r.value));
        }
      }
      results.push_back(std::move(r));
      if (!reader_.Accept(",") && !reader_.Is("=")) return Fault("',' or '=' expected");
    }
    if (reader_.Accept("const")) {
      if (results.size() != 1 || !results[0].wanted) return Fault("a constant has one name");
      GE_ASSIGN(Constant c, ParseConstant());
      return Define(results[0].name, graph().AddConstant(results[0].name, std::move(c)));
    }
    return ParseNode(results);
  }

  Result<const OpDef*> ParseOp() {
    GE_ASSIGN(std::string name, reader_.Name());
    const size_t dot = name.rfind('.');
    const OpDef* op = dot == std::string::npos ? FindOp("", name)
                                               : FindOp(name.substr(0, dot), name.substr(dot + 1));
    if (op == nullptr) return Fault("unknown operator " + name);
    return op;
  }

  Status ParseNode(std::vector<Named>& results) {
    GE_ASSIGN(const OpDef* op, ParseOp());
    Node n;
    n.op = op;
    GE_TRY(reader_.Expect("("));
    while (!reader_.Accept(")")) {
      GE_ASSIGN(ValueId v, ParseRef());
      n.inputs.push_back(v);
      if (!reader_.Accept(",") && !reader_.Is(")")) return Fault("',' or ')' expected");
    }
    if (reader_.Is("{")) GE_TRY(ParseAttrMap(n.attrs));
    n.name = results.empty() ? op->name : results[0].name;
    if (reader_.Accept("@")) {
      GE_ASSIGN(n.name, reader_.Quoted());
    }
    n.origin = {n.name};
    if (reader_.Accept("from")) GE_TRY(ParseOrigin(n.origin));
    if (reader_.Accept("fresh")) {
      GE_ASSIGN(n.fresh, ParseExprList());
    }
    while (reader_.Is("graph")) {
      GE_ASSIGN(auto sub, ParseGraph());
      n.subgraphs.push_back(std::move(sub));
    }
    return AddNode(std::move(n), results);
  }

  Status ParseOrigin(std::vector<std::string>& origin) {
    origin.clear();
    GE_TRY(reader_.Expect("["));
    while (!reader_.Accept("]")) {
      GE_ASSIGN(std::string name, reader_.Quoted());
      origin.push_back(std::move(name));
      if (!reader_.Accept(",") && !reader_.Is("]")) return Fault("',' or ']' expected");
    }
    return Status();
  }

  Status AddNode(Node n, std::vector<Named>& results) {
    Graph& g = graph();
    const NodeId id = static_cast<NodeId>(g.nodes.size());
    bool infer = false;
    for (Named& r : results) {
      if (!r.wanted) {
        n.outputs.push_back(kNone);
        continue;
      }
      infer |= !r.typed;
      const ValueId v = g.AddValue(r.name, {});
      r.value.name = r.name;
      r.value.producer = id;
      g.values[v] = std::move(r.value);
      GE_TRY(Define(r.name, v));
      n.outputs.push_back(v);
    }
    g.nodes.push_back(std::move(n));
    g.order.push_back(id);
    if (!infer) return Status();
    if (Status s = Infer(g, g.node(id)); !s.ok())
      return Fault(
          fmt::format("node '{}' ({}): {}", g.node(id).name, g.node(id).op->name, s.message()));
    return Status();
  }

  TextReader reader_;
  std::shared_ptr<Model> model_;
  std::vector<Scope> scopes_;
};

}  // namespace

Result<std::unique_ptr<Graph>> ParseGraph(std::string_view text) {
  return Parser(text, std::make_shared<Model>()).ParseFile();
}

Result<AttrMap> ParseAttrs(std::string_view text) {
  return Parser(text, std::make_shared<Model>()).ParseAttrsOnly();
}

}  // namespace ge

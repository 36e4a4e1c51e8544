// Graph to text. Values are named; names that clash inside a graph get a suffix. Only what is used
// is printed: dead nodes, orphan values and unused constants are not.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "ir/opdef.h"
#include "ir/text.h"

namespace ge {

namespace {

constexpr int64_t kMaxInlineElements = 64;

std::string Hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += kDigits[static_cast<int>(b) >> 4];
    out += kDigits[static_cast<int>(b) & 15];
  }
  return out;
}

// Never reads back as an integer, always as this float.
std::string Float32Text(float x) {
  std::string text = fmt::format("{}", x);
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
  if (static_cast<float>(std::strtod(text.c_str(), nullptr)) != x) text = FloatText(x);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// Elements in decimal, or false if they would not come back bit for bit.
template <class T>
bool AppendElements(const Constant& c, std::string& out) {
  const int64_t count = c.Elements();
  for (int64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, c.bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x)) return false;
    }
    if (i > 0) out += ", ";
    if constexpr (sizeof(T) == 1) {
      out += fmt::format("{}", static_cast<int>(x));
    } else if constexpr (std::is_same_v<T, float>) {
      out += Float32Text(x);
    } else if constexpr (std::is_same_v<T, double>) {
      out += FloatText(x);
    } else {
      out += fmt::format("{}", x);
    }
  }
  return true;
}

bool AppendDecimal(const Constant& c, std::string& out) {
  switch (c.dtype) {
    case DType::kF32: return AppendElements<float>(c, out);
    case DType::kF64: return AppendElements<double>(c, out);
    case DType::kI64: return AppendElements<int64_t>(c, out);
    case DType::kI32: return AppendElements<int32_t>(c, out);
    case DType::kI16: return AppendElements<int16_t>(c, out);
    case DType::kI8: return AppendElements<int8_t>(c, out);
    case DType::kU64: return AppendElements<uint64_t>(c, out);
    case DType::kU32: return AppendElements<uint32_t>(c, out);
    case DType::kU16: return AppendElements<uint16_t>(c, out);
    case DType::kU8:
    case DType::kBool: return AppendElements<uint8_t>(c, out);
    default: return false;
  }
}

std::string ConstantText(const Constant& c, int64_t max_bytes) {
  TensorType type;
  type.dtype = c.dtype;
  for (int64_t d : c.dims) type.dims.push_back(Expr(d));
  std::string out = "const " + ToString(type) + " ";
  if (c.dtype == DType::kString) {
    out += "{";
    for (size_t i = 0; i < c.strings.size(); ++i) out += (i ? ", " : "") + Quote(c.strings[i]);
    return out + "}";
  }
  if (c.Elements() <= kMaxInlineElements) {
    std::string elements;
    if (AppendDecimal(c, elements)) return out + "{" + elements + "}";
  }
  if (static_cast<int64_t>(c.bytes.size()) > max_bytes)
    return out + fmt::format("hash \"{:016x}\"", Hash64(c.bytes.data(), c.bytes.size()));
  return out + "hex \"" + Hex(c.bytes) + "\"";
}

template <class T, class F>
std::string List(const std::vector<T>& items, std::string_view if_empty, F text) {
  if (items.empty()) return std::string(if_empty);
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
  return out + "]";
}

struct AttrText {
  int64_t max_bytes;
  std::string operator()(int64_t x) const { return std::to_string(x); }
  std::string operator()(float x) const { return Float32Text(x); }
  std::string operator()(const std::string& x) const { return Quote(x); }
  std::string operator()(const std::vector<int64_t>& x) const {
    return List(x, "ints[]", [](int64_t i) { return std::to_string(i); });
  }
  std::string operator()(const std::vector<float>& x) const {
    return List(x, "floats[]", Float32Text);
  }
  std::string operator()(const std::vector<std::string>& x) const {
    return List(x, "strings[]", [](const std::string& s) { return Quote(s); });
  }
  std::string operator()(const std::shared_ptr<const Constant>& x) const {
    return ConstantText(*x, max_bytes);
  }
};

std::string AttrsText(const std::map<std::string, Attr, std::less<>>& attrs, int64_t max_bytes) {
  if (attrs.empty()) return "";
  std::string out = "{";
  for (const auto& [name, attr] : attrs)
    out += (out.size() > 1 ? ", " : "") + QuoteName(name) + "=" +
           std::visit(AttrText{max_bytes}, attr);
  return out + "}";
}

std::string StringList(std::string_view keyword, const std::vector<std::string>& items) {
  std::string out(keyword);
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + Quote(items[i]);
  return out + ']';
}

std::string TypeText(const Value& v) {
  std::string out;
  const std::string type = ToString(v.type);
  switch (v.kind) {
    case ValueKind::kTensor: out = type; break;
    case ValueKind::kSequence: out = "seq " + type; break;
    case ValueKind::kOptional: out = "opt " + type; break;
    case ValueKind::kOpaque: out = "opaque"; break;
  }
  if (!v.halo.empty()) {
    out += " halo[";
    for (size_t i = 0; i < v.halo.size(); ++i)
      out += fmt::format("{}{}:{}:{}", i ? ", " : "", v.halo[i].axis, v.halo[i].lo, v.halo[i].hi) +
             (v.halo[i].fill ? fmt::format(" fill {}", v.halo[i].fill) : "");
    out += "]";
  }
  if (v.elems) {
    out += " elems[";
    for (size_t i = 0; i < v.elems->size(); ++i) out += (i ? ", " : "") + ToString((*v.elems)[i]);
    out += "]";
  }
  return out;
}

class Printer {
 public:
  explicit Printer(int64_t max_bytes) : max_bytes_(max_bytes) {}

  std::string Print(const Graph& g) {
    for (const auto& check : g.model->checks) {
      CollectSymbols(check.condition, symbols_);
      checks_ += fmt::format("check {}: {}\n", ToString(check.condition), Quote(check.message));
    }
    PrintGraph(g, 0);
    return SymbolText() + checks_ + out_;
  }

 private:
  std::string SymbolText() {
    std::sort(symbols_.begin(), symbols_.end(),
              [](Expr a, Expr b) { return a.node()->name < b.node()->name; });
    std::string out;
    for (Expr s : symbols_) {
      const SymbolFacts& f = s.node()->facts;
      out += "symbol " + QuoteName(s.node()->name);
      if (f.lo != 0) out += fmt::format(" lo={}", f.lo);
      if (f.hi != INT64_MAX) out += fmt::format(" hi={}", f.hi);
      if (f.multiple_of != 1) out += fmt::format(" multiple={}", f.multiple_of);
      if (f.hint != 0) out += fmt::format(" hint={}", f.hint);
      out += "\n";
    }
    return out;
  }

  void NameValue(const Graph& g, ValueId v) {
    auto& names = scopes_.back().names;
    if (v == kNone || names.contains(v)) return;
    std::string name = g.value(v).name.empty() ? "v" : g.value(v).name;
    if (!scopes_.back().taken.insert(name).second) {
      int64_t k = 1;
      while (!scopes_.back().taken.insert(name + "." + std::to_string(k)).second) ++k;
      name += "." + std::to_string(k);
    }
    names.emplace(v, "%" + QuoteName(name));
  }

  std::string Ref(ValueId v) const { return v == kNone ? "_" : scopes_.back().names.at(v); }

  std::string Typed(const Graph& g, ValueId v) {
    if (v == kNone) return "_";
    for (Expr d : g.value(v).type.dims) Note(d);
    if (g.value(v).elems)
      for (Expr e : *g.value(v).elems) Note(e);
    return Ref(v) + ": " + TypeText(g.value(v));
  }

  void Note(Expr e) {
    if (e.IsConst()) return;
    std::vector<Expr> found;
    CollectSymbols(e, found);
    for (Expr s : found)
      if (seen_.insert(s.node()).second &&
          std::find(symbols_.begin(), symbols_.end(), s) == symbols_.end())
        symbols_.push_back(s);
  }

  void PrintGraph(const Graph& g, int indent) {
    scopes_.emplace_back();
    const std::string pad(indent, ' ');
    std::set<ValueId> constants;
    auto use = [&](ValueId v) {
      NameValue(g, v);
      if (g.IsConstant(v)) constants.insert(v);
    };
    for (ValueId v : g.inputs) NameValue(g, v);
    for (NodeId id : g.order) {
      for (ValueId v : g.node(id).inputs) use(v);
      for (ValueId v : g.node(id).outputs) NameValue(g, v);
    }
    for (ValueId v : g.outputs) use(v);

    out_ += pad + "graph " + Quote(g.name) + " (";
    for (size_t i = 0; i < g.inputs.size(); ++i) out_ += (i ? ", " : "") + Typed(g, g.inputs[i]);
    out_ += ") -> (";
    for (size_t i = 0; i < g.outputs.size(); ++i) out_ += (i ? ", " : "") + Ref(g.outputs[i]);
    out_ += ") {\n";
    for (ValueId v : constants)
      out_ += pad + "  " + Ref(v) + " = " + ConstantText(*g.ConstantOf(v), max_bytes_) + "\n";
    for (NodeId id : g.order) PrintNode(g, g.node(id), indent + 2);
    out_ += pad + "}\n";
    scopes_.pop_back();
  }

  void PrintNode(const Graph& g, const Node& n, int indent) {
    out_ += std::string(indent, ' ');
    for (size_t o = 0; o < n.outputs.size(); ++o) out_ += (o ? ", " : "") + Typed(g, n.outputs[o]);
    out_ += " = " + (n.op->domain.empty() ? "" : n.op->domain + ".") + n.op->name + "(";
    for (size_t i = 0; i < n.inputs.size(); ++i) out_ += (i ? ", " : "") + Ref(n.inputs[i]);
    out_ += ")";
    if (!n.attrs.empty()) out_ += " " + AttrsText(n.attrs, max_bytes_);
    const ValueId first = n.outputs.empty() ? kNone : n.outputs[0];
    if (first == kNone || n.name != g.value(first).name) out_ += " @" + Quote(n.name);
    if (!n.origin.empty() && (n.origin.size() > 1 || n.origin[0] != n.name))
      out_ += " " + StringList("from", n.origin);
    if (!n.fresh.empty()) {
      out_ += " fresh[";
      for (size_t i = 0; i < n.fresh.size(); ++i) out_ += (i ? ", " : "") + ToString(n.fresh[i]);
      out_ += "]";
      for (Expr e : n.fresh) Note(e);
    }
    out_ += "\n";
    for (const auto& sub : n.subgraphs) PrintGraph(*sub, indent + 2);
  }

  struct Scope {
    std::unordered_map<ValueId, std::string> names;
    std::unordered_set<std::string> taken;
  };
  int64_t max_bytes_;
  std::vector<Scope> scopes_;
  std::vector<Expr> symbols_;
  std::unordered_set<const ExprNode*> seen_;
  std::string checks_, out_;
};

}  // namespace

bool AsNumbers(const std::vector<Expr>& elements, std::vector<int64_t>* numbers,
               std::vector<std::string>* texts) {
  for (const Expr& e : elements) {
    if (e.IsConst()) numbers->push_back(e.value());
    texts->push_back(ToString(e));
  }
  return numbers->size() == elements.size();
}

std::string ToString(const Graph& g) { return Printer(INT64_MAX).Print(g); }

std::string ToString(const Graph& g, int64_t max_constant_bytes) {
  return Printer(max_constant_bytes).Print(g);
}

std::string ToString(const std::map<std::string, Attr, std::less<>>& attrs) {
  return AttrsText(attrs, INT64_MAX);
}

}  // namespace ge

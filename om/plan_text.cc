// The plan's text form:
//
//   plan {name="m" chip="host" arena_bytes=256}
//   symbol 0 {name="N" lo=1 hi=512 input=0 dim=0}
//   buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[$N, 64] bytes=mul($N, 256)}
//   task 0 {kind=launch name="conv_1" kernel=0 args=[0, 1] grid=4}
//   input 0 {name="x" dtype=f32 dims=[$N, 64] buffer=0}
//
// Sizes are written where they are used; equal ones become one on parsing. $N is the symbol of that
// name, or of that number. Record numbers and the order of fields are free; records keep their
// order.
#include <limits>
#include <map>
#include <type_traits>

#include "abi/dtype.h"
#include "base/text.h"
#include "om/fields.h"
#include "om/file.h"
#include "om/size.h"

namespace ge::om {
namespace {

// ---- Printing

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {
    std::map<std::string_view, int> uses;
    for (const Symbol& s : plan.symbols) ++uses[s.name];
    for (size_t i = 0; i < plan.symbols.size(); ++i) {
      const std::string& name = plan.symbols[i].name;
      const bool plain = IsPlainName(name) && uses[name] == 1;
      symbols_.push_back("$" + (plain ? name : std::to_string(i)));
    }
  }

  template <class T>
  void Record(std::string_view keyword, int64_t number, const T& record) {
    out_.append(keyword);
    if (number >= 0) out_ += " " + std::to_string(number);
    out_ += " {";
    first_ = true;
    Fields(*this, const_cast<T&>(record));  // the printer only reads
    out_ += "}\n";
  }
  template <class T>
  void Records(std::string_view keyword, const std::vector<T>& records) {
    for (size_t i = 0; i < records.size(); ++i)
      Record(keyword, static_cast<int64_t>(i), records[i]);
  }
  std::string Take() { return std::move(out_); }

  template <class T>
  void operator()(std::string_view name, const T& value, int64_t otherwise) {
    if (value != otherwise) Key(name) += std::to_string(value);
  }
  void operator()(std::string_view name, const std::string& text, std::string_view otherwise) {
    if (text != otherwise) Key(name) += Quote(text);
  }
  void operator()(std::string_view name, const std::vector<int32_t>& list) {
    List(name, list, [](int32_t v) { return std::to_string(v); });
  }
  void Size(std::string_view name, SizeRef size) {
    if (size != -1) Key(name) += SizeText(size);
  }
  void Sizes(std::string_view name, const std::vector<SizeRef>& list) {
    List(name, list, [this](SizeRef size) { return SizeText(size); });
  }
  template <class E, class Names>
  void Enum(std::string_view name, E value, const Names& names) {
    const auto i = static_cast<size_t>(value);
    Key(name) += i < names.size() ? names[i] : "?";
  }
  void Type(std::string_view name, uint8_t dtype) { Key(name) += Name(static_cast<DType>(dtype)); }

 private:
  std::string& Key(std::string_view name) {
    if (!first_) out_ += ' ';
    first_ = false;
    return out_.append(name).append("=");
  }
  template <class Convert>
  void List(std::string_view name, const std::vector<int32_t>& list, Convert convert) {
    if (list.empty()) return;
    std::string& out = Key(name);
    out += '[';
    for (size_t i = 0; i < list.size(); ++i)
      out.append(i == 0 ? "" : ", ").append(convert(list[i]));
    out += ']';
  }
  std::string SizeText(SizeRef size) const;

  const Plan& plan_;
  std::vector<std::string> symbols_;
  std::string out_;
  bool first_ = true;
};

std::string Printer::SizeText(SizeRef size) const {
  if (size < 0 || static_cast<size_t>(size) >= plan_.sizes.size()) return "bad()";
  const SizeExpr& range = plan_.sizes[static_cast<size_t>(size)];
  if (range.begin > range.end || range.end > plan_.size_code.size()) return "bad()";
  const auto code = CodeOf(plan_, size);
  if (!SizeCodeIsSound(code, static_cast<int64_t>(symbols_.size()))) return "bad()";
  std::vector<std::string> stack;
  for (const SizeCode& c : code) {
    const auto arity = static_cast<size_t>(SizeArity(c.op));
    std::string text;
    if (c.op == SizeOp::kConst) {
      text = std::to_string(c.value);
    } else if (c.op == SizeOp::kSymbol) {
      text = symbols_[static_cast<size_t>(c.value)];
    } else {
      text = std::string(kSizeOps[static_cast<size_t>(c.op)]) + "(";
      for (size_t i = 0; i < arity; ++i) {
        text.append(i == 0 ? "" : ", ").append(stack[stack.size() - arity + i]);
      }
      text += ")";
    }
    stack.resize(stack.size() - arity);
    stack.push_back(std::move(text));
  }
  return stack[0];
}

// ---- Parsing

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}
  Result<Plan> Parse();

  // As an archive: fills the field whose key was just read.
  template <class T>
  void operator()(std::string_view name, T& value, int64_t) {
    if (Matches(name)) status_ = Number(&value);
  }
  void operator()(std::string_view name, std::string& text, std::string_view) {
    if (!Matches(name)) return;
    auto read = reader_.Quoted();
    status_ = read.status();
    if (read.ok()) text = std::move(read).value();
  }
  void operator()(std::string_view name, std::vector<int32_t>& list) {
    if (Matches(name)) status_ = List(&list, [this](int32_t* v) { return Number(v); });
  }
  void Size(std::string_view name, SizeRef& size) {
    if (Matches(name)) status_ = ReadSize(&size);
  }
  void Sizes(std::string_view name, std::vector<SizeRef>& list) {
    if (Matches(name)) status_ = List(&list, [this](SizeRef* v) { return ReadSize(v); });
  }
  template <class E, class Names>
  void Enum(std::string_view name, E& value, const Names& names) {
    if (!Matches(name)) return;
    for (size_t i = 0; i < names.size(); ++i) {
      if (reader_.Accept(names[i])) {
        value = static_cast<E>(i);
        return;
      }
    }
    status_ = reader_.Fault("unknown " + std::string(name));
  }
  void Type(std::string_view name, uint8_t& dtype) {
    if (!Matches(name)) return;
    const auto type = ParseDType(reader_.Next().text);
    if (type) dtype = static_cast<uint8_t>(*type);
    if (!type) status_ = reader_.Fault("unknown element type");
  }

 private:
  bool Matches(std::string_view name) {
    if (key_ != name) return false;
    matched_ = true;
    return true;
  }
  template <class T>
  Status Number(T* value) {
    GE_ASSIGN(const int64_t v, reader_.Int());
    *value = static_cast<T>(v);
    return *value == v ? Status() : reader_.Fault("the number is out of range");
  }
  template <class Read>
  Status List(std::vector<int32_t>* list, Read read) {
    list->clear();
    GE_TRY(reader_.Expect("["));
    if (reader_.Accept("]")) return {};
    do {
      GE_TRY(read(&list->emplace_back()));
    } while (reader_.Accept(","));
    return reader_.Expect("]");
  }
  Status ReadSize(SizeRef* size);
  Status ReadCode(std::vector<SizeCode>* code);
  Status ReadSymbol(std::vector<SizeCode>* code);
  template <class T>
  Status ReadFields(T* record);
  Status ReadRecord(const std::string& keyword);

  TextReader reader_;
  Plan plan_;
  std::map<std::vector<std::pair<int, int64_t>>, SizeRef> known_;
  std::string key_;
  bool matched_ = false;
  Status status_;
};

Status Parser::ReadSize(SizeRef* size) {
  std::vector<SizeCode> code;
  GE_TRY(ReadCode(&code));
  std::vector<std::pair<int, int64_t>> key;
  for (const SizeCode& c : code) key.emplace_back(static_cast<int>(c.op), c.value);
  const auto [it, fresh] = known_.emplace(std::move(key), 0);
  if (fresh) it->second = AddSize(&plan_, code);
  *size = it->second;
  return {};
}

Status Parser::ReadSymbol(std::vector<SizeCode>* code) {
  int64_t index = -1;
  if (reader_.AtName()) {
    GE_ASSIGN(const std::string name, reader_.Name());
    for (size_t i = 0; i < plan_.symbols.size(); ++i) {
      if (plan_.symbols[i].name == name) index = static_cast<int64_t>(i);
    }
  } else {
    GE_ASSIGN(index, reader_.Int());
  }
  if (index < 0 || index >= static_cast<int64_t>(plan_.symbols.size()))
    return reader_.Fault("unknown symbol");
  code->push_back({SizeOp::kSymbol, index});
  return {};
}

Status Parser::ReadCode(std::vector<SizeCode>* code) {
  const TextReader::Nest nest(reader_);
  GE_TRY(nest.status());
  if (reader_.AtNumber()) {
    GE_ASSIGN(const int64_t value, reader_.Int());
    code->push_back({SizeOp::kConst, value});
    return {};
  }
  if (reader_.Accept("$")) return ReadSymbol(code);
  for (size_t i = 2; i < kSizeOps.size(); ++i) {
    if (!reader_.Accept(kSizeOps[i])) continue;
    const auto op = static_cast<SizeOp>(i);
    GE_TRY(reader_.Expect("("));
    for (int k = 0; k < SizeArity(op); ++k) {
      if (k > 0) GE_TRY(reader_.Expect(","));
      GE_TRY(ReadCode(code));
    }
    code->push_back({op, 0});
    return reader_.Expect(")");
  }
  return reader_.Fault("expected a size");
}

template <class T>
Status Parser::ReadFields(T* record) {
  if (reader_.Peek().kind == TokenKind::kInt) reader_.Next();  // the record's number
  GE_TRY(reader_.Expect("{"));
  while (!reader_.Accept("}")) {
    GE_ASSIGN(key_, reader_.Name());
    GE_TRY(reader_.Expect("="));
    matched_ = false;
    Fields(*this, *record);
    if (!matched_) return reader_.Fault("unknown field " + key_);
    GE_TRY(status_);
  }
  return {};
}

Status Parser::ReadRecord(const std::string& keyword) {
  if (keyword == "plan") {
    PlanHeader header;
    GE_TRY(ReadFields(&header));
    plan_.model_name = header.model_name, plan_.chip = header.chip;
    plan_.arena_bytes = header.arena_bytes, plan_.slots = header.slots;
    return {};
  }
  if (keyword == "symbol") {
    plan_.symbols.push_back({"", 0, std::numeric_limits<int32_t>::max(), 1});
    return ReadFields(&plan_.symbols.back());
  }
  if (keyword == "check") return ReadFields(&plan_.checks.emplace_back(Check{-1, ""}));
  if (keyword == "buffer") return ReadFields(&plan_.buffers.emplace_back(Buffer{}));
  if (keyword == "kernel") return ReadFields(&plan_.kernels.emplace_back());
  if (keyword == "task") return ReadFields(&plan_.tasks.emplace_back(Task{}));
  if (keyword == "input") return ReadFields(&plan_.inputs.emplace_back(IoTensor{}));
  if (keyword == "output") return ReadFields(&plan_.outputs.emplace_back(IoTensor{}));
  return reader_.Fault("unknown record " + keyword);
}

Result<Plan> Parser::Parse() {
  while (!reader_.AtEnd()) {
    GE_ASSIGN(const std::string keyword, reader_.Name());
    GE_TRY(ReadRecord(keyword));
  }
  return std::move(plan_);
}

}  // namespace

std::string ToString(const Plan& plan) {
  Printer p(plan);
  p.Record("plan", -1, PlanHeader{plan.model_name, plan.chip, plan.arena_bytes, plan.slots});
  p.Records("symbol", plan.symbols);
  p.Records("check", plan.checks);
  p.Records("buffer", plan.buffers);
  p.Records("kernel", plan.kernels);
  p.Records("task", plan.tasks);
  p.Records("input", plan.inputs);
  p.Records("output", plan.outputs);
  return p.Take();
}

Result<Plan> ParsePlan(std::string_view text) { return Parser(text).Parse(); }

}  // namespace ge::om

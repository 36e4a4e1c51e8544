// The plan's binary form: every integer a zigzag LEB128 number, strings and lists by length. Lists
// grow as their elements are read, so that a false count cannot claim more memory than the bytes
// that are there justify.
#include <cstring>

#include "om/fields.h"
#include "om/file.h"

namespace ge::om {
namespace {

class Encoder {
 public:
  void Int(int64_t value) {
    uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; bits >= 0x80; bits >>= 7) out_.push_back(static_cast<char>(bits | 0x80));
    out_.push_back(static_cast<char>(bits));
  }
  template <class T>
  void operator()(std::string_view, const T& value, int64_t = 0) {
    Int(value);
  }
  void operator()(std::string_view, const std::string& text, std::string_view = "") {
    Int(static_cast<int64_t>(text.size()));
    out_ += text;
  }
  void operator()(std::string_view, const std::vector<int32_t>& list) {
    Int(static_cast<int64_t>(list.size()));
    for (const int32_t v : list) Int(v);
  }
  void Size(std::string_view, SizeRef size) { Int(size); }
  void Sizes(std::string_view name, const std::vector<SizeRef>& list) { (*this)(name, list); }
  template <class E, class Names>
  void Enum(std::string_view, E value, const Names&) {
    Int(static_cast<int64_t>(value));
  }
  void Type(std::string_view, uint8_t dtype) { Int(dtype); }
  template <class T>
  void Records(std::vector<T>& records) {
    Int(static_cast<int64_t>(records.size()));
    for (T& r : records) Fields(*this, r);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return at_ == bytes_.size(); }

  int64_t Int() {
    uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) return Fail();
      const auto byte = static_cast<uint64_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return Fail();
      bits |= (byte & 0x7f) << shift;
      if (byte < 0x80) return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
    }
    return Fail();
  }
  template <class T>
  void operator()(std::string_view, T& value, int64_t = 0) {
    const int64_t v = Int();
    value = static_cast<T>(v);
    if (value != v) Fail();
  }
  void operator()(std::string_view, std::string& text, std::string_view = "") {
    const size_t count = Count();
    text.assign(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
  }
  void operator()(std::string_view name, std::vector<int32_t>& list) {
    const size_t count = Count();
    for (size_t i = 0; i < count && ok_; ++i) (*this)(name, list.emplace_back());
  }
  void Size(std::string_view name, SizeRef& size) { (*this)(name, size); }
  void Sizes(std::string_view name, std::vector<SizeRef>& list) { (*this)(name, list); }
  template <class E, class Names>
  void Enum(std::string_view, E& value, const Names& names) {
    const int64_t v = Int();
    if (v < 0 || v >= static_cast<int64_t>(names.size())) Fail();
    value = ok_ ? static_cast<E>(v) : E{};
  }
  void Type(std::string_view name, uint8_t& dtype) { (*this)(name, dtype); }
  template <class T>
  void Records(std::vector<T>& records) {
    const size_t count = Count();
    for (size_t i = 0; i < count && ok_; ++i) Fields(*this, records.emplace_back());
  }
  // A count of things that take at least one byte each.
  size_t Count() {
    const int64_t count = Int();
    if (count < 0 || static_cast<uint64_t>(count) > bytes_.size() - at_)
      return static_cast<size_t>(Fail());
    return static_cast<size_t>(count);
  }

 private:
  int64_t Fail() {
    ok_ = false;
    at_ = bytes_.size();
    return 0;
  }
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// Sizes are written as lists of code; their ranges follow from the lengths.
void EncodeSizes(Encoder& e, const Plan& plan) {
  e.Int(static_cast<int64_t>(plan.sizes.size()));
  for (const SizeExpr& size : plan.sizes) {
    e.Int(size.end - size.begin);
    for (uint32_t i = size.begin; i < size.end; ++i) {
      const SizeCode& c = plan.size_code[i];
      e.Int(static_cast<int64_t>(c.op));
      if (c.op <= SizeOp::kSymbol) e.Int(c.value);
    }
  }
}

void DecodeSizes(Decoder& d, Plan& plan) {
  const size_t count = d.Count();
  for (size_t i = 0; i < count && d.ok(); ++i) {
    const size_t length = d.Count();
    const auto begin = static_cast<uint32_t>(plan.size_code.size());
    for (size_t k = 0; k < length && d.ok(); ++k) {
      SizeCode& c = plan.size_code.emplace_back(SizeCode{});
      d.Enum("op", c.op, kSizeOps);
      if (c.op <= SizeOp::kSymbol) c.value = d.Int();
    }
    plan.sizes.push_back({begin, static_cast<uint32_t>(plan.size_code.size())});
  }
}

template <class A>
void VisitTables(A& a, Plan& plan) {
  a.Records(plan.symbols);
  a.Records(plan.checks);
  a.Records(plan.buffers);
  a.Records(plan.kernels);
  a.Records(plan.tasks);
  a.Records(plan.inputs);
  a.Records(plan.outputs);
}

}  // namespace

std::string EncodePlan(const Plan& plan) {
  Encoder e;
  PlanHeader header{plan.model_name, plan.chip, plan.arena_bytes, plan.slots};
  Fields(e, header);
  EncodeSizes(e, plan);
  VisitTables(e, const_cast<Plan&>(plan));  // the encoder only reads
  return e.Take();
}

Result<Plan> DecodePlan(std::span<const std::byte> bytes) {
  Decoder d(bytes);
  PlanHeader header;
  Fields(d, header);
  Plan plan;
  plan.model_name = header.model_name, plan.chip = header.chip;
  plan.arena_bytes = header.arena_bytes, plan.slots = header.slots;
  DecodeSizes(d, plan);
  VisitTables(d, plan);
  if (!d.ok()) return Error(Code::kDataLoss, "the plan is cut off or damaged");
  if (!d.AtEnd()) return Error(Code::kDataLoss, "the plan is followed by foreign bytes");
  return plan;
}

}  // namespace ge::om

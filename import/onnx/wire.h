// WireReader: the protobuf wire format, over bytes that must outlive it. Lengths are 64-bit, so
// that a mapped file may be larger than 4 GB; every length is checked against what is left. No
// exceptions: a fault makes ok() false, and all reads after it give zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ge::onnx {

class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Moves to the next field; false at the end or after a fault.
  bool Next() {
    if (!ok_ || p_ == end_) return false;
    const uint64_t key = Varint();
    field_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<int>(key & 7);
    if (field_ == 0 || key >> 35 != 0) ok_ = false;
    return ok_;
  }
  bool ok() const { return ok_; }
  uint32_t field() const { return field_; }
  bool IsBytes() const { return type_ == 2; }

  // The value of the current field. A field of another wire type than asked for is a fault.
  uint64_t Uint() { return Expect(0) ? Varint() : 0; }
  int64_t Int() { return static_cast<int64_t>(Uint()); }
  float Float() { return Expect(5) ? Fixed<float>() : 0; }
  double Double() { return Expect(1) ? Fixed<double>() : 0; }
  std::string_view Bytes() {
    if (!Expect(2)) return {};
    const uint64_t size = Varint();
    if (!ok_ || size > static_cast<uint64_t>(end_ - p_)) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes(p_, size);
    p_ += size;
    return bytes;
  }
  void Skip() {
    switch (type_) {
      case 0: Varint(); break;
      case 1: Fixed<uint64_t>(); break;
      case 2: Bytes(); break;
      case 5: Fixed<uint32_t>(); break;
      default: ok_ = false;
    }
  }

  // Repeated scalars, packed or one by one.
  template <class F>
  void EachInt(F f) {
    if (!IsBytes()) {
      const int64_t x = Int();
      if (ok_) f(x);
      return;
    }
    WireReader inner(Bytes());
    while (inner.ok_ && inner.p_ != inner.end_) {
      const int64_t x = static_cast<int64_t>(inner.Varint());
      if (inner.ok_) f(x);
    }
    ok_ = ok_ && inner.ok_;
  }
  template <class T, class F>
  void EachFixed(F f) {  // T: float or double
    if (!IsBytes()) {
      const T x = Expect(sizeof(T) == 4 ? 5 : 1) ? Fixed<T>() : T();
      if (ok_) f(x);
      return;
    }
    WireReader inner(Bytes());
    while (inner.ok_ && inner.p_ != inner.end_) {
      const T x = inner.Fixed<T>();
      if (inner.ok_) f(x);
    }
    ok_ = ok_ && inner.ok_;
  }

 private:
  bool Expect(int type) {
    if (type_ != type) ok_ = false;
    return ok_;
  }
  uint64_t Varint() {
    uint64_t x = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (p_ == end_) break;
      const uint8_t byte = static_cast<uint8_t>(*p_++);
      if (shift < 64) x |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return x;
    }
    ok_ = false;
    return 0;
  }
  template <class T>
  T Fixed() {
    T x{};
    if (static_cast<size_t>(end_ - p_) < sizeof(T)) {
      ok_ = false;
      return x;
    }
    std::memcpy(&x, p_, sizeof(T));
    p_ += sizeof(T);
    return x;
  }

  const char* p_;
  const char* end_;
  uint32_t field_ = 0;
  int type_ = 0;
  bool ok_ = true;
};

}  // namespace ge::onnx

// ONNX messages as strings, written field by field, so that a test can also write what no exporter
// would. Field numbers: onnx.proto.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ge::onnx::wire {

// Protobuf messages as strings.
inline std::string Varint(uint64_t x) {
  std::string s;
  for (; x >= 0x80; x >>= 7) s += static_cast<char>(x | 0x80);
  return s + static_cast<char>(x);
}
inline std::string Int(int field, int64_t x) {
  return Varint(field * 8) + Varint(static_cast<uint64_t>(x));
}
inline std::string Msg(int field, std::string_view body) {
  return Varint(field * 8 + 2) + Varint(body.size()) + std::string(body);
}
inline std::string Flt(int field, float x) {
  return Varint(field * 8 + 5) + std::string(reinterpret_cast<const char*>(&x), 4);
}

// Attributes.
inline std::string AInt(std::string_view name, int64_t x) {
  return Msg(1, name) + Int(3, x) + Int(20, 2);
}
inline std::string AFlt(std::string_view name, float x) {
  return Msg(1, name) + Flt(2, x) + Int(20, 1);
}
inline std::string AInts(std::string_view name, std::vector<int64_t> list) {
  std::string s = Msg(1, name) + Int(20, 7);
  for (int64_t x : list) s += Int(8, x);
  return s;
}
inline std::string AGraph(std::string_view name, std::string_view graph) {
  return Msg(1, name) + Msg(6, graph) + Int(20, 5);
}
inline std::string ARef(std::string_view name, std::string_view ref, int kind) {
  return Msg(1, name) + Msg(21, ref) + Int(20, kind);
}

inline std::string Node(std::string_view op, std::vector<std::string> in,
                        std::vector<std::string> out, std::vector<std::string> attrs = {},
                        std::string_view name = "", std::string_view domain = "") {
  std::string s;
  for (const auto& i : in) s += Msg(1, i);
  for (const auto& o : out) s += Msg(2, o);
  if (!name.empty()) s += Msg(3, name);
  s += Msg(4, op);
  for (const auto& a : attrs) s += Msg(5, a);
  if (!domain.empty()) s += Msg(7, domain);
  return Msg(1, s);
}
inline std::string Dims(const std::vector<std::string>& dims) {  // numbers or names
  std::string s;
  for (const auto& d : dims)
    s += Msg(1, std::isdigit(static_cast<unsigned char>(d[0])) ? Int(1, std::stoll(d))
                : d == "?"                                     ? ""
                                                               : Msg(2, d));
  return s;
}
inline std::string Info(std::string_view name, int type, const std::vector<std::string>& dims) {
  return Msg(1, name) + Msg(2, Msg(1, Int(1, type) + Msg(2, Dims(dims))));
}
inline std::string Input(std::string_view name, int type, std::vector<std::string> dims) {
  return Msg(11, Info(name, type, dims));
}
inline std::string Output(std::string_view name) { return Msg(12, Msg(1, name)); }
inline std::string TensorBody(std::string_view name, int type, const std::vector<int64_t>& dims,
                              std::string_view rest) {
  std::string s = Msg(8, name) + Int(2, type);
  for (int64_t d : dims) s += Int(1, d);
  return s + std::string(rest);
}
inline std::string Init(std::string_view name, int type, const std::vector<int64_t>& dims,
                        std::string_view rest) {
  return Msg(5, TensorBody(name, type, dims, rest));
}
inline std::string I64s(std::vector<int64_t> list) {  // packed int64_data
  std::string s;
  for (int64_t x : list) s += Varint(static_cast<uint64_t>(x));
  return Msg(7, s);
}
inline std::string Raw(std::string_view bytes) { return Msg(9, bytes); }
inline std::string Floats(std::vector<float> list) {
  return Raw(std::string_view(reinterpret_cast<const char*>(list.data()), list.size() * 4));
}
inline std::string Opset(int64_t version, std::string_view domain = "") {
  return Msg(8, Msg(1, domain) + Int(2, version));
}
inline std::string ModelOf(std::string_view graph, int64_t opset, std::string_view more = "") {
  return Int(1, 8) + Opset(opset) + Msg(7, graph) + std::string(more);
}

}  // namespace ge::onnx::wire

// Import of nodes whose operands no schema allows: each is refused with the node's name, before
// anything is expanded or lowered.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "import/onnx/import.h"
#include "import/onnx/wire_writer.h"
#include "ir/text.h"

namespace ge::onnx {
namespace {

using namespace wire;  // NOLINT(google-build-using-namespace): the words of every model below

using ::testing::HasSubstr;

std::string Fault(std::string_view bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("ge_operands_{}.onnx", getpid()))
          .string();
  std::ofstream(path, std::ios::binary) << bytes;
  auto g = Import(path);
  std::filesystem::remove(path);
  return g.ok() ? "imported:\n" + ToString(**g) : g.status().message();
}

TEST(ImportOperands, RefusedByNameWhereNoSchemaAllowsThem) {
  const std::string more = Input("x", 1, {"2"}) + Input("u", 2, {"2"}) + Input("t", 8, {"2"}) +
                           Input("c", 1, {"4", "2"}) + Init("s", 1, {}, Floats({1})) +
                           Input("b", 1, {"1", "9", "1"}) + Init("k", 7, {}, I64s({2})) +
                           Init("z", 2, {}, Msg(9, std::string(1, '\0'))) + Init("e", 1, {0}, "") +
                           Init("f", 1, {1}, Floats({0})) + Output("y");
  auto fault = [&](std::string_view op, const std::vector<std::string>& operands,
                   std::vector<std::string> attrs = {}, std::string_view domain = "com.microsoft") {
    return Fault(ModelOf(Node(op, operands, {"y"}, attrs, "n1", domain) + more, 17,
                         Opset(1, "com.microsoft")));
  };
  for (const char* op : {"Sum", "Max", "Min", "Mean", "Concat"})
    EXPECT_THAT(fault(op, {"x", "", "x"}, {AInt("axis", 0)}, ""),
                HasSubstr("input 1 of 3 is absent"))
        << op;
  EXPECT_THAT(fault("Range", {"e", "s", "s"}, {}, ""),
              HasSubstr("operand 0 is f32[0], must be one number"));
  for (const char* op : {"Squeeze", "Unsqueeze", "Reshape"}) {
    EXPECT_THAT(fault(op, {"x", "f"}, {}, ""), HasSubstr("operand 1 is f32, must be integers"));
    EXPECT_THAT(fault(op, {"t", "t"}, {}, ""), HasSubstr("operand 1 is string, must be integers"));
  }
  for (const char* domain : {"", "com.microsoft"}) {
    EXPECT_THAT(fault("QuantizeLinear", {"x", "t", "z"}, {}, domain),
                HasSubstr("operand 1 of QuantizeLinear is string, must be a type of numbers"));
    EXPECT_THAT(fault("DequantizeLinear", {"x", "s", "z"}, {}, domain),
                HasSubstr("operand 0 of DequantizeLinear is f32, must be integers or f8"));
    EXPECT_THAT(fault("DequantizeLinear", {"u", "z", "z"}, {}, domain),
                HasSubstr("operand 1 of DequantizeLinear is u8, must be a float type"));
  }
  EXPECT_THAT(fault("QLinearSigmoid", {"u", "s", "s", "s", "z"}),
              HasSubstr("node 'n1' (QLinearSigmoid): operand 2 of QLinearSigmoid is f32"));
  EXPECT_THAT(fault("QLinearAdd", {"u", "s", "z", "u", "s", "s", "s", "z"}),
              HasSubstr("operand 5 of QLinearAdd is f32"));
  EXPECT_THAT(fault("QLinearWhere", {"u", "u", "s", "z", "u", "s", "z", "s", "z"}),
              HasSubstr("operand 0 of QLinearWhere is u8, must be bool"));
  EXPECT_THAT(fault("QLinearConcat", {"s", "z", "u", "s", "s"}, {AInt("axis", 0)}),
              HasSubstr("operands 2 to 4 are u8, f32 and f32"));
  for (int64_t axis : {int64_t{1}, int64_t{-2}, INT64_MIN, INT64_MAX})
    EXPECT_THAT(fault("QLinearSoftmax", {"u", "s", "z", "s", "z"}, {AInt("axis", axis)}),
                HasSubstr(fmt::format("axis {} is outside rank 1", axis)));
  EXPECT_THAT(fault("QGemm", {"u", "s", "s", "u", "s", "z"}),
              HasSubstr("operand 2 of QGemm is f32, must be integers or f8"));
  EXPECT_THAT(fault("STFT", {"b", "k", "c"}, {}, ""),
              HasSubstr("node 'n1' (STFT): operand 2 has rank 2, must be 1"));
  EXPECT_THAT(fault("RotaryEmbedding", {"x", "c", "c", "c"}),
              HasSubstr("operand 1 of RotaryEmbedding is f32, must be i32 or i64"));
}

}  // namespace
}  // namespace ge::onnx

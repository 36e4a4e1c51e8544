// The tokenizer: what it reads, what it refuses, and that quoting reads back.
#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace ge {
namespace {

TEST(TextReader, ReadsTokens) {
  TextReader r("add(%x, -12) -> 0x1.8p1 // note\n \"a\\n\\x41\" >= 1e3 nan -inf 0xff 2:1");
  EXPECT_EQ(*r.Name(), "add");
  EXPECT_TRUE(r.Accept("("));
  EXPECT_TRUE(r.Accept("%"));
  EXPECT_EQ(*r.Name(), "x");
  EXPECT_TRUE(r.Accept(","));
  EXPECT_EQ(*r.Int(), -12);
  EXPECT_TRUE(r.Accept(")"));
  EXPECT_TRUE(r.Accept("->"));
  EXPECT_EQ(*r.Float(), 3.0);
  EXPECT_EQ(*r.Quoted(), "a\nA");
  EXPECT_TRUE(r.Accept(">="));
  EXPECT_EQ(*r.Float(), 1000.0);
  EXPECT_TRUE(std::isnan(*r.Float()));
  EXPECT_EQ(*r.Float(), -INFINITY);
  EXPECT_EQ(*r.Int(), 255);
  EXPECT_EQ(*r.Int(), 2);
  EXPECT_TRUE(r.Accept(":"));
  EXPECT_EQ(*r.Unsigned(), 1u);
  EXPECT_TRUE(r.ExpectEnd().ok());
}

TEST(TextReader, LimitsOfIntegers) {
  EXPECT_EQ(*TextReader("-9223372036854775808").Int(), INT64_MIN);
  EXPECT_EQ(*TextReader("9223372036854775807").Int(), INT64_MAX);
  EXPECT_FALSE(TextReader("9223372036854775808").Int().ok());
  EXPECT_EQ(*TextReader("18446744073709551615").Unsigned(), UINT64_MAX);
  EXPECT_FALSE(TextReader("18446744073709551616").Unsigned().ok());
}

TEST(TextReader, FaultsNameThePlace) {
  TextReader r("a\n  b c");
  r.Next();
  r.Next();
  const Status s = r.Expect(";");
  EXPECT_EQ(s.message(), "line 2, column 5: expected ';', found 'c'");
}

TEST(TextReader, AnyBytesEnd) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text += static_cast<char>(random());
    TextReader r(text);
    int tokens = 0;
    while (!r.AtEnd()) {
      r.Next();
      ASSERT_LE(++tokens, 41);
    }
  }
}

TEST(TextReader, QuotesReadBack) {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) text += static_cast<char>(random());
    const std::string quoted = Quote(text), name = QuoteName(text);
    EXPECT_EQ(*TextReader(quoted).Quoted(), text);
    EXPECT_EQ(*TextReader(name).Name(), text);
  }
  EXPECT_EQ(QuoteName("conv1.weight"), "conv1.weight");
  EXPECT_EQ(QuoteName("1x"), "\"1x\"");
}

TEST(TextReader, FloatsReadBack) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t bits = random();
    double v;
    std::memcpy(&v, &bits, sizeof v);
    const double back = *TextReader(FloatText(v)).Float();
    if (std::isnan(v)) {
      EXPECT_TRUE(std::isnan(back));
    } else {
      EXPECT_EQ(back, v) << FloatText(v);
    }
  }
}

}  // namespace
}  // namespace ge

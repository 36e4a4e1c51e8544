// Host kernels, called directly: values, sizes returned, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>

#include "abi/dtype.h"
#include "rt/host/regex.h"
#include "rt/host_kernel.h"

namespace ge::rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
constexpr DType kType = DType::kF32;
template <>
constexpr DType kType<int64_t> = DType::kI64;
template <>
constexpr DType kType<bool> = DType::kBool;
template <>
constexpr DType kType<uint8_t> = DType::kU8;

// One call: operands and outputs in the order they are added.
class Call {
 public:
  Call(std::string name, const std::string& attrs = "") : name_(std::move(name)), attrs_(attrs) {}

  template <class T>
  Call& In(std::vector<int64_t> dims, const std::vector<T>& values) {
    auto& m = memory_.emplace_back(values.size() * sizeof(T) + 1);
    for (size_t i = 0; i < values.size(); ++i) {
      const T v = values[i];
      std::memcpy(m.data() + i * sizeof(T), &v, sizeof(T));
    }
    inputs_.push_back({.dtype = static_cast<uint8_t>(kType<T>),
                       .dims = dims_.emplace_back(std::move(dims)),
                       .data = m.data()});
    return *this;
  }
  Call& In(Object o) {
    Object& held = objects_.emplace_back(std::move(o));
    inputs_.push_back({.dtype = held.dtype, .object = &held});
    return *this;
  }
  // An output whose size the kernel finds out.
  Call& Out(DType t, std::vector<int64_t> dims = {}) {
    auto& m = results_.emplace_back();
    outputs_.push_back({.dtype = static_cast<uint8_t>(t),
                        .dims = dims_.emplace_back(std::move(dims)),
                        .allocate = Allocate,
                        .context = &m});
    return *this;
  }
  Call& OutObject(DType t) {
    outputs_.push_back({.dtype = static_cast<uint8_t>(t), .object = &objects_.emplace_back()});
    return *this;
  }
  std::string Run() {
    const HostAttrs attrs(attrs_);
    HostCall call{attrs, inputs_, outputs_, sizes};
    return FindHost(name_)(call).message();
  }
  template <class T>
  std::vector<T> Get(size_t o) const {
    std::vector<T> out(results_[o].size() / sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) {
      T v;
      std::memcpy(&v, results_[o].data() + i * sizeof(T), sizeof(T));
      out[i] = v;
    }
    return out;
  }
  const Object& Got(size_t o) const { return *outputs_[o].object; }
  std::vector<int64_t> sizes;

 private:
  static void* Allocate(void* context, int64_t bytes) {
    auto* m = static_cast<std::vector<std::byte>*>(context);
    m->assign(static_cast<size_t>(bytes), std::byte{0xA5});
    return m->data();
  }
  std::string name_, attrs_;
  std::deque<std::vector<std::byte>> memory_, results_;
  std::deque<std::vector<int64_t>> dims_;
  std::deque<Object> objects_;
  std::vector<HostTensor> inputs_;
  std::vector<HostOutput> outputs_;
};

Object Strings(std::vector<std::string> s) {
  Object o;
  o.kind = Object::Kind::kTensor;
  o.dtype = static_cast<uint8_t>(DType::kString);
  o.dims = {static_cast<int64_t>(s.size())};
  o.strings = std::move(s);
  return o;
}

TEST(Host, TopKTakesTheLowerIndexFirst) {
  Call c("TopK");
  c.In<float>({5}, {1, 3, 3, NAN, 2}).In<int64_t>({1}, {3}).Out(DType::kF32).Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.Get<int64_t>(1), ElementsAre(3, 1, 2));
  Call small("TopK", "largest=i:0\n");
  small.In<float>({2, 3}, {2, 1, 1, 5, 4, 3})
      .In<int64_t>({1}, {2})
      .Out(DType::kF32)
      .Out(DType::kI64);
  EXPECT_EQ(small.Run(), "");
  EXPECT_THAT(small.Get<float>(0), ElementsAre(1, 1, 3, 4));
  EXPECT_THAT(small.Get<int64_t>(1), ElementsAre(1, 2, 2, 1));
  Call none("TopK");
  none.In<float>({3}, {1, 2, 3}).In<int64_t>({1}, {0}).Out(DType::kF32).Out(DType::kI64);
  EXPECT_EQ(none.Run(), "");
  Call many("TopK");
  many.In<float>({3}, {1, 2, 3}).In<int64_t>({1}, {4}).Out(DType::kF32).Out(DType::kI64);
  EXPECT_THAT(many.Run(), HasSubstr("k = 4 is outside [0, 3]"));
}

// Many equal numbers, along the first axis: the order is that of a stable sort.
template <class T>
void ExpectTopLikeSort(int64_t n, int64_t k, bool largest) {
  std::vector<T> x(static_cast<size_t>(n) * 2);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(i * 7919 % 251 - (sizeof(T) > 1 ? 120 : 0));
  Call c("TopK", std::string("axis=i:0\nlargest=i:") + (largest ? "1\n" : "0\n"));
  c.In<T>({n, 2}, x).template In<int64_t>({1}, {k}).Out(kType<T>).Out(DType::kI64);
  ASSERT_EQ(c.Run(), "");
  for (size_t column = 0; column < 2; ++column) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    auto at = [&](int64_t i) { return x[static_cast<size_t>(i) * 2 + column]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return largest ? at(a) > at(b) : at(a) < at(b); });
    const auto values = c.Get<T>(0);
    const auto places = c.Get<int64_t>(1);
    for (size_t j = 0; j < static_cast<size_t>(k); ++j) {
      ASSERT_EQ(places[j * 2 + column], order[j]) << n << " " << k << " " << j;
      ASSERT_EQ(values[j * 2 + column], at(order[j]));
    }
  }
}

TEST(Host, TopKIsAStableSort) {
  for (bool largest : {true, false})
    for (int64_t k : {1, 10, 300, 999, 1000}) {
      ExpectTopLikeSort<float>(1000, k, largest);
      ExpectTopLikeSort<uint8_t>(1000, k, largest);
      ExpectTopLikeSort<int64_t>(1000, k, largest);
    }
}

TEST(Host, NonZeroOfLines) {
  std::vector<bool> x(2 * 3 * 5);
  std::vector<int64_t> want[3];
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 3 == 0 || (i >= 10 && i < 15);
    if (!x[i]) continue;
    const auto at = static_cast<int64_t>(i);
    want[0].push_back(at / 15), want[1].push_back(at / 5 % 3), want[2].push_back(at % 5);
  }
  Call c("NonZero");
  c.In<bool>({2, 3, 5}, x).Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  std::vector<int64_t> all;
  for (const auto& w : want) all.insert(all.end(), w.begin(), w.end());
  EXPECT_EQ(c.Get<int64_t>(0), all);
}

TEST(Host, NonZeroAndCompressGiveTheirSizes) {
  Call c("NonZero");
  c.In<float>({2, 2}, {0, NAN, -0.0F, 2}).Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.sizes, ElementsAre(2));
  EXPECT_THAT(c.Get<int64_t>(0), ElementsAre(0, 1, 1, 1));
  Call zeros("NonZero");
  zeros.In<float>({3}, {0, 0, 0}).Out(DType::kI64);
  EXPECT_EQ(zeros.Run(), "");
  EXPECT_THAT(zeros.sizes, ElementsAre(0));
  Call keep("Compress", "axis=i:1\n");
  keep.In<float>({2, 3}, {1, 2, 3, 4, 5, 6}).In<bool>({2}, {false, true}).Out(DType::kF32);
  EXPECT_EQ(keep.Run(), "");
  EXPECT_THAT(keep.Get<float>(0), ElementsAre(2, 5));
  Call longer("Compress", "axis=i:0\n");
  longer.In<float>({1}, {1}).In<bool>({2}, {false, true}).Out(DType::kF32);
  EXPECT_THAT(longer.Run(), HasSubstr("2 values for an axis of 1"));
}

TEST(Host, UniqueSortedAndInOrderOfOccurrence) {
  Call c("Unique");
  c.In<float>({5}, {2, 1, 1, 3, 2})
      .Out(DType::kF32)
      .Out(DType::kI64)
      .Out(DType::kI64)
      .Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.Get<float>(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(c.Get<int64_t>(1), ElementsAre(1, 0, 3));
  EXPECT_THAT(c.Get<int64_t>(2), ElementsAre(1, 0, 0, 2, 1));
  EXPECT_THAT(c.Get<int64_t>(3), ElementsAre(2, 2, 1));
  Call as_found("Unique", "sorted=i:0\n");
  as_found.In<float>({5}, {2, 1, 1, 3, 2}).Out(DType::kF32).Out(DType::kI64).Out(DType::kI64);
  EXPECT_EQ(as_found.Run(), "");
  EXPECT_THAT(as_found.Get<float>(0), ElementsAre(2, 1, 3));
  EXPECT_THAT(as_found.Get<int64_t>(2), ElementsAre(0, 1, 1, 2, 0));
}

TEST(Host, SuppressionKeepsBatchesApart) {
  Call c("NonMaxSuppression");
  const std::vector<float> boxes = {0, 0, 1, 1, 0, 0, 1, 0.9F, 5, 5, 6, 6};
  std::vector<float> both = boxes;
  both.insert(both.end(), boxes.begin(), boxes.end());
  c.In<float>({2, 3, 4}, both).In<float>({2, 1, 3}, {0.9F, 0.8F, 0.7F, 0.1F, 0.8F, 0.2F});
  c.In<int64_t>({1}, {2}).In<float>({1}, {0.5F}).In<float>({1}, {0.15F}).Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.sizes, ElementsAre(4));
  EXPECT_THAT(c.Get<int64_t>(0), ElementsAre(0, 0, 0, 0, 0, 2, 1, 0, 1, 1, 0, 2));
  Call wrong("NonMaxSuppression");
  wrong.In<float>({1, 1, 4}, {0, 0, 1, 1}).In<float>({1, 1, 2}, {1, 1}).Out(DType::kI64);
  EXPECT_THAT(wrong.Run(), HasSubstr("do not fit"));
}

TEST(Host, ScatterAppliesUpdatesInOrder) {
  Call c("ScatterElements", "axis=i:0\n");
  c.In<float>({3}, {1, 2, 3})
      .In<int64_t>({3}, {-1, 0, -1})
      .In<float>({3}, {7, 8, 9})
      .Out(DType::kF32);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.Get<float>(0), ElementsAre(8, 2, 9));
  Call bad("ScatterElements");
  bad.In<float>({3}, {1, 2, 3}).In<int64_t>({1}, {3}).In<float>({1}, {7}).Out(DType::kF32);
  EXPECT_THAT(bad.Run(), HasSubstr("index 3 is outside [-3, 2]"));
  Call nd("ScatterND", "reduction=s:616464\n");  // "add"
  nd.In<float>({2, 2}, {1, 2, 3, 4})
      .In<int64_t>({2, 1}, {1, 1})
      .In<float>({2, 2}, {1, 1, 1, 1})
      .Out(DType::kF32);
  EXPECT_EQ(nd.Run(), "");
  EXPECT_THAT(nd.Get<float>(0), ElementsAre(1, 2, 5, 6));
}

TEST(Host, SequencesTakeNegativePositions) {
  Call make("SequenceConstruct");
  make.In<float>({1}, {1}).In<float>({2}, {2, 3}).OutObject(DType::kF32);
  EXPECT_EQ(make.Run(), "");
  Call at("SequenceAt", "fresh_dims=is:0\n");
  at.In(make.Got(0)).In<int64_t>({}, {-1}).Out(DType::kF32, {4096});
  EXPECT_EQ(at.Run(), "");
  EXPECT_THAT(at.sizes, ElementsAre(2));
  EXPECT_THAT(at.Get<float>(0), ElementsAre(2, 3));
}

TEST(Host, SequenceFaults) {
  Call make("SequenceConstruct");
  make.In<float>({1}, {1}).OutObject(DType::kF32);
  ASSERT_EQ(make.Run(), "");
  Call at("SequenceAt");
  at.In(make.Got(0)).In<int64_t>({}, {1}).Out(DType::kF32);
  EXPECT_THAT(at.Run(), HasSubstr("position 1 is outside [-1, 0]"));
  Call erase("SequenceErase");
  erase.In(Object{.kind = Object::Kind::kSequence}).OutObject(DType::kF32);
  EXPECT_THAT(erase.Run(), HasSubstr("nothing to erase"));
}

TEST(Host, StringsSplitAtWhiteSpaceOrDelimiter) {
  Call c("StringSplit", "maxsplit=i:1\n");
  c.In(Strings({" a b c ", "", "d"})).OutObject(DType::kString).Out(DType::kI64);
  EXPECT_EQ(c.Run(), "");
  EXPECT_THAT(c.sizes, ElementsAre(2));
  EXPECT_THAT(c.Got(0).strings, ElementsAre("a", "b c", "", "", "d", ""));
}

TEST(Host, PicturesAreDecodedByAnObjectOfTheirOwn) {
  const std::string pixels = "P6 2 1 255 \x01\x02\x03\xff\x80\x10";
  const auto decode = [](const std::string& file, const std::string& format) {
    Call c("ImageDecoder", "pixel_format=s:" + format + "\n");
    c.In<uint8_t>({static_cast<int64_t>(file.size())}, {file.begin(), file.end()}).Out(DType::kU8);
    const std::string why = c.Run();
    return std::make_tuple(why, c.sizes, why.empty() ? c.Get<uint8_t>(0) : std::vector<uint8_t>());
  };
  using testing::FieldsAre;
  const std::string rgb = "524742", bgr = "424752", grey = "477261797363616c65";  // in hex
  EXPECT_THAT(decode(pixels, rgb),
              FieldsAre("", ElementsAre(1, 2), ElementsAre(1, 2, 3, 255, 128, 16)));
  EXPECT_THAT(decode(pixels, bgr),
              FieldsAre("", ElementsAre(1, 2), ElementsAre(3, 2, 1, 16, 128, 255)));
  EXPECT_THAT(decode(pixels, grey), FieldsAre("", ElementsAre(1, 2), ElementsAre(2, 153)));
  EXPECT_THAT(std::get<0>(decode("GIF89a", rgb)), HasSubstr("unknown format; BMP, JPEG"));
  EXPECT_THAT(std::get<0>(decode("P6 70000 70000 255 ", rgb)), HasSubstr("70000 x 70000 pixels"));
  // Cut short, every format says so and none crashes.
  for (const std::string_view head : {"\xff\xd8\xff\xe0", "\xff\x4f\xff\x51", "II*", "BM",
                                      "\x89PNG", "P5 3 3 255", "RIFF....WEBP"})
    EXPECT_NE(std::get<0>(decode(std::string(head) + std::string(3, '\0'), rgb)), "") << head;
}

#ifdef GE_SANITIZED
// The search for leaks reads the loaded library's thread-local memory, wherever in a page the
// allocator puts it (tests/sanitizers.cc).
TEST(Host, LeaksAreSoughtAfterPicturesWereLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto load = [](int allocations) {
    for (int i = 0; i < allocations; ++i) std::vector<char>(48).at(1) = 1;
    Call c("ImageDecoder", "pixel_format=s:524742\n");
    c.In<uint8_t>({3}, {'P', '6', ' '}).Out(DType::kU8);
    const std::string why = c.Run();
    std::exit(why.find("libge_pictures") == std::string::npos ? 0 : 1);
  };
  for (int n = 0; n < 64; ++n) EXPECT_EXIT(load(n), testing::ExitedWithCode(0), "") << n;
}
#endif

TEST(Host, DamagedCallsAreRefused) {
  for (const char* name : {"TopK",
                           "NonZero",
                           "Compress",
                           "Unique",
                           "NonMaxSuppression",
                           "ScatterElements",
                           "ScatterND",
                           "TensorScatter",
                           "SequenceAt",
                           "SequenceInsert",
                           "SplitToSequence",
                           "ConcatFromSequence",
                           "OptionalGetElement",
                           "StringConcat",
                           "StringSplit",
                           "StringNormalizer",
                           "RegexFullMatch",
                           "TfIdfVectorizer",
                           "LabelEncoder",
                           "MaxUnpool",
                           "ImageDecoder",
                           "TreeEnsemble"}) {
    ASSERT_NE(FindHost(name), nullptr) << name;
    EXPECT_NE(Call(name).Run(), "") << name << " without operands";
  }
}

bool Matches(const std::string& pattern, const std::string& text) {
  auto re = Regex::Compile(pattern);
  EXPECT_TRUE(re.ok()) << pattern << ": " << re.status().message();
  return re.ok() && re->FullMatch(text);
}

TEST(Regex, MatchesWhole) {
  EXPECT_TRUE(Matches("a?b*c+", "bbcc"));
  EXPECT_FALSE(Matches("a?b*c+", "abb"));
  EXPECT_TRUE(Matches("(ab|a)(bc|c)?", "abc"));
  EXPECT_TRUE(Matches("x{2,3}y{0,}", "xxyyyy"));
  EXPECT_FALSE(Matches("x{2,3}", "xxxx"));
  EXPECT_TRUE(Matches("(a+)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
  EXPECT_FALSE(Matches("(a+)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
  EXPECT_TRUE(Matches("www\\.[\\w.-]+\\.\\bcom\\b", "www.ge.com"));
  EXPECT_TRUE(
      Matches("(?i)stra\xc3\x9f"
              "e.",
              "STRA\xc3\x9f"
              "E\xc3\xa9"));
  EXPECT_TRUE(Matches("[^a-c]\\D\\S", "dx-"));
  EXPECT_TRUE(Matches("", ""));
  EXPECT_TRUE(Matches("a||b", ""));
}

TEST(Regex, FaultsHavePlaces) {
  for (const char* pattern : {"(", ")", "[a", "*a", "a{3,2}", "a{2000}", "\\", "[b-a]", "(?<a"})
    EXPECT_FALSE(Regex::Compile(pattern).ok()) << pattern;
  EXPECT_THAT(Regex::Compile("ab(c").status().message(), HasSubstr("at character 4"));
}

}  // namespace
}  // namespace ge::rt

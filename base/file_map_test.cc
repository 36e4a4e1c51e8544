// Files through maps, hashes, and the floating-point state.
#include "base/file_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "base/fp_state.h"
#include "base/hash.h"

namespace ge {
namespace {

std::string TempName(const char* name) {
  return testing::TempDir() + "ge_" + std::to_string(getpid()) + "_" + name;
}

TEST(FileMapTest, WritesAndReads) {
  const std::string path = TempName("map");
  {
    auto created = FileMap::Create(path, 5);
    ASSERT_TRUE(created.ok()) << created.status().message();
    std::memcpy(created->writable().data(), "hello", 5);
  }
  auto copy = FileMap::OpenPrivate(path);
  ASSERT_TRUE(copy.ok());
  copy->writable()[0] = std::byte{'j'};
  auto read = FileMap::Open(path);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(read->bytes().data(), "hello", 5), 0);
  unlink(path.c_str());
}

TEST(FileMapTest, EmptyMissingAndForeign) {
  const std::string path = TempName("empty");
  ASSERT_TRUE(FileMap::Create(path, 0).ok());
  auto empty = FileMap::Open(path);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
  unlink(path.c_str());
  auto missing = FileMap::Open(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find(path), std::string::npos);
  EXPECT_FALSE(FileMap::Open(testing::TempDir()).ok());
}

TEST(HashTest, KnownValues) {
  EXPECT_EQ(Hash64(""), 0x2d06800538d394c2u);  // XXH3's value for no bytes
  EXPECT_NE(Hash64("a"), Hash64("b"));
  EXPECT_EQ(HashHex("").size(), 32u);
  EXPECT_EQ(HashHex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(FpStateTest, FlushesDenormalsAndRestores) {
  volatile float tiny = std::numeric_limits<float>::denorm_min();
  volatile float one = 1.0f;
  {
    const FpState state;
    EXPECT_EQ(tiny * one, 0.0f);
  }
  EXPECT_NE(tiny * one, 0.0f);
}

}  // namespace
}  // namespace ge

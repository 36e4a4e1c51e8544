// .om files: what was written is read, and damage anywhere is refused or harmless.
#include "om/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "base/file_map.h"
#include "base/hash.h"

namespace ge::om {
namespace {

using ::testing::HasSubstr;

std::string Folder() {
  // Removed when the process ends; not by a child that it forked.
  struct Folder {
    const pid_t owner = getpid();
    const std::string path = testing::TempDir() + "ge_om_" + std::to_string(owner);
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      if (getpid() == owner) std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

OmContents Contents() {
  auto plan = ParsePlan(R"(
    plan {name="m" chip="host" arena_bytes=64}
    buffer {name="x" kind=input dtype=f32 index=0 dims=[4] bytes=16}
    buffer {name="w" kind=const dtype=f32 dims=[4] bytes=16 offset=0}
    buffer {name="t" kind=arena dtype=f32 dims=[4] bytes=16 offset=0 first=0 last=1}
    buffer {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    kernel {name="k" hash="1" text="text"}
    task {kind=launch name="a" kernel=0 args=[0, 1, 2] grid=1}
    task {kind=launch name="b" kernel=0 args=[2, 1, 3] grid=1}
    input {name="x" dtype=f32 dims=[4] buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=3})");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  OmContents contents;
  contents.plan = *plan;
  contents.code = "no real code";
  contents.cpu_features = {"avx2", "fma"};
  contents.description = "{\"a\": 1}";
  contents.ir_text = "graph";
  contents.weight_bytes = 5000;
  contents.fill_weights = [](std::byte* out) -> Status {
    std::memset(out, 7, 5000);
    return {};
  };
  return contents;
}

std::vector<std::byte> Written() {
  const std::string path = Folder() + "/m.om";
  const Status status = WriteOm(path, Contents());
  EXPECT_TRUE(status.ok()) << status.message();
  auto map = FileMap::Open(path);
  EXPECT_TRUE(map.ok());
  return {map->bytes().begin(), map->bytes().end()};
}

TEST(OmFileTest, ReadsBack) {
  const auto bytes = Written();
  auto view = ReadOm(bytes, true);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(ToString(view->plan), ToString(Contents().plan));
  EXPECT_EQ(view->description, "{\"a\": 1}");
  EXPECT_EQ(view->ir_text, "graph");
  EXPECT_EQ(view->code.size(), 12u);
  EXPECT_EQ(view->cpu_features, (std::vector<std::string>{"avx2", "fma"}));
  ASSERT_EQ(view->weights.size(), 5000u);
  EXPECT_EQ(view->weights[4999], std::byte{7});
  EXPECT_EQ((view->weights.data() - bytes.data()) % 4096, 0);
  EXPECT_EQ(view->sections.size(), 5u);
}

TEST(OmFileTest, AFailedWriteLeavesNothing) {
  const std::string folder = Folder();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  OmContents contents = Contents();
  contents.fill_weights = [](std::byte*) { return Invalid("no weights today"); };
  EXPECT_THAT(WriteOm(folder + "/m.om", contents).message(), HasSubstr("no weights today"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  contents = Contents();
  contents.plan.tasks[0].kernel = 9;
  EXPECT_THAT(WriteOm(folder + "/m.om", contents).message(), HasSubstr("bad kernel"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_FALSE(WriteOm(folder + "/nowhere/m.om", Contents()).ok());
}

TEST(OmFileTest, EveryTruncationIsRefused) {
  const auto bytes = Written();
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy, so that a sanitizer sees a read past the end.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    ASSERT_FALSE(ReadOm(cut, false).ok()) << length;
  }
}

TEST(OmFileTest, FlippedBitsAreRefused) {
  const auto bytes = Written();
  const auto clean = ReadOm(bytes, true);
  ASSERT_TRUE(clean.ok());
  const auto begin = static_cast<size_t>(clean->weights.data() - bytes.data());
  const auto ir =
      static_cast<size_t>(clean->ir_text.data() - reinterpret_cast<const char*>(bytes.data()));
  std::mt19937 random(2);
  int harmless = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> flipped = bytes;
    const size_t bit = random() % (bytes.size() * 8);
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto view = ReadOm(flipped, true);
    // Only padding between sections is not covered.
    if (view.ok()) {
      ++harmless;
      EXPECT_EQ(ToString(view->plan), ToString(clean->plan));
      EXPECT_LT(bit / 8, begin);
    }
    const size_t byte = bit / 8;
    const bool on_request = byte >= begin || (byte >= ir && byte < ir + clean->ir_text.size());
    EXPECT_EQ(ReadOm(flipped, false).ok(), on_request || view.ok()) << byte;
  }
  EXPECT_LT(harmless, 450);
}

// An attacker's file: every checksum is right, the table is not.
TEST(OmFileTest, ForgedTablesAreRefused) {
  const auto bytes = Written();
  uint32_t header = 0;
  std::memcpy(&header, bytes.data() + 12, 4);
  const int64_t lies[] = {-1,
                          0,
                          1,
                          8,
                          1 << 20,
                          std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min()};
  int refused = 0;
  for (size_t at = 8; at + 8 <= header - 8; at += 4) {
    for (const int64_t lie : lies) {
      std::vector<std::byte> forged = bytes;
      std::memcpy(forged.data() + at, &lie, 8);
      const uint64_t checksum = Hash64(forged.data(), header - 8);
      std::memcpy(forged.data() + header - 8, &checksum, 8);
      refused += !ReadOm(forged, false).ok();
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(OmFileTest, ForeignFiles) {
  const std::string text =
      "This is not a model, but a text that is long enough to be taken for one.";
  EXPECT_THAT(ReadOm(std::as_bytes(std::span(text)), false).status().message(),
              HasSubstr("foreign"));
  auto bytes = Written();
  bytes[8] = std::byte{9};
  EXPECT_THAT(ReadOm(bytes, false).status().message(), HasSubstr("format version 9"));
}

}  // namespace
}  // namespace ge::om

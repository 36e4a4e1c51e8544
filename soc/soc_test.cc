// Names are found or refused with the list; levels have the width that their flags promise.
#include "soc/soc.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ge {
namespace {

TEST(Soc, EmptyMeansHost) {
  std::string note;
  auto soc = FindSoc("", &note);
  ASSERT_TRUE(soc.ok());
  EXPECT_EQ(soc->name, "host");
  EXPECT_TRUE(note.empty());
  EXPECT_GE(soc->l1_bytes, 8 << 10);
}

TEST(Soc, LevelsDifferInWidth) {
  EXPECT_EQ(FindSoc("x86-64-v3", nullptr)->F32Lanes(), 8);
  EXPECT_EQ(FindSoc("x86-64-v4", nullptr)->F32Lanes(), 16);
  EXPECT_FALSE(FindSoc("x86-64-v3", nullptr)->masks);
  EXPECT_TRUE(FindSoc("sapphirerapids", nullptr)->amx);
}

// Code for the emulated chip must run where the real one's is refused, and be the same otherwise.
TEST(Soc, EmulatedTilesNeedNoFeature) {
  const SocSpec real = *FindSoc("sapphirerapids", nullptr),
                emulated = *FindSoc("sapphirerapids-emulated", nullptr);
  auto needs_amx = [](const SocSpec& soc) {
    return std::any_of(soc.features.begin(), soc.features.end(),
                       [](const std::string& f) { return f.starts_with("amx"); });
  };
  EXPECT_TRUE(needs_amx(real));
  EXPECT_FALSE(needs_amx(emulated));
  EXPECT_TRUE(emulated.amx && emulated.amx_in_c && !real.amx_in_c);
  EXPECT_EQ(real.cc_flags, emulated.cc_flags);
}

TEST(Soc, ArmIsAnotherMachine) {
  auto soc = FindSoc("aarch64", nullptr);
  ASSERT_TRUE(soc.ok());
  EXPECT_TRUE(soc->IsArm());
  EXPECT_EQ(soc->F32Lanes(), 4);
  EXPECT_FALSE(HostSoc().IsArm());
}

TEST(Soc, AscendIsHostWithNote) {
  std::string note;
  auto soc = FindSoc("Ascend310P3", &note);
  ASSERT_TRUE(soc.ok());
  EXPECT_EQ(soc->name, "host");
  EXPECT_NE(note.find("Ascend310P3"), std::string::npos);
}

TEST(Soc, UnknownIsRefusedWithNames) {
  auto soc = FindSoc("z80", nullptr);
  ASSERT_FALSE(soc.ok());
  EXPECT_EQ(soc.status().code(), Code::kInvalidArgument);
  EXPECT_NE(soc.status().message().find("x86-64-v4"), std::string::npos);
}

}  // namespace
}  // namespace ge

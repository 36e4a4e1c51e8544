// ge compare names what is to blame: rules that are wrong on purpose, which only this program has,
// must be found by bisection among all passes and rules, and the value where they begin to differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "opt/rule.h"
#include "tools/verbs.h"

namespace ge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ValueId AsTanh(const Match& m, Patch& p) { return p.Add("Tanh", {m["x"]}); }
ValueId AsFloor(const Match& m, Patch& p) { return p.Add("Floor", {m["x"]}); }

const bool kRules =
    RegisterRules({{.name = "a_wrong_softsign", .pattern = "Softsign(x)", .replace = AsTanh},
                   {.name = "z_wrong_ceil", .pattern = "Ceil(x)", .replace = AsFloor}});

// What `ge compare` says of a graph, and its exit code.
std::string Compare(const std::string& body, int* code) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ge_blame_" + std::to_string(getpid()) + ".ir");
  std::ofstream(path) << "graph \"g\" (%x: f32[8,32]) -> (%y) {\n" << body << "}\n";
  CLI::App app;
  *code = 0;
  AddCompareVerb(app, *code);
  testing::internal::CaptureStdout();
  app.parse("compare " + path.string() + " --levels --threads 1");
  std::filesystem::remove(path);
  return testing::internal::GetCapturedStdout();
}

TEST(Blame, TheRuleAndTheFirstValueAreNamed) {
  ASSERT_TRUE(kRules);
  int code = 0;
  const std::string out =
      Compare("  %a = Exp(%x)\n  %bad = Softsign(%a)\n  %c = Sqrt(%bad)\n  %y = Neg(%c)\n", &code);
  EXPECT_NE(code, 0);
  EXPECT_THAT(out, HasSubstr("to blame: a_wrong_softsign\n"));
  EXPECT_THAT(out, HasSubstr("the first that differs is bad\n"));
}

// The first of two in the order of enabling.
TEST(Blame, OneOfTwo) {
  int code = 0;
  const std::string out =
      Compare("  %a = Ceil(%x)\n  %b = Exp(%a)\n  %c = Softsign(%b)\n  %y = Add(%c, %a)\n", &code);
  EXPECT_NE(code, 0);
  EXPECT_THAT(out, HasSubstr("to blame: a_wrong_softsign\n"));
  EXPECT_THAT(out, HasSubstr("the first that differs is a\n"));
}

TEST(Blame, TheLastOfAllRules) {
  int code = 0;
  EXPECT_THAT(Compare("  %a = Exp(%x)\n  %b = Ceil(%a)\n  %y = Neg(%b)\n", &code),
              HasSubstr("to blame: z_wrong_ceil\n"));
  EXPECT_NE(code, 0);
}

TEST(Blame, NobodyWhereNothingDiffers) {
  int code = 0;
  EXPECT_THAT(Compare("  %a = Exp(%x)\n  %b = Sqrt(%a)\n  %y = Neg(%b)\n", &code),
              Not(HasSubstr("to blame")));
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace ge

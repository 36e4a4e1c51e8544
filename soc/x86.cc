// The x86-64 levels: what every chip of that level can run. Level 3 is AVX2 with FMA, level 4
// AVX-512.
//
// Feature names are those of __builtin_cpu_supports, so that a loader can check them one by one.
#include <string>

#include "soc/chips.h"

namespace ge {

SocSpec X86Level(int level) {
  SocSpec soc;
  soc.name = level >= 4 ? "x86-64-v4" : "x86-64-v3";
  soc.features = {"avx2", "fma", "bmi2"};
  soc.cc_flags = {"-march=x86-64-v3"};
  if (level >= 4) {
    soc.vector_bytes = 64;
    soc.vector_registers = 32;
    soc.masks = true;
    soc.cc_flags = {"-march=x86-64-v4", "-mprefer-vector-width=512"};
    for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) {
      soc.features.push_back(f);
    }
  }
  return soc;
}

namespace {

[[maybe_unused]] const bool kKnown =
    RegisterChip({"x86-64-v3", [](std::string_view, std::string*) { return X86Level(3); }}) &&
    RegisterChip({"x86-64-v4", [](std::string_view, std::string*) { return X86Level(4); }});

}  // namespace
}  // namespace ge

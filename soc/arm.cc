// 64-bit ARM with its 128-bit vector unit (NEON, part of every such chip). Code for it is
// cross-compiled by clang, or by a gcc for that machine (GE_CC=aarch64-linux-gnu-gcc).
//
// Numbers are those of a server core of the Neoverse N1 kind: two 128-bit FMAs per cycle.
#include "soc/chips.h"

namespace ge {

SocSpec Aarch64() {
  SocSpec soc;
  soc.name = "aarch64";
  soc.machine = "aarch64";
  soc.vector_bytes = 16;
  soc.vector_registers = 32;
  soc.l1_bytes = 64 << 10;
  soc.l2_bytes = 1 << 20;
  soc.ghz = 2.6;
  soc.features = {"neon"};
  return soc;
}

namespace {

[[maybe_unused]] const bool kKnown =
    RegisterChip({"aarch64", [](std::string_view, std::string*) { return Aarch64(); }});

}  // namespace
}  // namespace ge

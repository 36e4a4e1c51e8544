// The fields of every record of a plan, named once. Encoder, decoder, printer and parser are
// archives that visit them, so that the forms cannot differ. Binary order is the order here:
// changing it means a new kFormatVersion.
//
// An archive has operator()(name, T& field, default) for int64_t, int32_t, uint8_t and std::string,
// lists of int32_t, and Size, Sizes, Enum and Type for what prints differently. A text form may
// leave out a field that equals its default.
#pragma once

#include <array>
#include <limits>
#include <string_view>

#include "om/plan.h"

namespace ge::om {

inline constexpr std::array<std::string_view, 7> kBufferKinds = {
    "input", "output", "const", "arena", "pool", "slot", "store"};
inline constexpr std::array<std::string_view, 7> kTaskKinds = {
    "launch", "host", "jump", "jump_unless", "bind", "spill", "fetch"};
inline constexpr std::array<std::string_view, 16> kSizeOps = {
    "const",  "symbol", "add", "mul", "div", "mod", "min", "max",
    "select", "lt",     "le",  "eq",  "ne",  "and", "or",  "not"};

struct PlanHeader {  // the plan's own scalar fields
  std::string model_name, chip;
  int64_t arena_bytes = -1;
  int32_t slots = 0;
};

template <class A>
void Fields(A& a, PlanHeader& r) {
  a("name", r.model_name, "");
  a("chip", r.chip, "");
  a("arena_bytes", r.arena_bytes, -1);
  a("slots", r.slots, 0);
}

template <class A>
void Fields(A& a, Symbol& r) {
  a("name", r.name, "");
  a("lo", r.lo, 0);
  a("hi", r.hi, std::numeric_limits<int32_t>::max());
  a("multiple_of", r.multiple_of, 1);
  a("input", r.input, -1);
  a("dim", r.dim, -1);
}

template <class A>
void Fields(A& a, Check& r) {
  a.Size("condition", r.condition);
  a("message", r.message, "");
}

template <class A>
void Fields(A& a, Buffer& r) {
  a("name", r.name, "");
  a.Enum("kind", r.kind, kBufferKinds);
  a.Type("dtype", r.dtype);
  a("index", r.index, -1);
  a.Sizes("dims", r.dims);
  a.Size("bytes", r.bytes);
  a("offset", r.offset, -1);
  a("first", r.first, -1);
  a("last", r.last, -1);
  a("alias", r.alias, -1);
  a.Size("alias_offset", r.alias_offset);
}

template <class A>
void Fields(A& a, Kernel& r) {
  a("name", r.name, "");
  a("hash", r.hash, "");
  a("text", r.text, "");
}

template <class A>
void Fields(A& a, Task& r) {
  a.Enum("kind", r.kind, kTaskKinds);
  a("name", r.name, "");
  a("kernel", r.kernel, -1);
  a("host", r.host, "");
  a("args", r.args);
  a("outs", r.outs);
  a.Sizes("sizes", r.sizes);
  a.Size("grid", r.grid);
  a.Size("scratch", r.scratch);
  a("cost", r.cost, 0);
  a("attrs", r.attrs, "");
  a("binds", r.binds);
  a("element", r.element, 0);
  a("target", r.target, -1);
  a("lane", r.lane, -1);
  a("waits", r.waits);
}

template <class A>
void Fields(A& a, IoTensor& r) {
  a("name", r.name, "");
  a.Type("dtype", r.dtype);
  a.Sizes("dims", r.dims);
  a("buffer", r.buffer, -1);
}

}  // namespace ge::om

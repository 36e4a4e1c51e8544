// Interpreter: state of one call, and the kernel ABI. See interpret.h.
#include "tile/interpret.h"

#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/fp_state.h"
#include "tile/interpret_steps.h"
#include "tile/scalar.h"

namespace ge::tile {
namespace {

using interpret::Frame;
using interpret::kLanes;
using interpret::kRowBytes;

struct FreeRows {
  void operator()(std::byte* p) const { std::free(p); }
};

void FillConstant(const interpret::CompiledKernel::ConstantRow& c, const Frame& f) {
  scalar::VisitType(c.type, [&](auto zero) {
    using T = decltype(zero);
    T v;
    if constexpr (scalar::kIsFloat<T>)
      v = static_cast<T>(c.f);
    else
      v = static_cast<T>(c.i);
    T* row = f.Row<T>(c.row);
    for (int j = 0; j < kLanes; ++j) row[j] = v;
  });
}

}  // namespace

struct Interpreter::Program {
  Kernel kernel;
  interpret::CompiledKernel code;
};

Interpreter::Interpreter(const Kernel& kernel) {
  if (Status s = Verify(kernel); !s.ok()) {
    GE_CHECK(false, "kernel " + kernel.name + ": " + s.message());
  }
  auto p = std::make_unique<Program>();
  p->kernel = kernel;
  p->code = interpret::CompileForRows(p->kernel);
  program_ = std::move(p);
}

Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

static const std::vector<std::byte> kEmpty(1 << 20);

void Interpreter::Run(const ge_kernel_call& call, int64_t begin, int64_t end) const {
  if (begin >= end) return;
  const Program& p = *program_;
  const interpret::CompiledKernel& code = p.code;
  FpState fp_state;
  Frame f;
  f.kernel = &p.kernel;
  f.grid_begin = begin;
  f.grid_end = end;
  std::vector<int64_t> slots(static_cast<size_t>(code.num_slots) + 1);
  for (size_t i = 0; i < code.size_slots.size(); ++i) slots[code.size_slots[i]] = call.sizes[i];
  f.slots = slots.data();
  interpret::Fill(code.values, f);
  std::unique_ptr<std::byte, FreeRows> rows(static_cast<std::byte*>(
      std::aligned_alloc(64, static_cast<size_t>(code.num_rows + 1) * kRowBytes)));
  f.rows = rows.get();
  std::vector<std::byte*> buffers(p.kernel.buffers.size());
  std::vector<int64_t> elements(p.kernel.buffers.size());
  for (size_t i = 0; i < code.arg_elements.size(); ++i) {
    buffers[i] = static_cast<std::byte*>(call.buffers[i]);
    elements[i] = code.arg_elements[i].Eval(f);
    if (elements[i] != 0 || p.kernel.buffers[i].written) continue;
    // Element functions may load from what is empty and leave the value out (Lowering::LoadOr).
    buffers[i] = const_cast<std::byte*>(kEmpty.data());
    elements[i] = static_cast<int64_t>(kEmpty.size() / 16);
  }
  f.buffers = buffers.data();
  f.elements = elements.data();
  std::vector<std::vector<std::byte>> locals(p.kernel.buffers.size());
  f.locals = &locals;
  for (const auto& c : code.constants) FillConstant(c, f);
  interpret::RunSteps(code.steps, f);
}

int64_t Interpreter::Grid(const int64_t* sizes) const {
  const interpret::CompiledKernel& code = program_->code;
  std::vector<int64_t> slots(static_cast<size_t>(code.num_slots) + 1);
  for (size_t i = 0; i < code.size_slots.size(); ++i) slots[code.size_slots[i]] = sizes[i];
  Frame f;
  f.slots = slots.data();
  interpret::Fill(code.values, f);
  return code.grid.Eval(f);
}

extern "C" void GeInterpretKernel(const ge_kernel_call* call, int64_t begin, int64_t end) {
  static_cast<const Interpreter*>(call->self)->Run(*call, begin, end);
}

}  // namespace ge::tile

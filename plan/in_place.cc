// Which arguments of a kernel may be one buffer: the kernel has one written argument, loads the
// other only at the element that it stores (residual inputs of epilogues, pointwise chains), and so
// never reads an element after it is overwritten. Borders, which are filled with constants, are not
// read here: what a chunk reads lies where it stores what it computes, and each place is stored
// once. Or the kernel was written for it, and says so.
#include <algorithm>

#include "plan/plan_builder.h"

namespace ge {
namespace {

struct Stores {
  std::vector<Expr> index;    // distinct places of stores of what is computed, to args
  int written = -1;           // the only written argument; -2: several
  std::vector<int> streamed;  // read by BrGemm
};

void Walk(const tile::Kernel& k, const tile::Stmt& s, Stores& out) {
  if (s.kind == tile::StmtKind::kStore && k.buffers[s.buffer].is_arg) {
    if (out.written == -1) out.written = s.buffer;
    if (out.written != s.buffer) out.written = -2;
    const bool computed = k.values[static_cast<size_t>(s.value)].op != tile::Op::kConst;
    if (computed && std::find(out.index.begin(), out.index.end(), s.index) == out.index.end()) {
      out.index.push_back(s.index);
    }
  }
  if (s.kind == tile::StmtKind::kBrGemm) {
    out.streamed.push_back(s.gemm.a_buffer);
    out.streamed.push_back(s.gemm.b_buffer);
  }
  for (const tile::Stmt& b : s.body) Walk(k, b, out);
  for (const tile::Stmt& b : s.orelse) Walk(k, b, out);
}

}  // namespace

std::vector<std::pair<int, int>> InPlaceArgs(const LoweredKernel& lowered) {
  const tile::Kernel& kernel = lowered.kernel;
  Stores stores;
  Walk(kernel, kernel.body, stores);
  if (stores.written >= 0 && lowered.over >= 0) return {{lowered.over, stores.written}};
  if (stores.written < 0 || stores.index.size() != 1) return {};
  const tile::Buffer& to = kernel.buffers[stores.written];
  std::vector<bool> fits(kernel.buffers.size(), false);
  for (size_t i = 0; i < fits.size(); ++i) {
    const tile::Buffer& b = kernel.buffers[i];
    fits[i] = b.is_arg && !b.written && static_cast<int>(i) != stores.written &&
              b.dtype == to.dtype && b.elements == to.elements;
  }
  for (int b : stores.streamed) {
    if (b >= 0) fits[b] = false;
  }
  for (const tile::ValueNode& v : kernel.values) {
    if (v.op == tile::Op::kLoad && !(v.index == stores.index[0])) fits[v.buffer] = false;
  }
  std::vector<std::pair<int, int>> out;
  for (size_t i = 0; i < fits.size(); ++i) {
    if (fits[i]) out.emplace_back(static_cast<int>(i), stores.written);
  }
  return out;
}

}  // namespace ge

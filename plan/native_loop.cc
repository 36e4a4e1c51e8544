// A counted loop over small kernels becomes one kernel: the loop inside, the kernels of the body
// one after the other. What the body's tasks would do besides launching (copies of carried values,
// slices, the counter) becomes loads and stores.
//
// Only where nothing is lost: every part is static and so small that no other worker would have
// taken a share of it.
#include <algorithm>
#include <map>
#include <memory>

#include "abi/dtype.h"
#include "base/check.h"
#include "plan/plan_builder.h"
#include "tile/builder.h"
#include "tile/splice.h"

namespace ge {
namespace {

constexpr size_t kMostParts = 24;
constexpr size_t kMostValues = 4000;      // of the parts: compilers take their time
constexpr double kMostPartNs = 3000;      // what the runtime does not share either
constexpr int64_t kMostCopied = 1 << 14;  // elements
constexpr double kTripsGuess = 100;

bool Computes(DType t) {
  return BitWidth(t) >= 8 && (IsFloat(t) || IsInteger(t) || t == DType::kBool);
}

// to[i] = from[i]
tile::Kernel CopyKernel(ExprArena& arena, DType t, int64_t count) {
  tile::Kernel k;
  tile::Builder b(k, arena);
  const int from = b.Arg("from", t, count, false), to = b.Arg("to", t, count, true);
  b.For("i", count, tile::LoopKind::kVector, [&](Expr i) { b.Store(to, i, b.Load(from, i)); });
  return k;
}

// to[i] = values[i]
tile::Kernel SizesKernel(ExprArena& arena, DType t, const std::vector<Expr>& values) {
  tile::Kernel k;
  tile::Builder b(k, arena);
  const int to = b.Arg("to", t, static_cast<int64_t>(values.size()), true);
  for (size_t i = 0; i < values.size(); ++i)
    b.Store(to, static_cast<int64_t>(i), b.Convert(b.Index(values[i]), t));
  return k;
}

}  // namespace

// The kernel under construction and whose memory its arguments are.
struct PlanBuilder::NativeLoop {
  tile::Kernel kernel;
  std::vector<int32_t> args;                       // buffers
  std::map<int, int32_t> place;                    // root -> argument
  std::vector<const tile::Kernel*> sources;        // in the order of the tasks
  std::vector<std::unique_ptr<tile::Kernel>> own;  // those that stand for host tasks
  std::vector<std::vector<std::pair<int32_t, Expr>>> places;
  double cost_ns = 0;
};

// Buffer `b` of a task as an argument of the loop's kernel and an offset in it; false if it has no
// static place there.
bool PlanBuilder::PlaceInLoop(int b, DType dtype, bool written, NativeLoop& native,
                              std::pair<int32_t, Expr>* out) {
  int at = Find(b);
  Expr offset = 0;
  for (; slice_of_[at] >= 0; at = Find(slice_of_[at])) offset = offset + slice_offset_[at];
  if (IsSlot(at)) return false;
  const int64_t width = BitWidth(dtype) / 8;
  if (BitWidth(dtype) < 8 && !offset.IsConst(0)) return false;
  if (width > 1) offset = FloorDiv(offset, width);
  const auto [known, fresh] = native.place.emplace(at, static_cast<int32_t>(native.args.size()));
  *out = {known->second, offset};
  if (fresh) {
    const int bits = BitWidth(dtype);
    const Expr elements = bits >= 8 ? FloorDiv(bytes_[at], width) : bytes_[at] * (8 / bits);
    native.args.push_back(at);
    native.kernel.buffers.push_back({plan_.buffers[at].name, dtype, true, written, elements});
    return true;
  }
  tile::Buffer& held = native.kernel.buffers[static_cast<size_t>(known->second)];
  held.written |= written;
  return held.dtype == dtype;
}

// One task as a part of the kernel; false if it cannot be one.
bool PlanBuilder::AddPart(size_t index, ExprArena& arena, Expr iter, NativeLoop& native) {
  const om::Task& task = plan_.tasks[index];
  const tile::Kernel* kernel = nullptr;
  std::vector<int32_t> args;
  if (task.kind == om::TaskKind::kLaunch) {
    const LoweredKernel& k = *out_.kernels[static_cast<size_t>(task.kernel)];
    for (Expr s : k.kernel.symbols)
      if (!(s == iter)) return false;
    if (k.cost_ns > kMostPartNs || !k.grid.IsConst()) return false;
    native.cost_ns += k.cost_ns;
    kernel = &k.kernel;
    args = task.args;
  } else if (task.kind == om::TaskKind::kHost && task.host == "Copy") {
    const int from = task.args[0], to = task.outs[0];
    const auto t = static_cast<DType>(plan_.buffers[to].dtype);
    if (IsSlot(from) || IsSlot(to) || plan_.buffers[from].dtype != plan_.buffers[to].dtype)
      return false;
    if (!Computes(t) || !(bytes_[from] == bytes_[to]) || !bytes_[to].IsConst()) return false;
    const int64_t count = bytes_[to].value() / (BitWidth(t) / 8);
    if (count > kMostCopied) return false;
    native.cost_ns += 1 + static_cast<double>(count) / 16;
    native.own.push_back(std::make_unique<tile::Kernel>(CopyKernel(arena, t, count)));
    kernel = native.own.back().get();
    args = {from, to};
  } else if (task.kind == om::TaskKind::kHost && task.host == "Sizes") {
    const auto t = static_cast<DType>(plan_.buffers[task.outs[0]].dtype);
    const auto values = size_values_.find(index);
    if (!Computes(t) || values == size_values_.end()) return false;
    native.own.push_back(std::make_unique<tile::Kernel>(SizesKernel(arena, t, values->second)));
    kernel = native.own.back().get();
    args = {task.outs[0]};
  } else {
    return false;
  }
  std::vector<std::pair<int32_t, Expr>> places;
  for (size_t i = 0; i < args.size(); ++i) {
    const tile::Buffer& b = kernel->buffers[i];
    if (args[i] < 0 || !PlaceInLoop(args[i], b.dtype, b.written, native, &places.emplace_back()))
      return false;
  }
  native.sources.push_back(kernel);
  native.places.push_back(std::move(places));
  return true;
}

// The tasks from `first` on, which are one iteration, become one launch that does all of them.
bool PlanBuilder::MakeNative(const std::string& name, ExprArena& arena, Expr iter, Expr limit,
                             size_t first) {
  if (policy_.opt_level < 1 || plan_.tasks.size() - first > kMostParts) return false;
  NativeLoop native;
  size_t values = 0;
  for (size_t t = first; t < plan_.tasks.size(); ++t) {
    if (!AddPart(t, arena, iter, native)) return false;
    values += native.sources.back()->values.size();
  }
  if (native.sources.empty() || values > kMostValues) return false;
  tile::Stmt loop;
  loop.kind = tile::StmtKind::kLoop;
  loop.loop = tile::LoopKind::kSerial;
  loop.symbol = iter;
  loop.extent = Max(limit, 0);
  // A block of its own for each part: iterations are no lanes, each needs the one before.
  for (size_t i = 0; i < native.sources.size(); ++i)
    loop.body.push_back(tile::Splice(native.kernel, *native.sources[i], native.places[i]));
  native.kernel.name = name;
  native.kernel.body.kind = tile::StmtKind::kBlock;
  native.kernel.body.body.push_back(std::move(loop));
  tile::CollectSizeSymbols(native.kernel);
  const Status sound = tile::Verify(native.kernel);
  GE_CHECK(sound.ok(), sound.message() + "\n" + tile::ToString(native.kernel));

  int32_t kernels = static_cast<int32_t>(plan_.kernels.size());
  for (size_t t = first; t < plan_.tasks.size(); ++t)
    if (plan_.tasks[t].kernel >= 0) kernels = std::min(kernels, plan_.tasks[t].kernel);
  plan_.tasks.resize(first);
  plan_.kernels.resize(static_cast<size_t>(kernels));
  out_.kernels.resize(static_cast<size_t>(kernels));
  std::erase_if(native_kernels_, [&](int32_t k) { return k >= kernels; });
  native_kernels_.insert(kernels);

  auto whole = std::make_unique<LoweredKernel>();
  whole->kernel = std::move(native.kernel);
  whole->cost_ns =
      native.cost_ns * (limit.IsConst() ? static_cast<double>(limit.value()) : kTripsGuess);
  whole->schedule = "a loop of " + std::to_string(native.sources.size()) + " parts";
  const Expr scratch = tile::PlanScratch(whole->kernel).bytes;
  om::Task& t = AddTask(om::TaskKind::kLaunch, name);
  t.kernel = kernels;
  for (size_t i = 0; i < native.args.size(); ++i)
    if (whole->kernel.buffers[i].written) t.outs.push_back(native.args[i]);
  t.args = std::move(native.args);
  t.sizes = Sizes(whole->kernel.symbols);
  t.grid = Size(1);
  t.scratch = scratch.IsConst(0) ? -1 : Size(scratch);
  t.cost = static_cast<int64_t>(whole->cost_ns);
  plan_.kernels.push_back({.name = whole->kernel.name});
  out_.kernels.push_back(whole.get());
  out_.native_loops.push_back(std::move(whole));
  return true;
}

}  // namespace ge

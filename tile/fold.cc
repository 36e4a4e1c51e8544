// Folding of constant operations: see fold.h.
#include "tile/fold.h"

#include "abi/convert.h"
#include "tile/scalar.h"

namespace ge::tile {
namespace {

template <class T>
T ValueOf(const ValueNode& n) {
  if constexpr (scalar::kIsFloat<T>)
    return static_cast<T>(n.f);
  else
    return static_cast<T>(n.i);
}

template <class T>
ValueNode ConstantOf(DType type, T v) {
  ValueNode n;
  n.type = type;
  if constexpr (scalar::kIsFloat<T>)
    n.f = v;
  else
    n.i = static_cast<int64_t>(v);
  return n;
}

// x as it comes back after a store to `storage`.
template <class T>
T Narrowed(DType storage, T x) {
  alignas(8) uint8_t cell[8] = {};
  StoreElement(storage, cell, 0, x);
  return LoadElement<T>(storage, cell, 0);
}

}  // namespace

bool IsComputeType(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kI32 || t == DType::kI64 ||
         t == DType::kU64 || t == DType::kBool;
}

DType ResultType(Op op, DType t) {
  bool gives_bool = op == Op::kIsNan || op == Op::kIsInf || (op >= Op::kLt && op <= Op::kNe);
  return gives_bool ? DType::kBool : t;
}

bool HasOp(Op op, DType t) {
  if (op == Op::kFma) return t == DType::kF32;
  bool has = false;
  scalar::VisitType(t, [&](auto zero) {
    using T = decltype(zero);
    has = scalar::VisitUnary<T>(op, [](auto) {}) || scalar::VisitBinary<T>(op, [](auto) {});
  });
  return has;
}

std::optional<ValueNode> Fold(const ValueNode& n, const ValueNode* a, const ValueNode* b) {
  if (a == nullptr || a->op != Op::kConst || (b != nullptr && b->op != Op::kConst)) return {};
  std::optional<ValueNode> result;
  scalar::VisitType(a->type, [&](auto zero) {
    using T = decltype(zero);
    const T x = ValueOf<T>(*a);
    auto set = [&](auto v) { result = ConstantOf(n.type, v); };
    if (n.op == Op::kCast) {
      scalar::VisitType(n.type, [&](auto to) { set(scalar::Cast<decltype(to)>(x)); });
    } else if (n.op == Op::kNarrow) {
      set(Narrowed(n.storage, x));
    } else if (n.op == Op::kBitCast) {
      scalar::VisitType(n.type, [&](auto to) {
        if constexpr (sizeof(to) == sizeof(T)) set(scalar::BitCast<decltype(to)>(x));
      });
    } else if (b == nullptr) {
      scalar::VisitUnary<T>(n.op, [&](auto f) { set(f(x)); });
    } else {
      scalar::VisitBinary<T>(n.op, [&](auto f) { set(f(x, ValueOf<T>(*b))); });
    }
  });
  return result;
}

}  // namespace ge::tile

// TensorType: dtype, logical dims and memory order. Text form: "f32[2,seq,768]" and
// "f32[1,64,56,56]{nc1hwc0:16}". Logical dims never change with the layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "abi/dtype.h"
#include "base/status.h"
#include "expr/expr.h"
#include "type/layout.h"

namespace ge {

struct TensorType {
  DType dtype = DType::kNone;
  std::vector<Expr> dims;
  Layout layout;
  int rank() const { return static_cast<int>(dims.size()); }
  Expr Elements() const { return Product(dims); }
  bool IsStatic() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string ToString(const TensorType& type);
Result<TensorType> ParseTensorType(std::string_view text, ExprArena& arena);
Result<TensorType> ParseTensorType(TextReader& reader, ExprArena& arena);  // inside a larger text

}  // namespace ge

// CoupledProbabilities: of pairwise probabilities r[i, j] = P(class i | i or j), i < j, in the
// order (0,1), (0,2),
// ..., (1,2), ..., those of the classes: the p with sum 1 that makes sum over i != j of
// (r[j, i] p[i] - r[i, j] p[j])^2 least, by cyclic minimisation over one p[i] at a time (Wu, Lin
// and Weng, 2004).
#include <algorithm>
#include <cmath>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

// p of one row; q is the quadratic form above, [k, k].
std::vector<double> Minimise(const std::vector<double>& q, int64_t k) {
  std::vector<double> p(k, 1.0 / static_cast<double>(k)), slope(k);
  const int64_t most = std::max<int64_t>(100, k);
  for (int64_t round = 0; round < most; ++round) {
    double value = 0;
    for (int64_t i = 0; i < k; ++i) {
      slope[i] = 0;
      for (int64_t j = 0; j < k; ++j) slope[i] += q[i * k + j] * p[j];
      value += p[i] * slope[i];
    }
    double worst = 0;  // at the minimum all slopes are the value
    for (double s : slope) worst = std::max(worst, std::abs(s - value));
    if (worst < 0.005 / static_cast<double>(k)) break;
    for (int64_t i = 0; i < k; ++i) {
      const double own = q[i * k + i], step = (value - slope[i]) / own, sum = 1 + step;
      value = (value + step * (step * own + 2 * slope[i])) / (sum * sum);
      p[i] += step;
      for (int64_t j = 0; j < k; ++j) {
        slope[j] = (slope[j] + step * q[i * k + j]) / sum;
        p[j] /= sum;
      }
    }
  }
  return p;
}

Status CoupledProbabilities(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(CheckRank(x, 2, "pairs"));
  const int64_t rows = x.dims[0], k = call.attrs.Int("classes", 0), pairs = x.dims[1];
  if (k < 2 || k > 46000 || pairs != k * (k - 1) / 2 || !IsFloat(TypeOf(x)))
    return Invalid(std::to_string(pairs) + " pairs for " + std::to_string(k) + " classes");
  void* y;
  GE_TRY(Claim(call, 0, Shape{rows, k}, &y));
  constexpr double kLeast = 1e-7;
  std::vector<double> r(k * k), q(k * k);
  for (int64_t row = 0; y && row < rows; ++row) {
    int64_t at = row * pairs;
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = i + 1; j < k; ++j, ++at) {
        const double v = LoadElement<double>(TypeOf(x), x.data, at);
        r[i * k + j] = std::clamp(v, kLeast, 1 - kLeast);
        r[j * k + i] = 1 - r[i * k + j];
      }
    for (int64_t i = 0; i < k; ++i) {
      q[i * k + i] = 0;
      for (int64_t j = 0; j < k; ++j) {
        if (i == j) continue;
        q[i * k + i] += r[j * k + i] * r[j * k + i];
        q[i * k + j] = -r[j * k + i] * r[i * k + j];
      }
    }
    const std::vector<double> p = Minimise(q, k);
    for (int64_t i = 0; i < k; ++i)
      StoreElement<double>(static_cast<DType>(call.outputs[0].dtype), y, row * k + i, p[i]);
  }
  return {};
}

[[maybe_unused]] const bool kRegistered =
    RegisterHost("CoupledProbabilities", CoupledProbabilities);

}  // namespace
}  // namespace ge::rt

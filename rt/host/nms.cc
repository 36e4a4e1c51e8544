// NonMaxSuppression: for each batch entry and class, boxes by falling score; a box is selected if
// no selected one of its class overlaps it by more than iou_threshold. Rows are (batch, class,
// box).
#include <algorithm>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

struct Box {
  float y0, x0, y1, x1, area;
};

Box BoxOf(float y0, float x0, float y1, float x1) {
  return {y0, x0, y1, x1, (y1 - y0) * (x1 - x0)};
}

Box BoxAt(const float* p, bool centre) {
  if (centre) {  // x, y, width, height
    const float w = p[2] / 2, h = p[3] / 2;
    return BoxOf(p[1] - h, p[0] - w, p[1] + h, p[0] + w);
  }
  return BoxOf(std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]),
               std::max(p[1], p[3]));
}

bool Overlaps(const Box& a, const Box& b, float threshold) {
  const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0),
              w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(h > 0) || !(w > 0)) return false;
  const float common = h * w, all = a.area + b.area - common;
  return a.area > 0 && b.area > 0 && all > 0 && common / all > threshold;
}

struct Limits {
  int64_t most = 0;
  float iou = 0, score = 0;
  bool has_score = false, centre = false;
};

Status Scalar(HostCall& call, size_t i, double otherwise, double* v) {
  *v = otherwise;
  if (!Present(call, i)) return {};
  HostTensor t;
  GE_TRY(TensorIn(call, i, &t));
  if (Count(t.dims) != 1)
    return Invalid("operand " + std::to_string(i) + " " + Text(t.dims) + " must have one element");
  *v = LoadElement<double>(TypeOf(t), t.data, 0);
  return {};
}

std::vector<int64_t> Select(const float* boxes, const float* scores, int64_t n,
                            const Limits& limits) {
  // A heap: mostly few boxes are looked at before enough are chosen.
  auto after = [&](int64_t a, int64_t b) {
    return scores[a] < scores[b] || (scores[a] == scores[b] && a > b);
  };
  std::vector<int64_t> order, chosen;
  for (int64_t i = 0; i < n; ++i)
    if (!limits.has_score || scores[i] > limits.score) order.push_back(i);
  std::make_heap(order.begin(), order.end(), after);
  std::vector<Box> kept;
  for (auto end = order.end(); end != order.begin(); --end) {
    if (static_cast<int64_t>(chosen.size()) >= limits.most) break;
    std::pop_heap(order.begin(), end, after);
    const int64_t i = end[-1];
    const Box box = BoxAt(boxes + i * 4, limits.centre);
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const Box& k) { return Overlaps(box, k, limits.iou); }))
      continue;
    kept.push_back(box);
    chosen.push_back(i);
  }
  return chosen;
}

Status NonMaxSuppression(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor boxes, scores;
  GE_TRY(TensorIn(call, 0, &boxes));
  GE_TRY(TensorIn(call, 1, &scores));
  GE_TRY(CheckRank(boxes, 3, "boxes"));
  GE_TRY(CheckRank(scores, 3, "scores"));
  if (TypeOf(boxes) != DType::kF32 || TypeOf(scores) != DType::kF32)
    return Invalid("boxes and scores must be f32");
  const int64_t batches = scores.dims[0], classes = scores.dims[1], n = scores.dims[2];
  if (boxes.dims[0] != batches || boxes.dims[1] != n || boxes.dims[2] != 4)
    return Invalid("boxes " + Text(boxes.dims) + " do not fit scores " + Text(scores.dims));
  Limits limits;
  double most, iou, score;
  GE_TRY(Scalar(call, 2, 0, &most));
  GE_TRY(Scalar(call, 3, 0, &iou));
  GE_TRY(Scalar(call, 4, 0, &score));
  limits.most = static_cast<int64_t>(std::clamp(most, 0.0, static_cast<double>(n)));
  limits.iou = static_cast<float>(iou);
  limits.score = static_cast<float>(score);
  limits.has_score = Present(call, 4);
  limits.centre = call.attrs.Int("center_point_box", 0) != 0;
  if (!(iou >= 0 && iou <= 1))
    return Invalid("iou_threshold " + std::to_string(iou) + " is outside [0, 1]");
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes; ++c)
      for (int64_t i :
           Select(static_cast<const float*>(boxes.data) + b * n * 4,
                  static_cast<const float*>(scores.data) + (b * classes + c) * n, n, limits))
        rows.insert(rows.end(), {b, c, i});
  const auto count = static_cast<int64_t>(rows.size() / 3);
  call.sizes.push_back(count);
  void* y;
  GE_TRY(Claim(call, 0, Shape{count, 3}, &y));
  if (y != nullptr) std::copy(rows.begin(), rows.end(), static_cast<int64_t*>(y));
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("NonMaxSuppression", NonMaxSuppression);

}  // namespace
}  // namespace ge::rt

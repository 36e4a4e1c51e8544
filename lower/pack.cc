// out[offset(index)] = source[row-major(index)], one pass over the source.
#include "lower/pack.h"

#include <cstring>

#include "base/check.h"

namespace ge {
namespace {

// How far one step of each physical dim of a static view moves, in bytes.
struct StaticView {
  std::vector<int64_t> tile, modulo, stride;
  std::vector<int> axis;
};

StaticView StaticOf(const View& view, int64_t width) {
  StaticView s;
  for (size_t d = 0; d < view.order.size(); ++d) {
    s.axis.push_back(view.order[d].axis);
    s.tile.push_back(view.order[d].tile);
    s.modulo.push_back(view.modulo[d]);
    s.stride.push_back(view.strides[d].value() * width);
  }
  return s;
}

}  // namespace

Pack PackInLayout(ValueId v, const TensorType& type) {
  View view = DenseView(type.layout, type.dims);
  int64_t width = BitWidth(type.dtype) / 8;
  GE_CHECK(width > 0 && view.Elements().IsConst(),
           "only whole bytes of static constants are packed");
  Pack pack;
  pack.source = v;
  pack.key = "layout " + ToString(type.layout);
  pack.bytes = view.Elements().value() * width;
  pack.fill = [s = StaticOf(view, width), width, bytes = pack.bytes](const Constant& source,
                                                                     std::byte* out) {
    std::memset(out, 0, bytes);
    std::vector<int64_t> index(source.dims.size(), 0);
    int64_t count = source.Elements();
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < s.axis.size(); ++d) {
        int64_t at = index[s.axis[d]] / s.tile[d];
        offset += (s.modulo[d] ? at % s.modulo[d] : at) * s.stride[d];
      }
      std::memcpy(out + offset, source.bytes.data() + i * width, width);
      for (int64_t a = static_cast<int64_t>(index.size()) - 1; a >= 0; --a) {
        if (++index[a] < source.dims[a]) break;
        index[a] = 0;
      }
    }
  };
  return pack;
}

}  // namespace ge

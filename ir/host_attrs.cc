// See host_attrs.h. Tensor attributes are not passed: importers make them operands.

#include "ir/host_attrs.h"

#include <type_traits>

#include "rt/host_kernel.h"

namespace ge {

std::string EncodeHostAttrs(const Node& n) {
  std::string text;
  for (const auto& [name, attr] : n.attrs)
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, int64_t>) {
            rt::AppendAttr(&text, name, v);
          } else if constexpr (std::is_same_v<T, float>) {
            rt::AppendAttr(&text, name, static_cast<double>(v));
          } else if constexpr (std::is_same_v<T, std::string>) {
            rt::AppendAttr(&text, name, std::string_view(v));
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            rt::AppendAttr(&text, name, std::span<const int64_t>(v));
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            const std::vector<double> wide(v.begin(), v.end());
            rt::AppendAttr(&text, name, std::span<const double>(wide));
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            rt::AppendAttr(&text, name, std::span<const std::string>(v));
          }
        },
        attr);
  return text;
}

}  // namespace ge

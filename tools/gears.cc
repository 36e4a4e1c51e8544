// See gears.h.

#include "tools/gears.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace ge {
namespace {

constexpr size_t kMinGears = 2, kMaxGears = 100;

// Positions of -1, as the input's dims have them.
std::vector<size_t> Open(const std::vector<std::string>& dims) {
  std::vector<size_t> open;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].empty()) open.push_back(d);
  return open;
}

Fault ReadValues(const std::string& option, const std::string& text, bool batch,
                 std::vector<std::vector<int64_t>>* values) {
  for (const std::string& group : SplitList(text, batch ? ',' : ';')) {
    if (group.empty()) continue;
    auto& gear = values->emplace_back();
    for (const std::string& v : SplitList(group, ',')) {
      const bool digits =
          !v.empty() && v.size() < 10 && v.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || std::stoll(v) == 0)
        return {"E10038", fmt::format("[{}] in [--{}] is not a positive number", v, option),
                "positive numbers"};
      gear.push_back(std::stoll(v));
    }
  }
  return {};
}

Fault CheckCounts(const std::string& option, const Gears& gears) {
  const auto n = gears.values.size();
  if (n < kMinGears)
    return {"E10035", fmt::format("[--{}] has {} gears, fewer than {}", option, n, kMinGears),
            "2 to 100 gears"};
  if (n > kMaxGears)
    return {"E10036", fmt::format("[--{}] has {} gears, more than {}", option, n, kMaxGears),
            "2 to 100 gears"};
  if (gears.kind == GearKind::kImage)
    for (const auto& gear : gears.values)
      if (gear.size() != 2)
        return {"E10020",
                fmt::format("[{}] in [--{}] is not \"height,width\"", fmt::join(gear, ","), option),
                "\"416,416;832,832\""};
  for (const auto& gear : gears.values)
    if (gear.size() != gears.values[0].size())
      return {"E10039",
              fmt::format("groups of [--{}] have {} and {} values", option, gears.values[0].size(),
                          gear.size()),
              "one value for each -1 in each group"};
  std::set<std::vector<int64_t>> seen;
  for (const auto& gear : gears.values)
    if (!seen.insert(gear).second)
      return {"E10037", fmt::format("[--{}] has the gear [{}] twice", option, fmt::join(gear, ",")),
              "remove one"};
  return {};
}

// Where the format has height and width; {0, 0} if it has none.
std::pair<size_t, size_t> PictureAxes(const std::string& format) {
  if (format == "NCHW") return {2, 3};
  if (format == "NHWC") return {1, 2};
  return {0, 0};
}

Fault CheckPlaces(const std::string& format, const InputShapes& shapes, const Gears& gears) {
  size_t total = 0;
  for (const auto& [name, dims] : shapes) {
    const std::vector<size_t> open = Open(dims);
    total += open.size();
    if (open.empty()) continue;
    if (gears.kind == GearKind::kBatch && open != std::vector<size_t>{0})
      return {
          open[0] == 0 ? "E10018" : "E10012",
          fmt::format("input [{}]: with [--dynamic_batch_size] only the first dim may be -1", name),
          "--input_shape=\"x:-1,3,224,224\""};
    const auto [h, w] = PictureAxes(format);
    if (gears.kind == GearKind::kImage && (h == 0 || open != std::vector<size_t>{h, w}))
      return {"E10019",
              fmt::format("input [{}]: with [--dynamic_image_size] height and width, and "
                          "only these, are -1 (input_format is {})",
                          name, format),
              "--input_shape=\"x:1,3,-1,-1\""};
  }
  if (total == 0)
    return {"E10040", "gears are given, and no dim of [--input_shape] is -1",
            "put -1 where the gears' values belong"};
  if (gears.kind == GearKind::kDims && total != gears.values[0].size())
    return {"E10045",
            fmt::format("[--dynamic_dims] has groups of {} values, [--input_shape] has {} "
                        "dims of -1",
                        gears.values[0].size(), total),
            "one value for each -1 in each group"};
  return {};
}

}  // namespace

std::string Gears::Json() const {
  std::vector<std::string> groups;
  for (const auto& v : values) groups.push_back(fmt::format("[{}]", fmt::join(v, ",")));
  const char* mode = kind == GearKind::kBatch   ? "batch"
                     : kind == GearKind::kImage ? "image"
                                                : "dims";
  return fmt::format("{{\"mode\":\"{}\",\"values\":[{}]}}", mode, fmt::join(groups, ","));
}

Fault ReadGears(const AtcOptions& options, const InputShapes& shapes, Gears* gears) {
  std::string option;
  for (const auto& [name, kind] : {std::pair{"dynamic_batch_size", GearKind::kBatch},
                                   std::pair{"dynamic_image_size", GearKind::kImage},
                                   std::pair{"dynamic_dims", GearKind::kDims}}) {
    if (!options.Has(name)) continue;
    option = name;
    gears->kind = kind;
  }
  if (gears->kind == GearKind::kNone) return {};
  if (Fault f =
          ReadValues(option, options.Get(option), gears->kind == GearKind::kBatch, &gears->values);
      f.any())
    return f;
  if (Fault f = CheckCounts(option, *gears); f.any()) return f;
  return CheckPlaces(options.Get("input_format"), shapes, *gears);
}

// Values go to the -1 dims in the order of the model's inputs: batch, all the same; image, two for
// each input; dims, one after the other.
Fault ApplyGears(const Gears& gears, const InputShapes& shapes, Graph* g) {
  if (gears.kind == GearKind::kNone) return {};
  size_t next = 0;
  for (ValueId v : g->inputs) {
    const Value& value = g->value(v);
    const auto given = shapes.find(value.name);
    if (gears.kind != GearKind::kDims) next = 0;
    for (size_t d = 0; d < value.type.dims.size(); ++d) {
      const Expr dim = value.type.dims[d];
      const bool open =
          given != shapes.end() && d < given->second.size() && given->second[d].empty();
      if (open && dim.IsConst())
        return {"E10050",
                fmt::format("dim {} of input [{}] is -1, the model fixes it to {}", d, value.name,
                            dim.value()),
                "give the model a dynamic dim, or leave the gears out"};
      if (!open && !dim.IsConst())
        return {"E10040",
                fmt::format("dim {} of input [{}] is dynamic and has no value", d, value.name),
                "name the input in --input_shape, with -1 where a gear's value belongs"};
      if (!open) continue;
      const size_t at = gears.kind == GearKind::kBatch ? 0 : next++;
      std::vector<int64_t> all;
      for (const auto& gear : gears.values) all.push_back(gear[at]);
      const auto [low, high] = std::minmax_element(all.begin(), all.end());
      if (dim.IsSymbol()) g->arena().Refine(dim, {.lo = *low, .hi = *high, .hint = *high});
    }
  }
  return {};
}

}  // namespace ge

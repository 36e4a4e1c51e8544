// The .om file: header, then sections (plan, weights, code, description, AscendIR text), each with
// offset, size and a checksum in the section table. Weights are page-aligned for mapping.
// Reading checks header, plan, code and description by checksum and every index, offset and size;
// weights and IR text by length (checksum on request). A damaged or foreign file is refused with a
// reason.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "om/plan.h"

namespace ge::om {

inline constexpr uint32_t kFormatVersion = 2;
enum class Section : uint32_t {
  kPlan = 1,
  kWeights = 2,
  kCode = 3,
  kDescription = 4,
  kIr = 5,
  kExternal = 6
};

// Weights in a file of their own: bytes [offset, offset + bytes) of what a weights section would
// hold.
struct ExternalWeight {
  std::string path;       // from the .om's folder
  int64_t offset, bytes;  // offset: of a page
  uint64_t checksum;
};

struct OmContents {  // what a writer gives
  Plan plan;
  std::string code;  // shared object; empty if the kernels are text
  std::vector<std::string> cpu_features;
  std::string description;  // JSON: command line, compiler, policy, versions
  std::string ir_text;
  int64_t weight_bytes = 0;
  // Called once with the mapped weights section.
  std::function<Status(std::byte* weights)> fill_weights;
  std::vector<ExternalWeight> external;  // if not empty: there is no weights section
};
// Writes beside `path` and renames: a failed write leaves no file.
Status WriteOm(const std::string& path, const OmContents& contents);

struct OmView {  // what a reader gets; spans point into the given bytes
  Plan plan;
  std::span<const std::byte> weights, code;
  std::string_view description, ir_text;
  std::vector<std::string> cpu_features;
  std::vector<ExternalWeight> external;
  struct SectionEntry {
    Section kind;
    int64_t offset, bytes;
    uint64_t checksum;
  };
  std::vector<SectionEntry> sections;
};
Result<OmView> ReadOm(std::span<const std::byte> file, bool verify_weights);

// Structural checks of a plan: every index, target, size code, name. All that the runtime relies
// on.
Status CheckPlan(const Plan& plan, int64_t weight_bytes, int64_t code_kernels);
std::string EncodePlan(const Plan& plan);
Result<Plan> DecodePlan(std::span<const std::byte> bytes);
std::string ToString(const Plan& plan);  // text form, parses back
Result<Plan> ParsePlan(std::string_view text);

}  // namespace ge::om

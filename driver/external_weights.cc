// See external_weights.h.
#include "driver/external_weights.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace ge {
namespace {

constexpr int64_t kPage = 4096;

// There is a whole file or none.
Status WriteFile(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  const std::string temporary = fmt::format("{}.tmp{}", path.string(), getpid());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (file && !error) return {};
  std::filesystem::remove(temporary, error);
  return Invalid(path.string() + ": cannot write");
}

// Constants of the plan follow their weights to other offsets.
void MoveBuffers(const std::vector<WeightSource>& weights, const std::vector<int64_t>& offsets,
                 om::Plan* plan) {
  for (om::Buffer& b : plan->buffers) {
    if (b.kind != om::BufferKind::kConst || b.offset < 0) continue;
    for (size_t i = 0; i < weights.size(); ++i) {
      const WeightSource& w = weights[i];
      if (b.offset != w.offset && (b.offset < w.offset || b.offset >= w.offset + w.bytes)) continue;
      b.offset += offsets[i] - w.offset;
      break;
    }
  }
}

}  // namespace

void FillWeight(const WeightSource& w, std::byte* out) {
  const Constant& constant = *w.graph->ConstantOf(w.value);
  if (w.pack)
    w.pack->fill(constant, out);
  else
    std::copy(constant.bytes.begin(), constant.bytes.end(), out);
}

Result<std::vector<om::ExternalWeight>> WriteExternalWeights(const std::string& om_path, int mode,
                                                             Planned* planned) {
  std::vector<om::ExternalWeight> list;
  if (planned->weight_bytes == 0) return list;
  const std::filesystem::path folder = std::filesystem::path(om_path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder / "weight", error);
  if (error) return Invalid((folder / "weight").string() + ": cannot write");
  if (mode == 2) {
    std::vector<std::byte> bytes(static_cast<size_t>(planned->weight_bytes));
    for (const WeightSource& w : planned->weights) FillWeight(w, bytes.data() + w.offset);
    const std::string name =
        "weight/" + std::filesystem::path(om_path).stem().string() + "_weight_combined";
    GE_TRY(WriteFile(folder / name, bytes));
    list.push_back({name, 0, planned->weight_bytes, Hash64(bytes.data(), bytes.size())});
    return list;
  }
  std::vector<int64_t> offsets;
  int64_t end = 0;
  for (const WeightSource& w : planned->weights) {
    offsets.push_back(w.bytes == 0 ? 0 : end);
    if (w.bytes == 0) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(w.bytes));
    FillWeight(w, bytes.data());
    const uint64_t hash = Hash64(bytes.data(), bytes.size());
    const std::string name = fmt::format("weight/weight_{:016x}", hash);
    GE_TRY(WriteFile(folder / name, bytes));
    list.push_back({name, end, w.bytes, hash});
    planned->weight_bytes = end + w.bytes;
    end = (planned->weight_bytes + kPage - 1) / kPage * kPage;
  }
  MoveBuffers(planned->weights, offsets, &planned->plan);
  for (size_t i = 0; i < offsets.size(); ++i) planned->weights[i].offset = offsets[i];
  return list;
}

}  // namespace ge

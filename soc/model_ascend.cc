// Ascend chips as models: one table. What is published is named; what is not is marked as assumed,
// with the reason for its size.
#include "soc/model.h"
#include "soc/models.h"

namespace ge {
namespace {

constexpr const char* kHotChips =
    "Hot Chips 31 (2019), \"DaVinci: A Scalable Architecture for Neural Network Computing\"";
constexpr const char* kHpca =
    "Liao et al., \"Ascend: a Scalable and Unified Architecture for Ubiquitous Deep Neural Network "
    "Computing\", HPCA 2021";
constexpr const char* kLaunch =
    "assumed: tasks of a sunk model are fetched by the on-chip scheduler, some microseconds each";
constexpr const char* kEvent = "assumed: a notify and a wait of the task scheduler";
constexpr const char* kTile =
    "assumed: an eighth of the unified buffer of one core (256 KB), so that in, out and both of a "
    "double buffer fit";

struct Chip {
  const char* name;
  int cores, vector_cores;
  double cube_tflops, vector_tflops;
  int64_t on_chip_mb, memory_gb;
  double on_chip_gb_s, memory_gb_s, host_gb_s;
  std::vector<ChipModel::Source> sources;
};

const Chip& ChipAt(size_t i) {
  static const Chip chips[] = {
      {.name = "Ascend310",
       .cores = 2,
       .vector_cores = 0,
       .cube_tflops = 8,
       .vector_tflops = 0.125,
       .on_chip_mb = 8,
       .memory_gb = 8,
       .on_chip_gb_s = 200,
       .memory_gb_s = 51.2,
       .host_gb_s = 3.94,
       .sources = {{"2 cores, 8 TFLOPS float16, 16 TOPS int8", kHotChips},
                   {"0.125 TFLOPS vector float32",
                    "2 cores x 64 float32 lanes (2048-bit vectors, Hot Chips 31) x 0.98 GHz, one "
                    "operation a "
                    "cycle"},
                   {"8 MB on-chip buffer", kHpca},
                   {"200 GB/s on chip", "assumed: two cores at 100 bytes a cycle"},
                   {"51.2 GB/s, 8 GB", "Atlas 200 data sheet: LPDDR4X, 128 bit, 51.2 GB/s"},
                   {"3.94 GB/s to the host",
                    "Atlas 300I data sheet: PCIe 3.0 x16 for four chips, 0.985 GB/s a lane"}}},
      {.name = "Ascend310P",
       .cores = 8,
       .vector_cores = 7,
       .cube_tflops = 70,
       .vector_tflops = 0.97,
       .on_chip_mb = 16,
       .memory_gb = 24,
       .on_chip_gb_s = 900,
       .memory_gb_s = 204.8,
       .host_gb_s = 31.5,
       .sources = {{"8 AI cores and 7 vector cores", "CANN platform_config, Ascend310P3"},
                   {"70 TFLOPS float16, 140 TOPS int8", "Atlas 300I Pro data sheet"},
                   {"0.97 TFLOPS vector float32",
                    "15 vector units x 64 float32 lanes x 1.08 GHz (the cube's clock: 70 TFLOPS = "
                    "8 x 8192 x "
                    "1.07 GHz)"},
                   {"16 MB L2", "CANN platform_config, Ascend310P3: l2_size"},
                   {"900 GB/s on chip", "assumed: 8 cores at 110 bytes a cycle"},
                   {"204.8 GB/s, 24 GB", "Atlas 300I Pro data sheet: LPDDR4X"},
                   {"31.5 GB/s to the host", "Atlas 300I Pro data sheet: PCIe 4.0 x16"}}},
      {.name = "Ascend910",
       .cores = 32,
       .vector_cores = 0,
       .cube_tflops = 256,
       .vector_tflops = 2.05,
       .on_chip_mb = 32,
       .memory_gb = 32,
       .on_chip_gb_s = 4000,
       .memory_gb_s = 1200,
       .host_gb_s = 31.5,
       .sources = {{"32 cores, 256 TFLOPS float16, 512 TOPS int8", kHotChips},
                   {"2.05 TFLOPS vector float32",
                    "32 cores x 64 float32 lanes (2048-bit vectors, Hot Chips 31) x 1 GHz (256 "
                    "TFLOPS = 32 x "
                    "8192 x 0.98 GHz)"},
                   {"32 MB L2, 4 TB/s", kHpca},
                   {"1.2 TB/s HBM2, 32 GB", kHotChips},
                   {"31.5 GB/s to the host", "Atlas 300T data sheet: PCIe 4.0 x16"}}},
      {.name = "Ascend910B",
       .cores = 24,
       .vector_cores = 48,
       .cube_tflops = 353.9,
       .vector_tflops = 5.5,
       .on_chip_mb = 192,
       .memory_gb = 64,
       .on_chip_gb_s = 5000,
       .memory_gb_s = 1600,
       .host_gb_s = 63,
       .sources = {
           {"24 cube cores, 48 vector cores", "CANN platform_config, Ascend910B2"},
           {"353.9 TFLOPS float16",
            "24 cores x 16x16x16 x 2 x 1.8 GHz (CANN platform_config: cube_freq; the same formula "
            "gives 245.8 for the 20 cores at 1.5 GHz of 910B4)"},
           {"5.5 TFLOPS vector float32", "48 vector cores x 64 float32 lanes x 1.8 GHz"},
           {"192 MB L2, 64 GB", "CANN platform_config, Ascend910B2: l2_size, memory_size"},
           {"5 TB/s on chip", "assumed: 24 cores at 110 bytes a cycle"},
           {"1.6 TB/s HBM2e", "Atlas 800T A2 data sheet"},
           {"63 GB/s to the host", "assumed: PCIe 5.0 x16"}}}};
  return chips[i];
}

template <size_t i>
ChipModel Make() {
  const Chip& chip = ChipAt(i);
  ChipModel m;
  m.name = chip.name;
  m.cores = chip.cores;
  m.vector_cores = chip.vector_cores;
  m.cube_tflops = chip.cube_tflops;
  m.vector_tflops = chip.vector_tflops;
  m.bytes_per_f32 = 2;
  m.on_chip_bytes = chip.on_chip_mb << 20;
  m.on_chip_gb_s = chip.on_chip_gb_s;
  m.memory_gb_s = chip.memory_gb_s;
  m.host_gb_s = chip.host_gb_s;
  m.memory_bytes = chip.memory_gb << 30;
  m.launch_us = 3;
  m.event_us = 2;
  m.sources = {
      {"2 bytes for each float", "atc's default precision mode runs float models in float16"},
      {"3 us for a launch", kLaunch},
      {"2 us for an event", kEvent},
      {"32 KB of output for each core", kTile}};
  m.sources.insert(m.sources.end(), chip.sources.begin(), chip.sources.end());
  return m;
}

[[maybe_unused]] const bool kKnown = RegisterModel(Make<0>) && RegisterModel(Make<1>) &&
                                     RegisterModel(Make<2>) && RegisterModel(Make<3>);

}  // namespace
}  // namespace ge

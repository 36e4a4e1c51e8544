// Ascend chips as models. What is published is named; what is not is marked as assumed, with the
// reason for its size.
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

ChipModel Ascend(const char* name) {
  ChipModel m;
  m.name = name;
  m.bytes_per_f32 = 2;
  m.launch_us = 3;
  m.event_us = 2;
  m.sources = {
      {"2 bytes for each float", "atc's default precision mode runs float models in float16"},
      {"3 us for a launch", kLaunch},
      {"2 us for an event", kEvent},
      {"32 KB of output for each core", kTile}};
  return m;
}

void Add(ChipModel& m, const char* number, const char* from) {
  m.sources.push_back({number, from});
}

ChipModel Ascend310() {
  ChipModel m = Ascend("Ascend310");
  m.cores = 2;
  m.cube_tflops = 8;
  Add(m, "2 cores, 8 TFLOPS float16, 16 TOPS int8", kHotChips);
  m.vector_tflops = 0.125;
  Add(m, "0.125 TFLOPS vector float32",
      "2 cores x 64 float32 lanes (2048-bit vectors, Hot Chips 31) x 0.98 GHz, one operation a "
      "cycle");
  m.on_chip_bytes = 8 << 20;
  Add(m, "8 MB on-chip buffer", kHpca);
  m.on_chip_gb_s = 200;
  Add(m, "200 GB/s on chip", "assumed: two cores at 100 bytes a cycle");
  m.memory_gb_s = 51.2;
  m.memory_bytes = int64_t{8} << 30;
  Add(m, "51.2 GB/s, 8 GB", "Atlas 200 data sheet: LPDDR4X, 128 bit, 51.2 GB/s");
  return m;
}

ChipModel Ascend310P() {
  ChipModel m = Ascend("Ascend310P");
  m.cores = 8;
  m.vector_cores = 7;
  Add(m, "8 AI cores and 7 vector cores", "CANN platform_config, Ascend310P3");
  m.cube_tflops = 70;
  Add(m, "70 TFLOPS float16, 140 TOPS int8", "Atlas 300I Pro data sheet");
  m.vector_tflops = 0.97;
  Add(m, "0.97 TFLOPS vector float32",
      "15 vector units x 64 float32 lanes x 1.08 GHz (the cube's "
      "clock: 70 TFLOPS = 8 x 8192 x 1.07 GHz)");
  m.on_chip_bytes = 16 << 20;
  Add(m, "16 MB L2", "CANN platform_config, Ascend310P3: l2_size");
  m.on_chip_gb_s = 900;
  Add(m, "900 GB/s on chip", "assumed: 8 cores at 110 bytes a cycle");
  m.memory_gb_s = 204.8;
  m.memory_bytes = int64_t{24} << 30;
  Add(m, "204.8 GB/s, 24 GB", "Atlas 300I Pro data sheet: LPDDR4X");
  return m;
}

ChipModel Ascend910() {
  ChipModel m = Ascend("Ascend910");
  m.cores = 32;
  m.cube_tflops = 256;
  Add(m, "32 cores, 256 TFLOPS float16, 512 TOPS int8", kHotChips);
  m.vector_tflops = 2.05;
  Add(m, "2.05 TFLOPS vector float32",
      "32 cores x 64 float32 lanes (2048-bit vectors, Hot Chips 31) "
      "x 1 GHz (256 TFLOPS = 32 x 8192 x 0.98 GHz)");
  m.on_chip_bytes = 32 << 20;
  m.on_chip_gb_s = 4000;
  Add(m, "32 MB L2, 4 TB/s", kHpca);
  m.memory_gb_s = 1200;
  m.memory_bytes = int64_t{32} << 30;
  Add(m, "1.2 TB/s HBM2, 32 GB", kHotChips);
  return m;
}

ChipModel Ascend910B() {
  ChipModel m = Ascend("Ascend910B");
  m.cores = 24;
  m.vector_cores = 48;
  Add(m, "24 cube cores, 48 vector cores", "CANN platform_config, Ascend910B2");
  m.cube_tflops = 353.9;
  Add(m, "353.9 TFLOPS float16",
      "24 cores x 16x16x16 x 2 x 1.8 GHz (CANN platform_config: cube_freq; "
      "the same formula gives 245.8 for the 20 cores at 1.5 GHz of 910B4)");
  m.vector_tflops = 5.5;
  Add(m, "5.5 TFLOPS vector float32", "48 vector cores x 64 float32 lanes x 1.8 GHz");
  m.on_chip_bytes = 192 << 20;
  m.memory_bytes = int64_t{64} << 30;
  Add(m, "192 MB L2, 64 GB", "CANN platform_config, Ascend910B2: l2_size, memory_size");
  m.on_chip_gb_s = 5000;
  Add(m, "5 TB/s on chip", "assumed: 24 cores at 110 bytes a cycle");
  m.memory_gb_s = 1600;
  Add(m, "1.6 TB/s HBM2e", "Atlas 800T A2 data sheet");
  return m;
}

[[maybe_unused]] const bool kKnown = RegisterModel(Ascend310) && RegisterModel(Ascend310P) &&
                                     RegisterModel(Ascend910) && RegisterModel(Ascend910B);

}  // namespace
}  // namespace ge

// What programs that drive the runtime share: inputs made of nothing but a plan, results as bytes,
// and the memory of this process.
#pragma once

#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "om/size.h"
#include "rt/state.h"

namespace ge::rt {

inline double ResidentMb() {
  std::ifstream file("/proc/self/statm");
  long all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

// One block for each input; floats in [0, 1), integers 0 and 1: valid indices, masks and counts.
inline std::vector<std::vector<std::byte>> InputBytes(const om::Plan& plan,
                                                      const std::vector<int64_t>& symbols,
                                                      std::vector<Tensor>* tensors,
                                                      unsigned seed = 7) {
  std::vector<std::vector<std::byte>> data;
  std::mt19937 random(seed);
  for (const om::IoTensor& io : plan.inputs) {
    Tensor t;
    t.dtype = io.dtype;
    for (om::SizeRef d : io.dims) t.dims.push_back(om::EvalSize(plan, d, symbols));
    auto& bytes = data.emplace_back(static_cast<size_t>(DenseBytes(t.dtype, t.dims)));
    if (t.dtype == 1) {
      for (size_t k = 0; k + 4 <= bytes.size(); k += 4) {
        const float v = static_cast<float>(random() % 1000) / 1000;
        std::memcpy(&bytes[k], &v, 4);
      }
    } else {
      for (size_t k = 0; k < bytes.size(); k += 8) bytes[k] = static_cast<std::byte>(random() & 1);
    }
    t.bytes = static_cast<int64_t>(bytes.size());
    tensors->push_back(t);
  }
  for (size_t k = 0; k < data.size(); ++k) (*tensors)[k].data = data[k].data();
  return data;
}

inline Result<std::vector<std::vector<std::byte>>> Results(Run& run,
                                                           const std::vector<Tensor>& inputs,
                                                           size_t outputs) {
  std::vector<Tensor> out(outputs);
  GE_TRY(run.Execute(inputs, out));
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : out) {
    const auto* p = static_cast<const std::byte*>(t.data);
    all.emplace_back(p, p + DenseBytes(t.dtype, t.dims));
  }
  return all;
}

}  // namespace ge::rt

// AIPP: picture preprocessing that --insert_op_conf puts in front of an input (docs/aipp.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tools/atc_options.h"

namespace ge {

// One aipp_op { ... } of the file. Numbers and switches by key; a key that is absent has its
// default.
struct AippConfig {
  bool dynamic = false;
  std::string input_format, related_input_name;
  std::map<std::string, double> numbers;
  TensorType model;  // of the input before the preprocessing: set by InsertAipp

  bool Has(const std::string& key) const { return numbers.contains(key); }
  double Get(const std::string& key, double otherwise = 0) const {
    const auto it = numbers.find(key);
    return it == numbers.end() ? otherwise : it->second;
  }
  int64_t Int(const std::string& key) const { return static_cast<int64_t>(Get(key)); }
};

// All faults are E10052 with key and line.
Fault ParseAipp(const std::string& text, std::vector<AippConfig>* configs);

// Replaces the input by a u8 picture and puts the operators in front of it. `layout`: NCHW or NHWC.
// A dynamic one gets a further input, ascend_dynamic_aipp_data, with 48 numbers for each picture.
Fault InsertAipp(AippConfig& config, const std::string& layout, Graph* g);
// The description's "aipp": [{"input": 0, "mode": "static", "format": .., "layout": .., "dims": of
// the model's tensor, "type": its type, "keys": {..}}].
std::string AippJson(const std::vector<AippConfig>& configs, const std::string& layout,
                     const Graph& g);
// The input that the configuration means, or -1.
int AippInput(const AippConfig& config, const Graph& g);

inline constexpr const char* kAippInput = "ascend_dynamic_aipp_data";
inline constexpr int kAippNumbers = 48;

}  // namespace ge

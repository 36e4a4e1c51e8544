// Policy: every choice that a user or a test may steer, as one plain struct. Filled from the
// command line and files, printed in dumps, part of every cache key (through Key()).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ge {

struct Policy {
  int opt_level = 2;               // 0: the dull pipeline; 1: algebra only; 2: all
  std::set<std::string> disabled;  // passes and rules by name
  double conv_tolerance = 1e-4;    // relative error that Winograd may add; 0 = never Winograd
  bool bf16 = false;  // weights and inputs of dots may be rounded to bf16; sums stay f32
  // Register tiles of dots, as (rows, vectors of columns), by node or by problem ("gemm f32
  // 128x768x3072"): a tuning file's choices, or a user's. What does not fit the chip is passed
  // over.
  std::map<std::string, std::pair<int, int>> tiles;
  int try_vectors = 0;  // while tuning: tiles of this many vectors where they are possible
  int max_region_nodes = 64;
  int max_region_inputs = 8;
  bool interpret_kernels = false;    // .om with TileIR text instead of native code
  bool reuse_memory = true;          // false: every planned buffer has its own bytes
  bool alias_parts = true;           // concat, split and slice without copies where possible
  int64_t arena_work = 100'000'000;  // steps of the exact arena search; about 150 million a second
  int64_t memory_limit = 0;          // bytes of arena that a model may need; 0: as it comes
  int max_streams = 2;               // lanes on which independent tasks may run; 1: none
  double stream_gain = 1.1;          // by which lanes must be faster, as predicted, to be used
  // Labels of nodes, by their names in the model: independent nodes of one label share a lane,
  // those of different labels have different ones.
  std::map<std::string, std::string> stream_labels;
  int64_t fold_limit_bytes = 64 << 20;  // constants larger than this are not created by folding
  // One line for each rewrite or near miss ({rule, node, reason}), if set.
  std::function<void(const std::string&)> report;
  std::string Key() const;  // canonical text of the fields that change code
};

}  // namespace ge

// Policy: every choice that a user or a test may steer, as one plain struct. Filled from the
// command line and files, printed in dumps, part of every cache key (through Key()).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/status.h"

namespace ge {

// What a line of a tuning file, or a user's, fixes about a dot (docs/speed.md). 0 or empty: left to
// the cost model.
struct DotChoice {
  int m = 0, nv = 0;       // register tile: rows, vectors of columns
  int64_t rows = 0;        // of the result in a task
  int64_t k = 0;           // of a block of the depth
  std::string order = {};  // of tasks: "nm": by columns, then by rows; "mn": the other way round
  std::string pack = {};   // operands that are copied though they could be read: "a", "b", "ab"
  std::string form = {};   // of a convolution: "direct" or "winograd"
  int64_t strips = 0;      // pieces in which rows are made where memory is short; 1: as a whole
  std::string where = {};  // file and line of the choice, for messages
  bool operator==(const DotChoice& o) const;  // where it was said does not matter
};
std::string ToString(const DotChoice& c);  // "13x2 rows=26 k=384 order=nm"
// The fields of such a text, in any order; an error names what is wrong and what is allowed.
Result<DotChoice> ParseDotChoice(const std::string& text);
// Names of problems, unlike those of nodes, begin with what kind of dot it is.
bool IsProblem(const std::string& name);
struct Graph;
struct Node;

struct Policy {
  int opt_level = 2;               // 0: the dull pipeline; 1: algebra only; 2: all
  std::set<std::string> disabled;  // passes and rules by name
  double conv_tolerance = 1e-4;    // relative error that Winograd may add; 0 = never Winograd
  bool bf16 = false;  // weights and inputs of dots may be rounded to bf16; sums stay f32
  // By node or by problem ("gemm f32 128x768x3072"). What a node's says must be possible; what a
  // problem's says may come from another chip, and is passed over where it is not.
  std::map<std::string, DotChoice> tiles;
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
  // Why a dot of bytes takes less time in floats on this chip, with both estimates; "" if it does
  // not. Null: dots of bytes are always integer dots. Set by the driver.
  std::function<std::string(const Graph&, const Node&)> floats_pay;
  // The choice for a node, by its name or one that it had in the model; null if there is none.
  const DotChoice* ChoiceFor(const Node& node) const;
  std::string Key() const;  // canonical text of the fields that change code
};

}  // namespace ge

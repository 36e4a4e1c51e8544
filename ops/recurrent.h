// What RNN, GRU and LSTM share: the walk over time, the activations, and the sums of their gates.
//
// X is [seq, batch, input] (layout 0) or [batch, seq, input]; W [dirs, gates*hidden, input],
// R [dirs, gates*hidden, hidden], B [dirs, 2*gates*hidden] (of W, then of R). All X W^T + Wb are
// one product before; ge.RNN, ge.GRU and ge.LSTM do the rest:
//   0 P [seq, batch, dirs, gates*hidden] (layout 1: batch first), 1 R, 2 Rb [dirs, gates*hidden],
//   3 sequence_lens, 4 initial_h, and of an LSTM 5 initial_c, 6 peepholes
// A chunk is a direction and some batch entries; it walks time serially with its state in local
// buffers [rows, ..].
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/opdef.h"

namespace ge {

struct Recurrent {
  // A direction and `rows` batch entries from `batch` on.
  struct Chunk {
    Expr dir, batch, rows = 1;
  };
  // What is done with sum number `n` of `row` of the chunk.
  using Sink = std::function<void(Expr row, Expr n, tile::Val sum)>;
  // How state * R^T is made: sums [first, first + count) of all rows of `state`. Whoever has none
  // gets plain sums, a batch entry at a time.
  struct Dots {
    int64_t rows = 1;  // of a chunk, at most
    std::function<void(const Chunk&, int state, Expr first, Expr count, const Sink&)> sums;
  };

  Lowering& l;
  int gates;
  int activations_per_direction;
  Expr seq, batch, hidden, dirs;
  bool batch_first;
  DType t;  // compute type
  std::vector<std::string> activations;
  std::vector<float> alpha, beta;
  double clip;
  const Dots* dots;

  Recurrent(Lowering& lowering, int num_gates, std::vector<std::string> default_activations,
            const Dots* dots);

  // Runs step(position in P and Y) for each valid time of the chunk, in order of the direction;
  // idle(position) for those past the sequence's length.
  void Walk(const Chunk& c, const std::function<void(Expr)>& step,
            const std::function<void(Expr)>& idle) const;
  void ForChunks(const std::function<void(const Chunk&)>& body) const;
  // Every row of the chunk and j < hidden.
  void ForCells(const Chunk& c, const std::function<void(Expr row, Expr j)>& body) const;

  int Buffer(std::string_view name, int parts) const;  // [rows, parts * hidden]
  // A state buffer [rows, hidden], filled from operand `initial` (or zeros).
  int State(std::string_view name, int initial, const Chunk& c) const;
  // into[row, n] = state * R^T + Rb, for the n of these gates; with P at this time if `input`.
  void Sums(const Chunk& c, Expr time, int state, int first_gate, int num_gates, bool input,
            int into) const;
  // P of a gate.
  tile::Val FromInput(const Chunk& c, Expr time, int gate, Expr row, Expr j) const;
  tile::Val Clipped(tile::Val v) const;
  // Activation number k of the chunk's direction.
  tile::Val Activate(const Chunk& c, int k, tile::Val v) const;

  void YieldY(const Chunk& c, Expr t, Expr row, Expr j, tile::Val v) const;
  void YieldLast(int output, const Chunk& c, int state) const;  // Y_h, Y_c
  bool Wants(int output) const;

 private:
  tile::Val Apply(int number, tile::Val v) const;
  tile::Val At(const Chunk& c, Expr time, Expr row, Expr n) const;
};

Status InferRecurrent(InferContext& c, int gates, int activations_per_direction, bool has_cell);
// Of ge.RNN, ge.GRU, ge.LSTM.
Status InferRecurrence(InferContext& c, bool has_cell);
int GatesOf(const Node& n);
// Into one product and the ge operator of the same name.
bool ExpandRecurrent(Graph& g, NodeId n);
// The loops of ge.RNN, ge.GRU, ge.LSTM.
void LowerRecurrence(Lowering& l, const Recurrent::Dots* dots);
// The ranges of gates that Sums is called for: (first, number).
std::vector<std::pair<int, int>> PartsOf(const Node& n);

}  // namespace ge

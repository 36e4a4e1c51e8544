// What RNN, GRU and LSTM share: the walk over time, the activations, and the sums of their gates.
//
// X is [seq, batch, input] (layout 0) or [batch, seq, input]; W [dirs, gates*hidden, input],
// R [dirs, gates*hidden, hidden], B [dirs, 2*gates*hidden] (of W, then of R). Each (direction,
// batch) is one chunk that walks time serially with its state in local buffers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/opdef.h"

namespace ge {

// Operands 0..5 of all three: X, W, R, B, sequence_lens, initial_h.
struct Recurrent {
  Lowering& l;
  int gates;
  int activations_per_direction;
  Expr seq, batch, input, hidden, dirs;
  bool batch_first;
  DType t;  // compute type
  std::vector<std::string> activations;
  std::vector<float> alpha, beta;
  double clip;

  Recurrent(Lowering& lowering, int num_gates, std::vector<std::string> default_activations);

  // One chunk: a direction and a batch entry.
  struct Chunk {
    Expr dir, batch;
  };
  // Runs step(position in X and Y) for each valid time of the chunk, in order of the direction;
  // idle(position) for those past the sequence's length.
  void Walk(const Chunk& c, const std::function<void(Expr)>& step,
            const std::function<void(Expr)>& idle) const;
  void ForChunks(const std::function<void(const Chunk&)>& body) const;

  // A state buffer [hidden], filled from operand `initial` (or zeros).
  int State(std::string_view name, int initial, const Chunk& c) const;
  // sum_i X[t, i] * W[gate, j, i] + Wb
  tile::Val FromInput(const Chunk& c, Expr t, int gate, Expr j) const;
  // sum_i state[i] * R[gate, j, i] + Rb
  tile::Val FromState(const Chunk& c, int state, int gate, Expr j) const;
  tile::Val Clipped(tile::Val v) const;
  // Activation number k of the chunk's direction.
  tile::Val Activate(const Chunk& c, int k, tile::Val v) const;

  void YieldY(const Chunk& c, Expr t, Expr j, tile::Val v) const;
  void YieldLast(int output, const Chunk& c, int state) const;  // Y_h, Y_c
  bool Wants(int output) const;

 private:
  tile::Val Apply(int number, tile::Val v) const;
  tile::Val Bias(const Chunk& c, int gate_of_both, Expr j) const;
};

Status InferRecurrent(InferContext& c, int gates, int activations_per_direction, bool has_cell);

}  // namespace ge

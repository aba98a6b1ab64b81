// The rows of a batch by the experts that they go to.
//
//   scores [rows x experts]          used = 2
//     row 0   .1 .9 .3 .8            row 0 goes to 1 and 3           pairs     0  1  2 | 3  4 | 5
//     row 1   .7 .6 .2 .1     ->     row 1 to 0 and 1          ->    expert    0  1  1 | 2  3 | 3 ..     ascending, rows within
//     row 2   .5 .1 .6 .2            row 2 to 0 and 2                row       1  0  1 | ..
//
// A pair is one row at one expert. Pairs of an expert lie side by side, so that its matrices are read once for all of its rows. A row's
// experts and its shares depend on its own scores only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/packed_weights.h"
#include "executor/plan.h"
#include "kernels/kernels.h"

namespace skein {

// The matrices of one expert: gate over up, in one part or one for each of both, and the way down.
struct ExpertWeights {
  std::vector<PackedPart> gateUp, down;
};

// One of the products of all experts: part `part` of gate and up, or the way down, of k inputs and at most n outputs.
struct ExpertProduct {
  bool isDown;
  size_t part;
  int32_t k, n;
};

// Panels [panelBegin, panelEnd) of one product of an expert, for rows [rowBegin, rowEnd) of those that it has.
struct ExpertTask {
  int32_t expert, rowBegin, rowEnd, panelBegin, panelEnd;
};

// Pairs that are computed at once: all memory for pairs is for as many. An expert's matrices are read once for each such pass.
constexpr int32_t kPairsOfPass = 4096;
// Rows of a pass.
inline int32_t rowsOfPass(const PlanOp& op) { return std::max(1, kPairsOfPass / op.rule.used); }

// Bytes of some rows of one expert as a product with such weights takes them: rounded, or as they are.
size_t bytesOfRows(const KernelTable& kernels, DType weights, int32_t rows, int32_t k);

// Floats of gate and up of some panels that one thread clamps: bytes of a core's second-level cache, besides the
// weights that stream by.
constexpr size_t kClampedFloats = 16 << 10;

// Floats that a pass takes at most in each of its regions: see Executor.
struct ExpertFloats {
  size_t pairs, inner, up, clamped, sums;
};
ExpertFloats expertFloats(const ExecutorConfig& config, const KernelTable& kernels, const PackedWeights& weights);

class ExpertRows {
 public:
  // Begins a pass over `rows` rows of an op. choiceBias, shareScales: vectors of all experts, null without them.
  void begin(const PlanOp& op, int32_t rows, const float* choiceBias, const float* shareScales);
  // Chooses the experts of one row by its scores: see expert_choice.h. May be called for different rows at once.
  void route(int32_t row, const float* scores);
  // Sorts the pairs by expert, once all rows are routed.
  void sort();

  int32_t pairs() const { return rows_ * used_; }
  int32_t rowOf(int32_t pair) const { return rowOfPair_[static_cast<size_t>(pair)]; }
  int32_t expertOf(int32_t pair) const { return expertOfPair_[static_cast<size_t>(pair)]; }
  // First pair of an expert; that of the one after the last is the number of pairs.
  int32_t firstPair(int32_t expert) const { return firstPair_[static_cast<size_t>(expert)]; }
  int32_t rowsOf(int32_t expert) const { return firstPair(expert + 1) - firstPair(expert); }
  // Pairs of a row in ascending number of their experts, and their shares: `used` of each.
  const int32_t* pairsOf(int32_t row) const { return pairOf_.data() + size_t(row) * size_t(used_); }
  const float* sharesOf(int32_t row) const { return shares_.data() + size_t(row) * size_t(used_); }

  // The tasks of one product of all experts with rows, in ascending expert: about `wanted` of them, those of an expert by how many rows it has.
  // panels: of an expert's matrix; blockRows: most rows of a task.
  const std::vector<ExpertTask>& cut(int32_t panels, int32_t wanted, int32_t blockRows);

 private:
  int32_t experts_ = 0, used_ = 0, rows_ = 0;
  ExpertRule rule_;
  const float* choiceBias_ = nullptr;
  const float* shareScales_ = nullptr;
  std::vector<int32_t> chosen_;  // [rows][used], ascending
  std::vector<float> shares_;    // [rows][used]
  std::vector<int32_t> pairOf_;  // [rows][used]
  std::vector<int32_t> rowOfPair_, expertOfPair_;
  std::vector<int32_t> firstPair_;  // [experts + 1]
  std::vector<int32_t> next_;       // [experts]: while pairs are sorted
  std::vector<ExpertTask> tasks_;
};

}  // namespace skein

// What the distance of a key from its query adds to their score, laid out as the attention reads it: by distance in place of bucket, so
// that the 32 keys of a step are neighbours.
//
//   column      0 ................. maxSeqLen - 1 ................. | padding
//   distance    1 - maxSeqLen ..... 0 ............................. the last key of a step less the first query
//
// A row of a table is one dimension of a head, or one head's biases. Memory grows with the length of the longest sequence, not with its
// square.
#pragma once
#include <vector>

#include "executor/plan.h"
#include "executor/thread_pool.h"

namespace skein {

class RelativeTables {
 public:
  RelativeTables() = default;
  // Takes floats(config) of zeros at `base`.
  RelativeTables(const ExecutorConfig& config, float* base);
  static size_t floats(const ExecutorConfig& config);

  // The table of an attention op; null: it has none.
  const RelativeScores* of(const PlanOp& op) const {
    return op.relative < 0 ? nullptr : &tables_[static_cast<size_t>(op.relative)].read;
  }
  // Fills the table of a distanceProducts op. rows: [buckets x width].
  void keepProducts(const PlanOp& op, const float* rows, int64_t width, ThreadPool& pool);
  // Fills the table of a distanceBiases op. biases: [buckets x heads].
  void keepBiases(const PlanOp& op, const float* biases);

 private:
  struct Table {
    RelativeScores read;
    float* biases;  // the memory that `read` names
    float* queries;
    float* keys;
  };
  // Writes a row of a table: of each bucket the value at `first`, which are `width` apart.
  void keepRow(float* row, const float* first, int64_t width) const;

  int32_t numHeads_ = 0, headDim_ = 0;
  std::vector<int32_t> bucketOfColumn_;
  std::vector<Table> tables_;
};

}  // namespace skein

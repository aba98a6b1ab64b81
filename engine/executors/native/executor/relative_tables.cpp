#include "executor/relative_tables.h"

#include <algorithm>

#include "executor/memory.h"

namespace skein {
namespace {

constexpr size_t kLineFloats = 16;

// Columns of a row: an odd number of cache lines, so that the rows of a head do not all fall into the same few places of a cache.
size_t strideOf(const ExecutorConfig& config) {
  const size_t longest = static_cast<size_t>(config.maxSeqLen);
  const size_t lines = roundUp(longest + roundUp(longest, kStepTokens), kLineFloats) / kLineFloats;
  return (lines | 1) * kLineFloats;
}

size_t floatsOf(const ExecutorConfig& config, const PlanOp& op) {
  if (op.kind != OpKind::kDistanceBiases && op.kind != OpKind::kDistanceProducts) return 0;
  const size_t heads = static_cast<size_t>(config.plan.layers.front().numHeads);
  const size_t headDim = static_cast<size_t>(config.plan.layers.front().headDim);
  if (op.kind == OpKind::kDistanceBiases) return heads * strideOf(config);
  return 2 * heads * headDim * strideOf(config);
}

}  // namespace

size_t RelativeTables::floats(const ExecutorConfig& config) {
  size_t sum = 0;
  for (const PlanOp& op : config.plan.ops) sum += floatsOf(config, op);
  return sum;
}

RelativeTables::RelativeTables(const ExecutorConfig& config, float* base) {
  const std::vector<int32_t>& buckets = config.plan.distanceBuckets;
  if (buckets.empty()) return;
  numHeads_ = config.plan.layers.front().numHeads;
  headDim_ = config.plan.layers.front().headDim;
  const int32_t reach = static_cast<int32_t>(buckets.size() / 2), zero = config.maxSeqLen - 1;
  bucketOfColumn_.resize(strideOf(config));
  for (int32_t column = 0; column < static_cast<int32_t>(bucketOfColumn_.size()); ++column)
    bucketOfColumn_[static_cast<size_t>(column)] =
        buckets[static_cast<size_t>(std::clamp(column - zero, -reach, reach) + reach)];
  for (const PlanOp& op : config.plan.ops) {
    const size_t count = floatsOf(config, op);
    if (count == 0) continue;
    const bool isBiases = op.kind == OpKind::kDistanceBiases;
    float* biases = isBiases ? base : nullptr;
    float* queries = isBiases ? nullptr : base;
    float* keys = isBiases ? nullptr : base + count / 2;
    const RelativeScores read{.biases = biases,
                              .queries = queries,
                              .keys = keys,
                              .stride = static_cast<int64_t>(strideOf(config)),
                              .zero = zero};
    tables_.push_back({read, biases, queries, keys});
    base += count;
  }
}

void RelativeTables::keepRow(float* row, const float* first, int64_t width) const {
  for (size_t column = 0; column < bucketOfColumn_.size(); ++column)
    row[column] = first[bucketOfColumn_[column] * width];
}

void RelativeTables::keepProducts(const PlanOp& op, const float* rows, int64_t width, ThreadPool& pool) {
  const Table& table = tables_[static_cast<size_t>(op.relative)];
  // Without one of them its products are with the zeros that are there.
  pool.run(numHeads_ * headDim_, [&](int32_t row, int32_t) {
    const int64_t at = row * table.read.stride;
    if (op.queriesColumn >= 0) keepRow(table.queries + at, rows + op.queriesColumn + row, width);
    if (op.keysColumn >= 0) keepRow(table.keys + at, rows + op.keysColumn + row, width);
  });
}

void RelativeTables::keepBiases(const PlanOp& op, const float* biases) {
  const Table& table = tables_[static_cast<size_t>(op.relative)];
  for (int32_t head = 0; head < numHeads_; ++head)
    keepRow(table.biases + head * table.read.stride, biases + head, numHeads_);
}

}  // namespace skein

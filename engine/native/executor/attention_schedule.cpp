#include "executor/attention_schedule.h"

#include <algorithm>

namespace skein {
namespace {

constexpr size_t kPartialBytesWanted = size_t(1) << 20;
// Tasks per thread: enough for an even end, few enough that claiming them costs nothing.
constexpr int32_t kGroupsPerThread = 6;

int64_t costOf(const AttentionUnit& unit, int32_t tokens) { return int64_t(unit.rowEnd - unit.rowBegin) * tokens; }

}  // namespace

AttentionSchedule::AttentionSchedule(const ExecutorConfig& config) : config_(config) {
  const NetworkPlan& plan = config.plan;
  const size_t maxSplits = static_cast<size_t>((config.maxSeqLen - 1) / kSplitTokens + 1);
  const size_t perRow = maxSplits * static_cast<size_t>(plan.numHeads / plan.numKvHeads) * static_cast<size_t>(plan.headDim + 2);
  // Very long sequences take fewer rows at a time, so that a thread's partial results stay in its cache.
  rowBlock_ = static_cast<int32_t>(std::clamp<size_t>(kPartialBytesWanted / (perRow * sizeof(float)), 1, kRowBlock));
  partialFloats_ = perRow * static_cast<size_t>(rowBlock_);
  sharedAreas_ = config.threads == 1 || maxSplits == 1 ? 0 : 2 * config.threads;

  const size_t blocks = static_cast<size_t>(config.maxNumSequences) + static_cast<size_t>(config.maxNumTokens / rowBlock_);
  const size_t units = blocks * static_cast<size_t>(plan.numKvHeads);
  units_.reserve(units);
  items_.reserve(units + static_cast<size_t>(sharedAreas_) * maxSplits);
  groupStart_.reserve(items_.capacity() + 2);
  sharedUnits_.reserve(static_cast<size_t>(sharedAreas_));
}

void AttentionSchedule::prepare(const BatchView& batch) {
  units_.clear();
  items_.clear();
  groupStart_.clear();
  sharedUnits_.clear();
  addUnits(batch);
  addItems();
}

// The rows are the inner loop: neighbouring tasks read the same keys.
void AttentionSchedule::addUnits(const BatchView& batch) {
  for (int32_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    const int32_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    const int32_t first = batch.contextLength[sequence] - rows;
    for (int32_t head = 0; head < config_.plan.numKvHeads; ++head) {
      for (int32_t row = 0; row < rows; row += rowBlock_) {
        const int32_t end = std::min(row + rowBlock_, rows);
        const int32_t tokens = first + end;
        units_.push_back({sequence, head, row, end, tokens, (tokens - 1) / kSplitTokens + 1, -1});
      }
    }
  }
}

void AttentionSchedule::addItems() {
  int64_t total = 0;
  for (const AttentionUnit& unit : units_) total += costOf(unit, unit.tokens);
  const int64_t share = total / (2 * config_.threads);
  const int64_t groupCost = total / (kGroupsPerThread * config_.threads);

  int64_t open = 0;
  groupStart_.push_back(0);
  const auto add = [&](int32_t unit, int32_t split, int64_t cost) {
    if (open > 0 && open + cost > groupCost) {
      groupStart_.push_back(static_cast<int32_t>(items_.size()));
      open = 0;
    }
    items_.push_back({unit, split});
    open += cost;
  };
  for (int32_t i = 0; i < static_cast<int32_t>(units_.size()); ++i) {
    AttentionUnit& unit = units_[static_cast<size_t>(i)];
    const int64_t cost = costOf(unit, unit.tokens);
    if (unit.splits == 1 || cost <= share || static_cast<int32_t>(sharedUnits_.size()) == sharedAreas_) {
      add(i, -1, cost);
      continue;
    }
    unit.sharedArea = static_cast<int32_t>(sharedUnits_.size());
    sharedUnits_.push_back(i);
    for (int32_t split = 0; split < unit.splits; ++split) add(i, split, costOf(unit, std::min(kSplitTokens, unit.tokens - split * kSplitTokens)));
  }
  groupStart_.push_back(static_cast<int32_t>(items_.size()));
}

}  // namespace skein

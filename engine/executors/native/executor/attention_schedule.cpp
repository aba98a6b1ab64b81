#include "executor/attention_schedule.h"

#include <algorithm>

namespace skein {
namespace {

constexpr size_t kPartialBytesWanted = size_t(1) << 20;
// Number of tasks per thread: enough for an even end, few enough that claiming them costs nothing.
constexpr int32_t kGroupsPerThread = 6;

int64_t costOf(const AttentionUnit& unit, int32_t tokens) { return int64_t(unit.rowEnd - unit.rowBegin) * tokens; }

int32_t splitsOf(int64_t tokens) { return static_cast<int32_t>((tokens + kSplitTokens - 1) / kSplitTokens); }

// Most splits that a unit can touch. A window of n tokens that slides over r rows covers n + r - 1, and begins anywhere
// in a split.
size_t mostSplits(const ExecutorConfig& config, const AttentionWindow& window) {
  const int32_t all = splitsOf(config.maxSeqLen);
  if (!window.on()) return static_cast<size_t>(all);
  const int64_t recent = int64_t(window.recent) + AttentionSchedule::kRowBlock - 1;
  return static_cast<size_t>(std::min<int64_t>(all, splitsOf(window.sinks) + int64_t(splitsOf(recent)) + 1));
}

}  // namespace

AttentionSchedule::AttentionSchedule(const ExecutorConfig& config) : config_(config), window_(config.window()) {
  const NetworkPlan& plan = config.plan;
  const size_t maxSplits = mostSplits(config, window_);
  const size_t perRow =
      maxSplits * static_cast<size_t>(plan.numHeads / plan.numKvHeads) * static_cast<size_t>(plan.headDim + 2);
  // Very long sequences take fewer rows at a time, so that a thread's partial results stay in its cache.
  rowBlock_ = static_cast<int32_t>(std::clamp<size_t>(kPartialBytesWanted / (perRow * sizeof(float)), 1, kRowBlock));
  partialFloats_ = perRow * static_cast<size_t>(rowBlock_);
  sharedAreas_ = config.threads == 1 || maxSplits == 1 ? 0 : 2 * config.threads;

  const size_t blocks =
      static_cast<size_t>(config.maxNumSequences) + static_cast<size_t>(config.maxNumTokens / rowBlock_);
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
        addUnit(sequence, head, batch.contextLength[sequence], first, row, std::min(row + rowBlock_, rows));
      }
    }
  }
}

void AttentionSchedule::addUnit(int32_t sequence, int32_t kvHead, int32_t tokens, int32_t first, int32_t row,
                                int32_t end) {
  const int32_t length = config_.plan.bothWays ? tokens : first + end;
  const int32_t splits = splitsOf(length);
  const int32_t begin = window_.on() ? std::max(0, first + row - window_.recent + 1) : 0;
  const int32_t sinks = std::min(window_.sinks, begin);
  const int32_t firstSplit = begin / kSplitTokens;
  const int32_t sinkSplits = std::min(splitsOf(sinks), firstSplit);
  units_.push_back({.sequence = sequence,
                    .kvHead = kvHead,
                    .rowBegin = row,
                    .rowEnd = end,
                    .tokens = length - begin + sinks,
                    .splits = sinkSplits + splits - firstSplit,
                    .sinkSplits = sinkSplits,
                    .firstSplit = firstSplit,
                    .sharedArea = -1});
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
    for (int32_t split = 0; split < unit.splits; ++split)
      add(i, split, costOf(unit, std::clamp(unit.tokens - split * kSplitTokens, 1, kSplitTokens)));
  }
  groupStart_.push_back(static_cast<int32_t>(items_.size()));
}

}  // namespace skein

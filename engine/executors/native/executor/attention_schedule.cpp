#include "executor/attention_schedule.h"

#include <algorithm>

namespace skein {
namespace {

constexpr size_t kPartialBytesWanted = size_t(1) << 20;
// Number of tasks per thread: enough for an even end, few enough that claiming them costs nothing.
constexpr int32_t kGroupsPerThread = 6;

int64_t costOf(const AttentionUnit& unit, int32_t tokens) { return int64_t(unit.rows) * tokens; }

int32_t splitsOf(int64_t tokens) { return static_cast<int32_t>((tokens + kSplitTokens - 1) / kSplitTokens); }

// Most splits that a unit can touch. A window of n tokens that slides over r rows covers n + r - 1, and begins anywhere
// in a split.
size_t mostSplits(const ExecutorConfig& config, const AttentionWindow& window) {
  const int32_t all = splitsOf(config.maxSeqLen);
  if (!window.on()) return static_cast<size_t>(all);
  const int64_t recent = int64_t(window.recent) + AttentionSchedule::kMostRows - 1;
  return static_cast<size_t>(std::min<int64_t>(all, splitsOf(window.sinks) + int64_t(splitsOf(recent)) + 1));
}

// Splits that a merge adds to those of a row: that of a score without a value.
int32_t addedSplits(const NetworkPlan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const PlanOp& op) { return op.sinkLogits >= 0; }) ? 1 : 0;
}

// Floats of the partial results of one row in the most splits.
size_t floatsOfRow(const ExecutorConfig& config, const LayerHeads& heads) {
  const size_t splits = mostSplits(config, config.window()) + static_cast<size_t>(addedSplits(config.plan));
  return splits * static_cast<size_t>(heads.headsPerKvHead()) * static_cast<size_t>(heads.headDim + 2);
}

// Very long sequences take fewer rows at a time, so that a thread's partial results stay in its cache.
int32_t rowBlockOf(const ExecutorConfig& config, const LayerHeads& heads) {
  const int32_t most =
      std::clamp(AttentionSchedule::kUnitPairs / heads.headsPerKvHead(), AttentionSchedule::kRowBlock, AttentionSchedule::kMostRows);
  return static_cast<int32_t>(std::clamp<size_t>(kPartialBytesWanted / (floatsOfRow(config, heads) * sizeof(float)), 1,
                                                 static_cast<size_t>(most)));
}

}  // namespace

AttentionSchedule::AttentionSchedule(const ExecutorConfig& config, const LayerHeads& heads)
    : config_(config),
      heads_(heads),
      window_(config.window()),
      rowBlock_(rowBlockOf(config, heads)),
      unitRows_(rowBlock_),
      partialFloats_(floatsOfRow(config, heads) * static_cast<size_t>(rowBlock_)),
      prefixes_({.tokensPerBlock = config.tokensPerBlock,
                 .maxNumSequences = config.maxNumSequences,
                 .rows = kRowBlock,
                 .splitRows = (int64_t(mostSplits(config, window_)) + addedSplits(config.plan)) * rowBlock_,
                 .addedSplits = addedSplits(config.plan)}) {
  const size_t maxSplits = mostSplits(config, window_);
  sharedAreas_ = config.threads == 1 || maxSplits == 1 ? 0 : 2 * config.threads;

  // Each picture begins a block of rows, and so does what follows it.
  const size_t blocks =
      config.plan.withinPictures
          ? static_cast<size_t>(config.maxNumTokens)
          : static_cast<size_t>(config.maxNumSequences) + static_cast<size_t>(config.maxNumTokens / std::min(rowBlock_, kRowBlock));
  const size_t units = blocks * static_cast<size_t>(heads.numKvHeads);
  members_.reserve(blocks);
  units_.reserve(units);
  items_.reserve(units + static_cast<size_t>(sharedAreas_) * maxSplits);
  groupStart_.reserve(items_.capacity() + 2);
  sharedUnits_.reserve(static_cast<size_t>(sharedAreas_));
}

void AttentionSchedule::prepare(const BatchView& batch) {
  members_.clear();
  units_.clear();
  items_.clear();
  groupStart_.clear();
  sharedUnits_.clear();
  unitRows_ = rowsOfUnits(batch);
  addGroups(batch);
  addUnits(batch);
  addItems();
}

// Where units of the most rows would be too few for the threads, they have fewer.
int32_t AttentionSchedule::rowsOfUnits(const BatchView& batch) const {
  const int64_t rows = int64_t(batch.queryStart[batch.numSequences]) * heads_.numKvHeads;
  int32_t block = rowBlock_;
  while (block > kRowBlock && rows < int64_t(block) * kGroupsPerThread * config_.threads) block = std::max(kRowBlock, block / 2);
  return block;
}

// In a window, rows of different positions see different beginnings.
void AttentionSchedule::addGroups(const BatchView& batch) {
  if (window_.on() || config_.plan.bothWays) return;
  prefixes_.find(batch);
  for (const PrefixGroup& group : prefixes_.groups()) {
    const int32_t begin = static_cast<int32_t>(members_.size());
    int32_t rows = 0, tokens = 0;
    for (int32_t i = group.begin; i < group.end; ++i) {
      const int32_t sequence = prefixes_.order()[static_cast<size_t>(i)];
      const int32_t own = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
      members_.push_back({.sequence = sequence, .rowBegin = 0, .rowEnd = own});
      rows += own;
      tokens = std::max(tokens, batch.contextLength[sequence]);
    }
    for (int32_t head = 0; head < heads_.numKvHeads; ++head) {
      units_.push_back({.kvHead = head,
                        .memberBegin = begin,
                        .memberEnd = static_cast<int32_t>(members_.size()),
                        .rows = rows,
                        .sharedTokens = group.tokens,
                        .tokens = tokens,
                        .splits = splitsOf(tokens),
                        .sinkSplits = 0,
                        .firstSplit = 0,
                        .sharedArea = -1});
    }
  }
}

// Cuts a sequence's rows into blocks, and at the borders of pictures.
void AttentionSchedule::addMembers(const BatchView& batch, int32_t sequence) {
  const int32_t base = batch.queryStart[sequence], rows = batch.queryStart[sequence + 1] - base;
  const int32_t first = batch.contextLength[sequence] - rows;
  const auto add = [&](int32_t begin, int32_t end, int32_t pictureEnd) {
    for (int32_t row = begin; row < end; row += unitRows_)
      members_.push_back({.sequence = sequence,
                          .rowBegin = row,
                          .rowEnd = std::min(row + unitRows_, end),
                          .pictureEnd = pictureEnd});
  };
  int32_t done = 0;
  for (; nextPicture_ < batch.pictures.length && batch.pictures[nextPicture_] < base + rows; nextPicture_ += 2) {
    const int32_t begin = batch.pictures[nextPicture_] - base, end = begin + batch.pictures[nextPicture_ + 1];
    add(done, begin, 0);
    add(begin, end, first + end);
    done = end;
  }
  add(done, rows, 0);
}

// The rows are the inner loop: neighbouring tasks read the same keys.
void AttentionSchedule::addUnits(const BatchView& batch) {
  const bool grouped = !prefixes_.groups().empty();
  nextPicture_ = 0;
  for (int32_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    if (grouped && prefixes_.isGrouped(sequence)) continue;
    const int32_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    const int32_t begin = static_cast<int32_t>(members_.size());
    addMembers(batch, sequence);
    const int32_t end = static_cast<int32_t>(members_.size());
    for (int32_t head = 0; head < heads_.numKvHeads; ++head)
      for (int32_t member = begin; member < end; ++member)
        addUnit(member, head, batch.contextLength[sequence], batch.contextLength[sequence] - rows);
  }
}

void AttentionSchedule::addUnit(int32_t member, int32_t kvHead, int32_t tokens, int32_t first) {
  const AttentionMember& of = members_[static_cast<size_t>(member)];
  const int32_t length = config_.plan.bothWays ? tokens : std::max(of.pictureEnd, first + of.rowEnd);
  const int32_t splits = splitsOf(length);
  const int32_t begin = window_.on() ? std::max(0, first + of.rowBegin - window_.recent + 1) : 0;
  const int32_t sinks = std::min(window_.sinks, begin);
  const int32_t firstSplit = begin / kSplitTokens;
  const int32_t sinkSplits = std::min(splitsOf(sinks), firstSplit);
  units_.push_back({.kvHead = kvHead,
                    .memberBegin = member,
                    .memberEnd = member + 1,
                    .rows = of.rowEnd - of.rowBegin,
                    .sharedTokens = 0,
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

AttentionSchedules::AttentionSchedules(const ExecutorConfig& config) {
  for (const LayerHeads& heads : config.plan.layers) {
    const auto isSame = [&](const AttentionSchedule& schedule) { return schedule.heads() == heads; };
    const auto found = std::find_if(schedules_.begin(), schedules_.end(), isSame);
    ofLayer_.push_back(static_cast<size_t>(found - schedules_.begin()));
    if (found == schedules_.end()) schedules_.emplace_back(config, heads);
  }
}

void AttentionSchedules::prepare(const BatchView& batch) {
  for (AttentionSchedule& schedule : schedules_) schedule.prepare(batch);
}

}  // namespace skein

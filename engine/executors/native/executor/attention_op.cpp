// The attention op: runs the tasks of the AttentionSchedule with the kernels' split and merge.
#include <algorithm>
#include <limits>

#include "executor/executor.h"

namespace skein {
namespace {

// Data of one layer's attention that all of its tasks share.
struct Layer {
  const KernelTable& kernels;
  const AttentionSchedule& schedule;
  const LayerHeads& heads;
  bool bothWays;
  const int32_t* segments;  // of the batch; null: rows attend to their whole sequence
  bool withinPictures;
  const BatchView& batch;
  KvLayer kv;
  const FreshChunks& fresh;
  const void* freshBlocks;
  const float* qkv;
  int64_t qkvWidth;
  float* output;  // of the first head here
  int64_t outputWidth;
  float scale, softCap;
  AttentionWindow window;
  const float* sinkQueries;
  const RelativeScores* relative;
  const float* sinkLogits;  // of each head; null: none

  // Number of floats in the partial results of one row, and of one unit, in one split.
  int64_t rowStride() const { return int64_t(heads.headsPerKvHead()) * (heads.headDim + 2); }
  int64_t splitStride(const AttentionUnit& unit) const { return rowStride() * unit.rows; }
  // Number of floats in all heads of a query row.
  int64_t queryFloats() const { return heads.queryWidth(); }
  int32_t firstPosition(int32_t sequence) const {
    const int32_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    return batch.contextLength[sequence] - rows;
  }
  // Cache position up to which all rows of a member see, whatever their own is; 0: each sees up to its own.
  int32_t endOf(const AttentionMember& member) const {
    if (bothWays) return batch.contextLength[member.sequence];
    return withinPictures ? member.pictureEnd : 0;
  }
  const AttentionMember& member(int32_t index) const { return schedule.members()[static_cast<size_t>(index)]; }
  // Begin and end of the segment of a sequence's row.
  const int32_t* segment(int32_t sequence, int32_t row) const {
    return segments + 2 * (batch.queryStart[sequence] + row);
  }
};

// Splits [begin, end) of a unit that its rows attend to.
struct SplitRange {
  int32_t begin, end;
};

SplitRange splitsOf(const Layer& layer, const AttentionUnit& unit) {
  if (!layer.segments) return {0, unit.splits};
  const AttentionMember& member = layer.member(unit.memberBegin);
  const int32_t first = layer.segment(member.sequence, member.rowBegin)[0];
  const int32_t end = layer.segment(member.sequence, member.rowEnd - 1)[1];
  return {first / kSplitTokens, (end - 1) / kSplitTokens + 1};
}

// A thread's memory: what the kernels need, query rows of several sequences side by side, and one unit's partial results.
struct Scratch {
  float* kernel;
  float* queries;  // [kRowBlock][numHeads * headDim]
  float* partials;
};

// The keys that an item reads first.
const void* firstKeys(const Layer& layer, const AttentionUnit& unit, int32_t index) {
  if (layer.window.on()) return nullptr;
  const int32_t position = unit.splitAt(index) * kSplitTokens, tokens = layer.kv.tokensPerBlock;
  const int32_t sequence = layer.member(unit.memberBegin).sequence;
  const int32_t block = layer.batch.blockTables[sequence * layer.batch.maxBlocks + position / tokens];
  return layer.kv.keys(block, unit.kvHead, position % tokens);
}

// Arguments for the rows of a member.
AttentionArgs argsOf(const Layer& layer, const AttentionMember& member, const void* next) {
  const int32_t sequence = member.sequence;
  const int64_t row = layer.batch.queryStart[sequence];
  AttentionArgs args{.kv = &layer.kv,
                     .blockTable = layer.batch.blockTables.data + sequence * layer.batch.maxBlocks,
                     .q = layer.qkv + row * layer.qkvWidth,
                     .ldq = layer.qkvWidth,
                     .numHeads = layer.heads.numHeads,
                     .firstPosition = layer.firstPosition(sequence),
                     .scale = layer.scale,
                     .softCap = layer.softCap,
                     .bothWays = layer.endOf(member),
                     .wholeAhead = layer.withinPictures,
                     .window = layer.window,
                     .next = next,
                     .relative = layer.relative};
  if (layer.sinkQueries) args.sinkQ = layer.sinkQueries + row * layer.queryFloats();
  if (const FreshChunk* chunk = layer.fresh.of(sequence)) {
    args.fresh =
        static_cast<const uint8_t*>(layer.freshBlocks) + layer.kv.bytesPerBlock() * static_cast<size_t>(chunk->place);
    args.freshBlock = chunk->firstBlock;
  }
  return args;
}

// Computes the positions of a split that all members share, for the rows of all of them: every row sees every one of these
// positions, as if they attended both ways to a sequence that ends there.
void runShared(const Layer& layer, const AttentionUnit& unit, int32_t split, int32_t end, const void* next,
               const Scratch& scratch, float* partial) {
  const int64_t headFloats = int64_t(layer.heads.headsPerKvHead()) * layer.heads.headDim;
  const int64_t column = unit.kvHead * headFloats;
  float* row = scratch.queries;
  for (int32_t i = unit.memberBegin; i < unit.memberEnd; ++i) {
    const AttentionMember& member = layer.member(i);
    const int64_t token = layer.batch.queryStart[member.sequence];
    for (int32_t r = member.rowBegin; r < member.rowEnd; ++r, row += layer.queryFloats())
      std::copy_n(layer.qkv + (token + r) * layer.qkvWidth + column, headFloats, row + column);
  }
  AttentionArgs args = argsOf(layer, layer.member(unit.memberBegin), next);
  args.q = scratch.queries;
  args.ldq = layer.queryFloats();
  args.bothWays = end;
  layer.kernels.attentionSplit(args, unit.kvHead, 0, unit.rows, split, scratch.kernel, partial);
}

// Computes a split of a unit whose rows attend to their segments alone: those of each segment together. Both ways a unit has one member.
void runSegments(const Layer& layer, const AttentionUnit& unit, int32_t split, const void* next, const Scratch& scratch,
                 float* partial) {
  const AttentionMember& member = layer.member(unit.memberBegin);
  AttentionArgs args = argsOf(layer, member, next);
  for (int32_t row = member.rowBegin; row < member.rowEnd;) {
    const int32_t* segment = layer.segment(member.sequence, row);
    const int32_t end = std::min(member.rowEnd, segment[1]);
    args.begin = segment[0];
    args.bothWays = segment[1];
    float* own = partial + (row - member.rowBegin) * layer.rowStride();
    layer.kernels.attentionSplit(args, unit.kvHead, row, end, split, scratch.kernel, own);
    row = end;
  }
}

// Computes one split of a unit into partials: [split of the unit][row][head][headDim + 2]. Rows that end before the
// split are left out.
void runSplit(const Layer& layer, const AttentionUnit& unit, int32_t index, const void* next, const Scratch& scratch,
              float* partials) {
  const int32_t split = unit.splitAt(index), begin = split * kSplitTokens;
  float* partial = partials + index * layer.splitStride(unit);
  if (layer.segments) return runSegments(layer, unit, split, next, scratch, partial);
  // A layer with a window of its own leaves out what each row does not see.
  const int32_t step = layer.kernels.attentionStep;
  const int32_t shared = layer.window.on() ? 0 : std::min(unit.sharedTokens / step * step, begin + kSplitTokens);
  if (shared > begin) runShared(layer, unit, split, shared, next, scratch, partial);
  if (shared == begin + kSplitTokens) return;
  for (int32_t i = unit.memberBegin; i < unit.memberEnd; ++i) {
    const AttentionMember& member = layer.member(i);
    AttentionArgs args = argsOf(layer, member, next);
    args.from = shared;
    const int32_t end = args.bothWays > 0 ? args.bothWays : args.firstPosition + member.rowEnd;
    const int32_t rowBegin =
        args.bothWays > 0 ? member.rowBegin : std::max(member.rowBegin, begin - args.firstPosition);
    float* own = partial + (rowBegin - member.rowBegin) * layer.rowStride();
    if (end > std::max(begin, shared))
      layer.kernels.attentionSplit(args, unit.kvHead, rowBegin, member.rowEnd, split, scratch.kernel, own);
    partial += (member.rowEnd - member.rowBegin) * layer.rowStride();
  }
}

// What a score without a value would be alone: a split after all others of a (row, head), whose merge gives it its part
// of the softmax. So it takes the same part whatever chunks and tasks there are.
void addSinkLogit(float logit, int32_t headDim, float* partial) {
  std::fill_n(partial, headDim, 0.0f);
  partial[headDim] = logit;
  partial[headDim + 1] = 1.0f;
}

void merge(const Layer& layer, const AttentionUnit& unit, float* partials) {
  const int32_t heads = layer.heads.headsPerKvHead(), headDim = layer.heads.headDim;
  const SplitRange seen = splitsOf(layer, unit);
  float* ofRow = partials + seen.begin * layer.splitStride(unit);
  for (int32_t i = unit.memberBegin; i < unit.memberEnd; ++i) {
    const AttentionMember& member = layer.member(i);
    const int32_t first = layer.firstPosition(member.sequence);
    const bool isWhole = layer.endOf(member) > 0;
    for (int32_t row = member.rowBegin; row < member.rowEnd; ++row, ofRow += layer.rowStride()) {
      const int64_t token = layer.batch.queryStart[member.sequence] + row;
      float* y = layer.output + token * layer.outputWidth + int64_t(unit.kvHead) * heads * headDim;
      const int32_t splits = isWhole ? seen.end - seen.begin : unit.splitsUpTo(first + row);
      for (int32_t head = 0; head < heads; ++head) {
        float* ofHead = ofRow + head * (headDim + 2);
        if (layer.sinkLogits)
          addSinkLogit(layer.sinkLogits[unit.kvHead * heads + head], headDim,
                       ofHead + splits * layer.splitStride(unit));
        layer.kernels.attentionMerge(ofHead, layer.splitStride(unit), layer.sinkLogits ? splits + 1 : splits, headDim,
                                     y + head * headDim);
      }
    }
  }
}

// The window of a layer: no more than the layer's own. If the engine has none, every block of a sequence is kept, and
// entry b of its table is block b. No sequence is longer than `most`, and so is no window.
AttentionWindow windowOf(const PlanOp& op, AttentionWindow window, int32_t most) {
  if (op.window == 0) return window;
  if (window.on()) {
    window.recent = std::min(window.recent, op.window);
    return window;
  }
  return {.recent = std::min(op.window, most),
          .sinks = 0,
          .sinkBlocks = 0,
          .ringBlocks = std::numeric_limits<int32_t>::max()};
}

}  // namespace

void Executor::runAttention(const PlanOp& op, const BatchView& batch) {
  const AttentionSchedule& schedule = schedules_.of(op.layer);
  const Layer attended{.kernels = kernels_,
                       .schedule = schedule,
                       .heads = config_.plan.headsOf(op),
                       .bothWays = config_.plan.bothWays,
                       .segments = op.segments ? batch.segments.data : nullptr,
                       .withinPictures = op.withinPictures,
                       .batch = batch,
                       .kv = layer(op.layer),
                       .fresh = fresh_,
                       .freshBlocks = freshBlocks_,
                       .qkv = value(op.input),
                       .qkvWidth = width(op.input),
                       .output = value(op.output) + op.firstColumn,
                       .outputWidth = width(op.output),
                       .scale = op.scale,
                       .softCap = op.softCap,
                       .window = windowOf(op, config_.window(), config_.maxSeqLen),
                       .sinkQueries = sinkQueries_,
                       .relative = relative_.of(op),
                       .sinkLogits = op.sinkLogits < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.sinkLogits))};
  const int64_t areaFloats = static_cast<int64_t>(roundUp(schedule.partialFloats(), 16));
  pool_.run(schedule.groups(), [&](int32_t group, int32_t thread) {
    float* base = threadScratch_ + threadScratchFloats_ * static_cast<size_t>(thread);
    float* queries = base + attentionScratchFloats_;
    const Scratch scratch{.kernel = base, .queries = queries, .partials = queries + queryScratchFloats_};
    for (int32_t i = schedule.groupBegin(group); i < schedule.groupBegin(group + 1); ++i) {
      const AttentionItem& item = schedule.items()[static_cast<size_t>(i)];
      const AttentionUnit& unit = schedule.units()[static_cast<size_t>(item.unit)];
      const SplitRange seen = splitsOf(attended, unit);
      if (item.split >= 0) {
        if (item.split >= seen.begin && item.split < seen.end)
          runSplit(attended, unit, item.split, nullptr, scratch, sharedPartials_ + areaFloats * unit.sharedArea);
        continue;
      }
      // The first step of the next unit has no earlier step of its own unit that could prefetch its keys, so this one
      // does.
      const AttentionItem* following = i + 1 < schedule.groupBegin(group + 1) ? &item + 1 : nullptr;
      const void* next = following ? firstKeys(attended, schedule.units()[static_cast<size_t>(following->unit)],
                                               std::max(following->split, 0))
                                   : nullptr;
      for (int32_t split = seen.begin; split < seen.end; ++split)
        runSplit(attended, unit, split, next, scratch, scratch.partials);
      merge(attended, unit, scratch.partials);
    }
  });
  const std::vector<int32_t>& shared = schedule.sharedUnits();
  pool_.run(static_cast<int32_t>(shared.size()), [&](int32_t i, int32_t) {
    const AttentionUnit& unit = schedule.units()[static_cast<size_t>(shared[static_cast<size_t>(i)])];
    merge(attended, unit, sharedPartials_ + areaFloats * unit.sharedArea);
  });
  if (fresh_.any()) keepFreshRows(op, batch);
}

}  // namespace skein

// The attention op: runs the tasks of the AttentionSchedule with the kernels' split and merge.
#include <algorithm>
#include <limits>

#include "executor/executor.h"

namespace skein {
namespace {

// Data of one layer's attention that all of its tasks share.
struct Layer {
  const KernelTable& kernels;
  const NetworkPlan& plan;
  const BatchView& batch;
  KvLayer kv;
  const FreshChunks& fresh;
  const void* freshBlocks;
  const float* qkv;
  float* output;  // of the first head here
  int64_t outputWidth;
  float scale, softCap;
  AttentionWindow window;
  const float* sinkQueries;

  int32_t headsPerKvHead() const { return plan.numHeads / plan.numKvHeads; }
  // Number of floats in the partial results of one row, and of one unit, in one split.
  int64_t rowStride() const { return int64_t(headsPerKvHead()) * (plan.headDim + 2); }
  int64_t splitStride(const AttentionUnit& unit) const { return rowStride() * (unit.rowEnd - unit.rowBegin); }
  // Length of the sequence if all rows attend to all of it, else 0.
  int32_t bothWays(const AttentionUnit& unit) const { return plan.bothWays ? batch.contextLength[unit.sequence] : 0; }
  int32_t firstPosition(const AttentionUnit& unit) const {
    const int32_t rows = batch.queryStart[unit.sequence + 1] - batch.queryStart[unit.sequence];
    return batch.contextLength[unit.sequence] - rows;
  }
};

// The keys that an item reads first.
const void* firstKeys(const Layer& layer, const AttentionUnit& unit, int32_t index) {
  if (layer.window.on()) return nullptr;
  const int32_t position = unit.splitAt(index) * kSplitTokens, tokens = layer.kv.tokensPerBlock;
  const int32_t block = layer.batch.blockTables[unit.sequence * layer.batch.maxBlocks + position / tokens];
  return layer.kv.keys(block, unit.kvHead, position % tokens);
}

// Computes one split of a unit into partials: [split of the unit][row][head][headDim + 2]. Rows that end before the
// split are left out.
void runSplit(const Layer& layer, const AttentionUnit& unit, int32_t index, const void* next, float* scratch,
              float* partials) {
  const int32_t split = unit.splitAt(index);
  const int32_t first = layer.firstPosition(unit);
  const int32_t rowBegin = layer.plan.bothWays ? unit.rowBegin : std::max(unit.rowBegin, split * kSplitTokens - first);
  AttentionArgs args{.kv = &layer.kv,
                     .blockTable = layer.batch.blockTables.data + unit.sequence * layer.batch.maxBlocks,
                     .q = layer.qkv + int64_t(layer.batch.queryStart[unit.sequence]) * layer.plan.qkvWidth(),
                     .ldq = layer.plan.qkvWidth(),
                     .numHeads = layer.plan.numHeads,
                     .firstPosition = first,
                     .scale = layer.scale,
                     .softCap = layer.softCap,
                     .bothWays = layer.bothWays(unit),
                     .window = layer.window,
                     .next = next};
  if (layer.sinkQueries) {
    const int64_t rowFloats = int64_t(layer.plan.numHeads) * layer.plan.headDim;
    args.sinkQ = layer.sinkQueries + int64_t(layer.batch.queryStart[unit.sequence]) * rowFloats;
  }
  if (const FreshChunk* chunk = layer.fresh.of(unit.sequence)) {
    args.fresh =
        static_cast<const uint8_t*>(layer.freshBlocks) + layer.kv.bytesPerBlock() * static_cast<size_t>(chunk->place);
    args.freshBlock = chunk->firstBlock;
  }
  float* partial = partials + index * layer.splitStride(unit) + (rowBegin - unit.rowBegin) * layer.rowStride();
  layer.kernels.attentionSplit(args, unit.kvHead, rowBegin, unit.rowEnd, split, scratch, partial);
}

void merge(const Layer& layer, const AttentionUnit& unit, const float* partials) {
  const int32_t first = layer.firstPosition(unit), heads = layer.headsPerKvHead(), headDim = layer.plan.headDim;
  for (int32_t row = unit.rowBegin; row < unit.rowEnd; ++row) {
    const int64_t token = layer.batch.queryStart[unit.sequence] + row;
    const float* ofRow = partials + (row - unit.rowBegin) * layer.rowStride();
    float* y = layer.output + token * layer.outputWidth + int64_t(unit.kvHead) * heads * headDim;
    const int32_t splits = layer.plan.bothWays ? unit.splits : unit.splitsUpTo(first + row);
    for (int32_t head = 0; head < heads; ++head) {
      layer.kernels.attentionMerge(ofRow + head * (headDim + 2), layer.splitStride(unit), splits, headDim,
                                   y + head * headDim);
    }
  }
}

// The window of a layer: no more than the layer's own. If the engine has none, every block of a sequence is kept, and
// entry b of its table is block b.
AttentionWindow windowOf(const PlanOp& op, AttentionWindow window) {
  if (op.window == 0) return window;
  if (window.on()) {
    window.recent = std::min(window.recent, op.window);
    return window;
  }
  return {.recent = op.window, .sinks = 0, .sinkBlocks = 0, .ringBlocks = std::numeric_limits<int32_t>::max()};
}

}  // namespace

void Executor::runAttention(const PlanOp& op, const BatchView& batch) {
  const Layer attended{kernels_,         config_.plan, batch,           layer(op.layer),
                       fresh_,           freshBlocks_, value(op.input), value(op.output) + op.firstColumn,
                       width(op.output), op.scale,     op.softCap,      windowOf(op, config_.window()),
                       sinkQueries_};
  const int64_t areaFloats = static_cast<int64_t>(roundUp(schedule_.partialFloats(), 16));
  pool_.run(schedule_.groups(), [&](int32_t group, int32_t thread) {
    float* scratch = threadScratch_ + threadScratchFloats_ * static_cast<size_t>(thread);
    for (int32_t i = schedule_.groupBegin(group); i < schedule_.groupBegin(group + 1); ++i) {
      const AttentionItem& item = schedule_.items()[static_cast<size_t>(i)];
      const AttentionUnit& unit = schedule_.units()[static_cast<size_t>(item.unit)];
      if (item.split >= 0) {
        runSplit(attended, unit, item.split, nullptr, scratch, sharedPartials_ + areaFloats * unit.sharedArea);
        continue;
      }
      float* partials = scratch + attentionScratchFloats_;
      // The first step of the next unit has no earlier step of its own unit that could prefetch its keys, so this one
      // does.
      const AttentionItem* following = i + 1 < schedule_.groupBegin(group + 1) ? &item + 1 : nullptr;
      const void* next = following ? firstKeys(attended, schedule_.units()[static_cast<size_t>(following->unit)],
                                               std::max(following->split, 0))
                                   : nullptr;
      for (int32_t split = 0; split < unit.splits; ++split) runSplit(attended, unit, split, next, scratch, partials);
      merge(attended, unit, partials);
    }
  });
  const std::vector<int32_t>& shared = schedule_.sharedUnits();
  pool_.run(static_cast<int32_t>(shared.size()), [&](int32_t i, int32_t) {
    const AttentionUnit& unit = schedule_.units()[static_cast<size_t>(shared[static_cast<size_t>(i)])];
    merge(attended, unit, sharedPartials_ + areaFloats * unit.sharedArea);
  });
  if (fresh_.any()) keepFreshRows(op, batch);
}

}  // namespace skein

#include "executor/adapters.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace skein {
namespace {

constexpr size_t kAlignBytes = 64;
// Rows of a piece: enough for the kernels' tiles, few enough to part a prompt among threads.
constexpr int64_t kRowsOfPiece = 48;
// Outputs of B that are worth a task of their own.
constexpr int64_t kPanelsOfTask = 16;
constexpr int64_t kTasksPerThread = 8;
// Parts of an adapter that one product may have: the parts of a stacked weight, and the whole of it.
constexpr int32_t kMostParts = 4;

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message + "."); }

bool isProduct(const PlanOp& op) { return op.kind == OpKind::kLinear || op.kind == OpKind::kGatedLinear; }

// Rows of the weight of a product.
int32_t weightRows(const NetworkPlan& plan, const PlanOp& op) {
  return plan.weights[static_cast<size_t>(op.weight)].rows;
}

bool readsTokens(const NetworkPlan& plan, const PlanOp& op) {
  return plan.values[static_cast<size_t>(op.input)].rows == RowKind::kTokens;
}

// y = x w^T + residual, in f32; residual null: none.
GemmArgs plainProduct(const float* x, int64_t ldx, const void* packed, int32_t n, int32_t k, float* y, int64_t ldy,
                      const float* residual) {
  return {.x = x,
          .ldx = ldx,
          .packed = packed,
          .dtype = DType::kF32,
          .n = n,
          .k = k,
          .bias = nullptr,
          .residual = residual,
          .ldr = ldy,
          .y = y,
          .ldy = ldy,
          .activation = Activation::kNone,
          .rounded = nullptr,
          .roundedRows = 0};
}

}  // namespace

Adapters::Adapters(const ExecutorConfig& config, const KernelTable& kernels)
    : config_(config), kernels_(kernels), slots_(static_cast<size_t>(config.maxAdapters)) {
  if (config.maxAdapters == 0) return;
  for (const PlanOp& op : config.plan.ops) {
    if (isProduct(op) && readsTokens(config.plan, op)) maxWidth_ = std::max(maxWidth_, weightRows(config.plan, op));
  }
  const size_t tokens = static_cast<size_t>(config.maxNumTokens);
  deltas_.resize(tokens);
  const size_t ofDeltas = checkedProduct(tokens, static_cast<size_t>(maxWidth_), "The workspace for adapters");
  const size_t ofLowered =
      checkedProduct(tokens * kMostParts, static_cast<size_t>(config.maxLoraRank), "The workspace for adapters");
  // One vector of room behind each: kernels may read what follows the last row, but never use it.
  const size_t room = kAlignBytes / sizeof(float);
  const size_t floats = roundUp(ofDeltas + room, room) + ofLowered + room;
  workspace_ = Mapping::anonymous(checkedProduct(floats, sizeof(float), "The workspace for adapters"),
                                  "The workspace for adapters");
  delta_ = reinterpret_cast<float*>(workspace_.data());
  lowered_ = delta_ + roundUp(ofDeltas + room, room);
}

void Adapters::checkPart(const AdapterPart& part) const {
  const std::vector<PlanOp>& ops = config_.plan.ops;
  if (part.op < 0 || static_cast<size_t>(part.op) >= ops.size() || !isProduct(ops[static_cast<size_t>(part.op)]) ||
      !readsTokens(config_.plan, ops[static_cast<size_t>(part.op)])) {
    fail("op is " + std::to_string(part.op) + ", which is no product of tokens of the plan");
  }
  const PlanWeight& weight = config_.plan.weights[static_cast<size_t>(ops[static_cast<size_t>(part.op)].weight)];
  if (part.rank < 1 || part.rank > config_.maxLoraRank)
    fail("rank is " + std::to_string(part.rank) + ", but it must be in [1, " + std::to_string(config_.maxLoraRank) +
         "]");
  if (part.firstRow < 0 || part.rows < 1 || part.rows > weight.rows - part.firstRow) {
    fail("rows " + std::to_string(part.firstRow) + " to " + std::to_string(int64_t(part.firstRow) + part.rows) +
         " are not all in " + weight.name + ", which has " + std::to_string(weight.rows));
  }
  const int64_t a = int64_t(part.rank) * weight.columns, b = int64_t(part.rows) * part.rank;
  if (part.a.length != a)
    fail("a has " + std::to_string(part.a.length) + " elements, but " + std::to_string(a) + " are needed");
  if (part.b.length != b)
    fail("b has " + std::to_string(part.b.length) + " elements, but " + std::to_string(b) + " are needed");
}

// Marks the parts of an op, which are in the order of their first rows, if two of them change the same rows.
void Adapters::markOverlaps(Slot& slot, size_t op) {
  const auto first = slot.parts.begin() + slot.firstOfOp[op], last = slot.parts.begin() + slot.firstOfOp[op + 1];
  const bool overlaps = std::adjacent_find(first, last, [](const Part& one, const Part& next) {
                          return one.firstRow + one.rows > next.firstRow;
                        }) != last;
  for (auto part = first; part != last; ++part) part->overlaps = overlaps;
}

Adapters::Slot& Adapters::at(int32_t slot) {
  if (slot < 0 || static_cast<size_t>(slot) >= slots_.size())
    fail("slot is " + std::to_string(slot) + ", but this executor has " + std::to_string(slots_.size()) + " slots");
  return slots_[static_cast<size_t>(slot)];
}

void Adapters::put(int32_t slot, const std::vector<AdapterPart>& parts) {
  Slot& target = at(slot);
  for (const AdapterPart& part : parts) checkPart(part);
  std::vector<const AdapterPart*> sorted;
  for (const AdapterPart& part : parts) sorted.push_back(&part);
  std::stable_sort(sorted.begin(), sorted.end(), [](const AdapterPart* one, const AdapterPart* other) {
    return one->op != other->op ? one->op < other->op : one->firstRow < other->firstRow;
  });
  Slot made;
  made.used = true;
  size_t bytes = 0;
  const auto take = [&](int32_t n, int32_t k) {
    const size_t offset = bytes;
    bytes += roundUp(kernels_.packedBytes(DType::kF32, n, k), kAlignBytes);
    return offset;
  };
  for (const AdapterPart* part : sorted) {
    const PlanOp& op = config_.plan.ops[static_cast<size_t>(part->op)];
    const int32_t columns = config_.plan.weights[static_cast<size_t>(op.weight)].columns;
    const size_t a = take(part->rank, columns), b = take(part->rows, part->rank);
    made.parts.push_back({part->op, part->firstRow, part->rows, part->rank, columns, a, b});
  }
  made.firstOfOp.assign(config_.plan.ops.size() + 1, 0);
  for (const Part& part : made.parts) ++made.firstOfOp[static_cast<size_t>(part.op) + 1];
  for (size_t op = 0; op < config_.plan.ops.size(); ++op) {
    if (made.firstOfOp[op + 1] > kMostParts)
      fail("op " + std::to_string(op) + " has " + std::to_string(made.firstOfOp[op + 1]) + " parts, but at most " +
           std::to_string(kMostParts) + " are taken");
    made.firstOfOp[op + 1] += made.firstOfOp[op];
    markOverlaps(made, op);
  }
  // A vector of room, as behind all packed weights: prefetches and the last loads may pass the end.
  made.memory = Mapping::anonymous(roundUp(bytes + 4096, 4096), "An adapter");
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Part& part = made.parts[i];
    kernels_.packWeights(DType::kF32, sorted[i]->a.data, part.rank, part.columns, made.memory.data() + part.a);
    kernels_.packWeights(DType::kF32, sorted[i]->b.data, part.rows, part.rank, made.memory.data() + part.b);
  }
  target = std::move(made);
}

void Adapters::clear(int32_t slot) { at(slot) = Slot(); }

void Adapters::check(const BatchView& batch) const {
  for (int64_t i = 0; i < batch.numSequences && batch.adapterSlots.length > 0; ++i) {
    const int32_t slot = batch.adapterSlots[i];
    if (slot >= 0 && !slots_[static_cast<size_t>(slot)].used)
      fail("adapterSlots[" + std::to_string(i) + "] is " + std::to_string(slot) +
           ", but there is no adapter in this slot");
  }
}

size_t Adapters::weightBytes() const {
  size_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.memory.size();
  return bytes;
}

void Adapters::prepare(const BatchView& batch) {
  runs_.clear();
  for (int64_t i = 0; i < batch.numSequences && batch.adapterSlots.length > 0; ++i) {
    const int32_t slot = batch.adapterSlots[i];
    if (slot < 0) continue;
    const int64_t begin = batch.queryStart[i], end = batch.queryStart[i + 1];
    if (!runs_.empty() && runs_.back().slot == slot && runs_.back().end == begin) runs_.back().end = end;
    else runs_.push_back({slot, begin, end});
  }
}

// The pieces of all runs whose adapter changes this product, those of one run's rows behind each other.
void Adapters::collect(int32_t op) {
  pieces_.clear();
  for (const Run& run : runs_) {
    const Slot& slot = slots_[static_cast<size_t>(run.slot)];
    const int32_t first = slot.firstOfOp[static_cast<size_t>(op)], last = slot.firstOfOp[static_cast<size_t>(op) + 1];
    for (int64_t begin = run.begin; begin < run.end; begin += kRowsOfPiece) {
      const int64_t end = std::min(run.end, begin + kRowsOfPiece);
      for (int32_t part = first; part < last; ++part) {
        pieces_.push_back({&slot.parts[static_cast<size_t>(part)], slot.memory.data(), begin, end, part - first});
      }
    }
  }
}

const float* const* Adapters::deltasOf(int32_t op, const float* input, int64_t rows, ThreadPool& pool) {
  if (runs_.empty()) return nullptr;
  collect(op);
  if (pieces_.empty()) return nullptr;
  const int32_t width = weightRows(config_.plan, config_.plan.ops[static_cast<size_t>(op)]);
  std::fill_n(deltas_.begin(), rows, nullptr);
  for (const Piece& piece : pieces_) {
    for (int64_t row = piece.begin; row < piece.end; ++row) deltas_[static_cast<size_t>(row)] = delta_ + row * width;
  }
  const int64_t areaFloats = int64_t(config_.maxNumTokens) * config_.maxLoraRank;
  const int32_t count = static_cast<int32_t>(pieces_.size());
  pool.run(count, [&](int32_t i, int32_t) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    const Part& part = *piece.part;
    // The first part of some rows clears what all parts add to.
    if (piece.area == 0)
      std::memset(delta_ + piece.begin * width, 0,
                  static_cast<size_t>((piece.end - piece.begin) * width) * sizeof(float));
    const GemmArgs args = plainProduct(input, part.columns, piece.memory + part.a, part.rank, part.columns,
                                       lowered_ + piece.area * areaFloats, config_.maxLoraRank, nullptr);
    const int32_t panels = (part.rank + kernels_.panelWidth - 1) / kernels_.panelWidth;
    kernels_.gemm(args, static_cast<int32_t>(piece.begin), static_cast<int32_t>(piece.end), 0, panels);
  });
  // Parts of the same rows may overlap (a stacked weight, and one of its parts): then one task adds all of them, in their order. Others are
  // parted by the weight's rows, too.
  // Few pieces are parted for the sake of the threads; many need not be, and so the tasks stay far below ThreadPool::kMaxTasks.
  const int64_t wanted =
      std::min<int64_t>(width / kernels_.panelWidth / kPanelsOfTask, config_.threads * kTasksPerThread / count);
  const int32_t ranges = static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, config_.threads));
  pool.run(count * ranges, [&](int32_t task, int32_t) {
    const size_t first = static_cast<size_t>(task / ranges);
    if (pieces_[first].area != 0) return;
    for (size_t i = first; i < pieces_.size() && (i == first || pieces_[i].area != 0); ++i) {
      const Piece& piece = pieces_[i];
      const Part& part = *piece.part;
      float* delta = delta_ + part.firstRow;
      const GemmArgs args = plainProduct(lowered_ + piece.area * areaFloats, config_.maxLoraRank, piece.memory + part.b,
                                         part.rows, part.rank, delta, width, delta);
      if (part.overlaps && task % ranges > 0) return;
      // Panels of this part that begin in the task's range of the weight's rows.
      const int64_t range = task % ranges, count = part.overlaps ? 1 : ranges;
      const int64_t from = range * width / count, to = (range + 1) * width / count;
      const int64_t panels = (part.rows + kernels_.panelWidth - 1) / kernels_.panelWidth;
      const auto panelAt = [&](int64_t row) {
        const int64_t inside = std::clamp<int64_t>(row - part.firstRow, 0, part.rows);
        return std::min(panels, (inside + kernels_.panelWidth - 1) / kernels_.panelWidth);
      };
      kernels_.gemm(args, static_cast<int32_t>(piece.begin), static_cast<int32_t>(piece.end),
                    static_cast<int32_t>(panelAt(from)), static_cast<int32_t>(panelAt(to)));
    }
  });
  return deltas_.data();
}

}  // namespace skein

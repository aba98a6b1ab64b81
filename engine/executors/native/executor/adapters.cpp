#include "executor/adapters.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace skein {
namespace {

// Rows of a piece: enough for the kernels' tiles, few enough that their inputs stay in the second-level cache.
constexpr int64_t kMostRowsOfPiece = 48;
constexpr int64_t kRowsOfTile = 8;
constexpr int64_t kPiecesPerThread = 2;

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message + "."); }

}  // namespace

Adapters::Adapters(const ExecutorConfig& config, const KernelTable& kernels)
    : config_(config), kernels_(kernels), slots_(static_cast<size_t>(config.maxAdapters)) {
  if (config.maxAdapters == 0) return;
  const size_t tokens = static_cast<size_t>(config.maxNumTokens);
  rows_.resize(tokens);
  groupOfSlot_.assign(slots_.size(), -1);
  stride_ = static_cast<int64_t>(
      roundUp(static_cast<size_t>(config.maxLoraRank) * kMostAdapterParts, kAlignBytes / sizeof(float)));
  const size_t floats = checkedProduct(tokens, static_cast<size_t>(stride_), "The workspace for adapters");
  workspace_ = Mapping::anonymous(checkedProduct(floats, sizeof(float), "The workspace for adapters"),
                                  "The workspace for adapters");
}

void Adapters::checkPart(const AdapterPart& part) const {
  const std::vector<PlanOp>& ops = config_.plan.ops;
  if (part.op < 0 || static_cast<size_t>(part.op) >= ops.size() ||
      !takesAdapter(config_.plan, ops[static_cast<size_t>(part.op)])) {
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

AdapterSlot& Adapters::at(int32_t slot) {
  if (slot < 0 || static_cast<size_t>(slot) >= slots_.size())
    fail("slot is " + std::to_string(slot) + ", but this executor has " + std::to_string(slots_.size()) + " slots");
  return slots_[static_cast<size_t>(slot)];
}

void Adapters::put(int32_t slot, const std::vector<AdapterPart>& parts) {
  AdapterSlot& target = at(slot);
  for (const AdapterPart& part : parts) checkPart(part);
  target = AdapterSlot(config_.plan, kernels_, parts);
}

void Adapters::clear(int32_t slot) { at(slot) = AdapterSlot(); }

void Adapters::check(const BatchView& batch) const {
  for (int64_t i = 0; i < batch.numSequences && batch.adapterSlots.length > 0; ++i) {
    const int32_t slot = batch.adapterSlots[i];
    if (slot >= 0 && !slots_[static_cast<size_t>(slot)].used())
      fail("adapterSlots[" + std::to_string(i) + "] is " + std::to_string(slot) +
           ", but there is no adapter in this slot");
  }
}

size_t Adapters::weightBytes() const {
  size_t bytes = 0;
  for (const AdapterSlot& slot : slots_) bytes += slot.bytes();
  return bytes;
}

// Counts the rows of each slot, gives each group its place, then fills the places in the order of the batch.
void Adapters::prepare(const BatchView& batch) {
  for (const Group& group : groups_) groupOfSlot_[static_cast<size_t>(group.slot)] = -1;
  groups_.clear();
  order_.clear();
  if (batch.adapterSlots.length == 0) return;
  const auto eachSequence = [&](const auto& run) {
    for (int64_t i = 0; i < batch.numSequences; ++i) {
      if (batch.adapterSlots[i] >= 0) run(batch.adapterSlots[i], batch.queryStart[i], batch.queryStart[i + 1]);
    }
  };
  eachSequence([&](int32_t slot, int64_t begin, int64_t end) {
    int32_t& index = groupOfSlot_[static_cast<size_t>(slot)];
    if (index < 0) {
      index = static_cast<int32_t>(groups_.size());
      groups_.push_back({slot, 0, 0});
    }
    groups_[static_cast<size_t>(index)].end += end - begin;
  });
  int64_t place = 0;
  for (Group& group : groups_) {
    const int64_t count = group.end;
    group.begin = group.end = place;
    place += count;
  }
  order_.resize(static_cast<size_t>(place));
  eachSequence([&](int32_t slot, int64_t begin, int64_t end) {
    Group& group = groups_[static_cast<size_t>(groupOfSlot_[static_cast<size_t>(slot)])];
    for (int64_t row = begin; row < end; ++row) order_[static_cast<size_t>(group.end++)] = row;
  });
}

// Fills rows_ and pieces_ for a product; false if no row's adapter changes it.
bool Adapters::collect(int32_t op, int64_t rows) {
  pieces_.clear();
  int64_t changed = 0;
  for (const Group& group : groups_) {
    if (slots_[static_cast<size_t>(group.slot)].product(op)) changed += group.end - group.begin;
  }
  if (changed == 0) return false;
  std::fill_n(rows_.begin(), rows, AdapterRow{nullptr, nullptr, false});
  const int64_t share = ceilDivide(changed, config_.threads * kPiecesPerThread * kRowsOfTile) * kRowsOfTile;
  const int64_t most = std::min(share, kMostRowsOfPiece);
  const float* t = reinterpret_cast<const float*>(workspace_.data());
  for (const Group& group : groups_) {
    const AdapterProduct* product = slots_[static_cast<size_t>(group.slot)].product(op);
    if (!product) continue;
    for (int64_t i = group.begin; i < group.end; ++i) {
      const int64_t row = order_[static_cast<size_t>(i)];
      rows_[static_cast<size_t>(row)] = {product, t + row * stride_, i == group.begin};
    }
    for (int64_t begin = group.begin; begin < group.end; begin += most)
      pieces_.push_back({product, begin, std::min(group.end, begin + most)});
  }
  return true;
}

const AdapterRow* Adapters::rowsOf(int32_t op, const float* input, int64_t rows, ThreadPool& pool) {
  if (groups_.empty() || !collect(op, rows)) return nullptr;
  const PlanOp& product = config_.plan.ops[static_cast<size_t>(op)];
  const int32_t columns = config_.plan.weights[static_cast<size_t>(product.weight)].columns;
  float* t = reinterpret_cast<float*>(workspace_.data());
  pool.run(static_cast<int32_t>(pieces_.size()), [&](int32_t task, int32_t) {
    const Piece& piece = pieces_[static_cast<size_t>(task)];
    const float* x[kMostRowsOfPiece];
    float* to[kMostRowsOfPiece];
    const int64_t count = piece.end - piece.begin;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = order_[static_cast<size_t>(piece.begin + i)];
      x[i] = input + row * columns;
      to[i] = t + row * stride_;
    }
    kernels_.lowerRows(*piece.product, columns, x, to, static_cast<int32_t>(count));
  });
  return rows_.data();
}

}  // namespace skein

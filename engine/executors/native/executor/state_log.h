// The inputs of ops with states for the rows of drafts. The states of a sequence are kept only up to its last row that is certain;
// a draft's rows are computed on a copy, and their inputs are logged. Once it is known how many of them were right, the next step
// replays these in front of its own rows: the same inputs in the same order, so the states have the same bits as without drafts.
//
//   step 1   rows  g7 | d8 d9 d10        kept: the states after g7           log: d8 d9 d10
//   step 2   d8 and d9 were right        replayed: d8 d9
//            rows  g10 | d11             kept: the states after g10          log: d11
//
// Where the replayed rows are drafts too, nothing is kept, and the step's rows are logged after them.
#pragma once
#include <algorithm>
#include <vector>

#include "executor/batch.h"
#include "executor/memory.h"
#include "executor/plan.h"

namespace skein {

// How a sequence's rows of a batch change its states.
struct StateRows {
  int32_t rows;
  int32_t replayed;  // logged rows in front of them
  bool keeps;        // the replayed rows are certain
  int32_t certain;   // the first rows, after which the states are kept
  bool begins;       // with zeros, whatever the slot holds

  StateRows(const BatchView& batch, int64_t sequence)
      : rows(batch.queryStart[sequence + 1] - batch.queryStart[sequence]),
        replayed(batch.stateReplays[sequence]),
        keeps(batch.stateDrafts[sequence] <= rows),
        certain(keeps ? rows - batch.stateDrafts[sequence] : 0),
        begins(batch.contextLength[sequence] == rows) {}

  // Place in the log of the first row that is a draft.
  int32_t firstLogged() const { return keeps ? 0 : replayed; }
};

// Most steps have no drafts, and pass over no sequence for them.
inline bool hasAny(const ArrayView<const int32_t>& counts, const BatchView& batch) {
  return std::any_of(counts.data, counts.data + batch.numSequences, [](int32_t count) { return count > 0; });
}

//   log   | slot 0: row 0: inputs of state 0, of state 1, ... | row 1 | ... | slot 1 ...
class StateLog {
 public:
  // Bytes of the log of all slots.
  static size_t bytes(const ExecutorConfig& config) {
    return checkedProduct(rowFloats(config.plan) * sizeof(float) * static_cast<size_t>(config.stateDraftRows),
                          static_cast<size_t>(config.numDraftSlots), "The log of drafts");
  }

  void open(const ExecutorConfig& config) {
    rows_ = config.stateDraftRows;
    for (const PlanOp& op : config.plan.ops) {
      if (op.state < 0) continue;
      offset_.resize(std::max(offset_.size(), static_cast<size_t>(op.state) + 1));
      offset_[static_cast<size_t>(op.state)] = stride_;
      stride_ += inputFloats(config.plan, op);
    }
    if (bytes(config) > 0) memory_ = Mapping::anonymous(bytes(config), "The log of drafts");
  }

  size_t size() const { return memory_.size(); }

  // Floats from one row to the next.
  int64_t stride() const { return static_cast<int64_t>(stride_); }

  // The inputs of an op in a row of a slot.
  float* at(int32_t state, int64_t slot, int32_t row) const {
    float* base = reinterpret_cast<float*>(memory_.data());
    return base + (static_cast<size_t>(slot) * static_cast<size_t>(rows_) + static_cast<size_t>(row)) * stride_ +
           offset_[static_cast<size_t>(state)];
  }

 private:
  static size_t inputFloats(const NetworkPlan& plan, const PlanOp& op) {
    const auto width = [&](int32_t value) { return static_cast<size_t>(plan.values[static_cast<size_t>(value)].width); };
    if (op.kind == OpKind::kShortConv) return width(op.output);
    if (op.kind == OpKind::kSelectiveScan) return width(op.input) + static_cast<size_t>(op.valueHeads);
    return width(op.input) + width(op.by);
  }
  static size_t rowFloats(const NetworkPlan& plan) {
    size_t floats = 0;
    for (const PlanOp& op : plan.ops)
      if (op.state >= 0) floats += inputFloats(plan, op);
    return floats;
  }

  int32_t rows_ = 0;  // of a slot
  size_t stride_ = 0;
  std::vector<size_t> offset_;  // of each state in a row
  Mapping memory_;
};

}  // namespace skein

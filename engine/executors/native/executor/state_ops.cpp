// The ops that keep states of sequences, and the pool of these states.
//
//   pool   | slot 0: state 0, state 1, ... | slot 1: state 0, state 1, ... |      a slot has the states of all layers
//
// A sequence whose first token is in the batch begins with states of 0, whatever its slot holds. Each op reads the states that
// the step before has left, and leaves its own at the end of the sequence's rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/each_row.h"
#include "executor/executor.h"
#include "executor/finite.h"
#include "executor/state_log.h"

namespace skein {
namespace {

constexpr size_t kStateAlign = 16;  // floats of a cache line

size_t slotFloats(const NetworkPlan& plan) {
  size_t floats = 0;
  for (const int32_t size : plan.states) floats += roundUp(static_cast<size_t>(size), kStateAlign);
  return floats;
}

}  // namespace

size_t Executor::statePoolBytes(const ExecutorConfig& config) {
  return checkedProduct(slotFloats(config.plan) * sizeof(float), static_cast<size_t>(config.numStateSlots),
                        "The pool of states") +
         StateLog::bytes(config);
}

void Executor::takeStatePool() {
  const NetworkPlan& plan = config_.plan;
  if (plan.states.empty()) return;
  for (const int32_t size : plan.states) {
    stateOffset_.push_back(slotFloats_);
    slotFloats_ += roundUp(static_cast<size_t>(size), kStateAlign);
  }
  stateLog_.open(config_);
  statePool_ = Mapping::anonymous(statePoolBytes(config_) - stateLog_.size(),
                                  "The pool of states (" + std::to_string(config_.numStateSlots) + " slots of " +
                                      std::to_string(slotFloats_ * sizeof(float)) + " bytes)");
  size_t lost = 0, inputs = 0;
  for (const PlanOp& op : plan.ops) {
    if (op.kind == OpKind::kGatedDelta || op.kind == OpKind::kSelectiveScan)
      lost = std::max(lost, static_cast<size_t>(op.keyDim + 1) * static_cast<size_t>(op.valueDim));
    if (op.kind == OpKind::kShortConv) inputs = std::max(inputs, static_cast<size_t>(width(op.output) * (op.taps - 1)));
  }
  lostStates_.assign(static_cast<size_t>(config_.threads), std::vector<float>(lost));
  if (stateLog_.size() > 0) replayedInputs_.resize(inputs * static_cast<size_t>(config_.maxNumSequences));
}

// The columns of a tap lie side by side, so that a vector of columns is one load.
void Executor::turnConvWeights() {
  for (const PlanOp& op : config_.plan.ops) {
    if (op.kind != OpKind::kShortConv) continue;
    const float* weight = static_cast<const float*>(weights_.raw(op.weight));
    const int64_t columns = width(op.output);
    std::vector<float>& turned = convWeights_[op.weight];
    turned.resize(static_cast<size_t>(columns * op.taps));
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t tap = 0; tap < op.taps; ++tap)
        turned[static_cast<size_t>(tap * columns + column)] = weight[column * op.taps + tap];
  }
}

float* Executor::stateOf(int32_t state, int64_t slot) const {
  float* base = reinterpret_cast<float*>(statePool_.data());
  return base + static_cast<size_t>(slot) * slotFloats_ + stateOffset_[static_cast<size_t>(state)];
}

void Executor::copyStates(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target) {
  if (slotFloats_ == 0) return;  // a rank whose layers keep none
  const ComputeTurns::Hold turn(turns_);
  uint8_t* base = statePool_.data();
  const size_t bytes = slotFloats_ * sizeof(float);
  for (int64_t i = 0; i < source.length; ++i)
    std::memmove(base + bytes * static_cast<size_t>(target[i]), base + bytes * static_cast<size_t>(source[i]), bytes);
}

bool Executor::areStatesFinite(const ArrayView<const int32_t>& slots) {
  if (slotFloats_ == 0) return true;
  const uint32_t* pool = reinterpret_cast<const uint32_t*>(statePool_.data());
  for (int64_t i = 0; i < slots.length; ++i)
    if (!allFinite(pool + static_cast<size_t>(slots[i]) * slotFloats_, slotFloats_, kExponentOfF32)) return false;
  return true;
}

void Executor::readStates(const ArrayView<const int32_t>& slots, uint8_t* target) {
  const size_t bytes = bytesPerStateSlot();
  for (int64_t i = 0; i < slots.length; ++i)
    std::memcpy(target + bytes * static_cast<size_t>(i), statePool_.data() + bytes * static_cast<size_t>(slots[i]),
                bytes);
}

void Executor::writeStates(const ArrayView<const int32_t>& slots, const uint8_t* source) {
  const size_t bytes = bytesPerStateSlot();
  for (int64_t i = 0; i < slots.length; ++i)
    std::memcpy(statePool_.data() + bytes * static_cast<size_t>(slots[i]), source + bytes * static_cast<size_t>(i),
                bytes);
}

void Executor::runGate(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input), factors = width(op.by);
  float* rows = value(op.input) + op.firstColumn;
  const float* by = value(op.by) + op.byFirst;
  eachRow(rowsOf(op.input, batch), op.columns, [&](int64_t row) {
    float* x = rows + row * n;
    const float* factor = by + row * factors;
    if (op.per == 1) return kernels_.gateRow(x, factor, op.activation, op.columns);
    for (int32_t column = 0; column < op.columns; column += op.per, ++factor) {
      float activated = 1;
      kernels_.gateRow(&activated, factor, op.activation, 1);
      kernels_.scaleRow(x + column, activated, op.per);
    }
  });
}

void Executor::logDrafts(const PlanOp& op, const BatchView& batch, const float* values, int64_t stride, int64_t count,
                         int64_t place) {
  if (!hasAny(batch.stateDrafts, batch)) return;
  eachRow(batch.numSequences, count, [&](int64_t sequence) {
    const StateRows states(batch, sequence);
    for (int32_t row = states.certain, logged = states.firstLogged(); row < states.rows; ++row, ++logged)
      std::memcpy(stateLog_.at(op.state, batch.stateSlots[sequence], logged) + place,
                  values + (batch.queryStart[sequence] + row) * stride, static_cast<size_t>(count) * sizeof(float));
  });
}

// Rows are computed side by side, since each reads inputs alone; then the last inputs of each sequence are kept.
void Executor::runShortConv(const PlanOp& op, const BatchView& batch) {
  const int64_t stride = width(op.input), columns = width(op.output);
  const int32_t kept = op.taps - 1;
  const size_t bytes = static_cast<size_t>(columns) * sizeof(float);
  const float* x = value(op.input) + op.firstColumn;
  const auto replayed = [&](int64_t sequence) { return replayedInputs_.data() + sequence * kept * columns; };
  const auto joinReplayed = [&](int64_t sequence) {
    const StateRows states(batch, sequence);
    if (states.replayed == 0) return;
    const int64_t slot = batch.stateSlots[sequence];
    for (int32_t place = 0; place < kept; ++place) {
      const int32_t row = states.replayed - kept + place;
      const float* from =
          row < 0 ? stateOf(op.state, slot) + (row + kept) * columns : stateLog_.at(op.state, slot, row);
      std::memcpy(replayed(sequence) + place * columns, from, bytes);
    }
  };
  if (hasAny(batch.stateReplays, batch)) eachRow(batch.numSequences, columns * kept, joinReplayed);
  const auto argsOf = [&](int64_t sequence) {
    const StateRows states(batch, sequence);
    const int64_t first = batch.queryStart[sequence], slot = batch.stateSlots[sequence];
    return ConvArgs{.x = x + first * stride,
                    .ldx = stride,
                    .history = states.begins || slot < 0 ? nullptr
                               : states.replayed > 0     ? replayed(sequence)
                                                         : stateOf(op.state, slot),
                    .weight = convWeights_.at(op.weight).data(),
                    .bias = op.bias < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.bias)),
                    .taps = op.taps,
                    .n = static_cast<int32_t>(columns),
                    .activation = op.activation,
                    .y = value(op.output) + first * columns,
                    .ldy = columns};
  };
  eachRowRange(batch.numTokens, columns * op.taps, [&](int64_t begin, int64_t end) {
    int64_t sequence = std::upper_bound(batch.queryStart.data, batch.queryStart.data + batch.numSequences + 1,
                                        static_cast<int32_t>(begin)) -
                       batch.queryStart.data - 1;
    for (int64_t row = begin; row < end; ++sequence) {
      const ConvArgs args = argsOf(sequence);
      const int64_t first = batch.queryStart[sequence], last = std::min<int64_t>(end, batch.queryStart[sequence + 1]);
      for (; row < last; ++row) kernels_.shortConvRow(args, static_cast<int32_t>(row - first));
    }
  });
  eachRow(batch.numSequences, columns * kept, [&](int64_t sequence) {
    const int64_t slot = batch.stateSlots[sequence];
    if (slot < 0) return;
    const ConvArgs args = argsOf(sequence);
    const StateRows states(batch, sequence);
    // Ascending, so that inputs of the state itself move to places before their own.
    const auto keep = [&](int32_t end, float* state) {
      for (int32_t place = 0; place < kept; ++place) {
        const float* from = args.input(end - kept + place);
        if (from == nullptr) std::memset(state + place * columns, 0, bytes);
        else std::memmove(state + place * columns, from, bytes);
      }
    };
    for (int32_t i = batch.snapshotStart[sequence]; i < batch.snapshotStart[sequence + 1]; ++i)
      keep(batch.snapshotRows[i] + 1 - batch.queryStart[sequence], stateOf(op.state, batch.snapshotSlots[i]));
    if (states.keeps) keep(states.certain, stateOf(op.state, slot));
  });
  logDrafts(op, batch, x, stride, columns, 0);
}

template <typename Args, typename ArgsOf, typename LoggedOf>
void Executor::passHeads(const PlanOp& op, const BatchView& batch, void (*kernel)(const Args&, int32_t, int32_t),
                         const ArgsOf& argsOf, const LoggedOf& loggedOf) {
  const int32_t heads = op.valueHeads;
  const size_t size = static_cast<size_t>(op.keyDim) * static_cast<size_t>(op.valueDim);
  pool_.run(static_cast<int32_t>(batch.numSequences) * heads, [&](int32_t task, int32_t thread) {
    const int32_t sequence = task / heads, head = task % heads;
    const int32_t first = batch.queryStart[sequence];
    const int64_t slot = batch.stateSlots[sequence];
    const StateRows states(batch, sequence);
    const auto headIn = [&](int64_t of) { return stateOf(op.state, of) + static_cast<size_t>(head) * size; };
    float* lost = lostStates_[static_cast<size_t>(thread)].data();
    float* kept = slot < 0 ? lost : headIn(slot);
    if (slot < 0 || states.begins) std::memset(kept, 0, size * sizeof(float));
    Args args = argsOf(sequence, head);
    args.state = kept;
    const auto leaveKept = [&] {
      std::memcpy(lost, kept, size * sizeof(float));
      args.state = lost;
    };
    if (states.replayed > 0) {
      if (!states.keeps) leaveKept();
      Args logged = loggedOf(args, stateLog_.at(op.state, slot, 0), head);
      logged.y = lost + size;
      logged.ldy = 0;
      kernel(logged, 0, states.replayed);
    }
    int32_t row = 0;
    const auto advance = [&](int32_t end) {
      if (row < states.certain) {
        const int32_t certain = std::min(end, states.certain);
        kernel(args, row, certain);
        row = certain;
      }
      if (row >= end) return;
      if (args.state != lost) leaveKept();
      kernel(args, row, end);
      row = end;
    };
    for (int32_t i = batch.snapshotStart[sequence]; i < batch.snapshotStart[sequence + 1]; ++i) {
      advance(batch.snapshotRows[i] + 1 - first);
      std::memcpy(headIn(batch.snapshotSlots[i]), args.state, size * sizeof(float));
    }
    advance(states.rows);
  });
}

void Executor::runGatedDelta(const PlanOp& op, const BatchView& batch) {
  const int32_t keys = op.keyHeads * op.keyDim, ofKey = op.valueHeads / op.keyHeads;
  const int64_t columns = width(op.input), gates = width(op.by);
  const float* decay = static_cast<const float*>(weights_.raw(op.decay));
  const float* bias = static_cast<const float*>(weights_.raw(op.decayBias));
  const auto argsOf = [&](int32_t sequence, int32_t head) {
    const int64_t first = batch.queryStart[sequence];
    const int32_t keyHead = op.tiled ? head % op.keyHeads : head / ofKey;
    return DeltaArgs{.qkv = value(op.input) + first * columns,
                     .ldqkv = columns,
                     .query = keyHead * op.keyDim,
                     .key = keys + keyHead * op.keyDim,
                     .value = 2 * keys + head * op.valueDim,
                     .gates = value(op.by) + first * gates + head,
                     .ldgates = gates,
                     .valueHeads = op.valueHeads,
                     .decay = op.rates ? static_cast<float>(std::log(-double(decay[head]))) : decay[head],
                     .decayBias = bias[head],
                     .keyDim = op.keyDim,
                     .valueDim = op.valueDim,
                     .epsilon = op.epsilon,
                     .state = nullptr,
                     .y = value(op.output) + first * width(op.output) + head * op.valueDim,
                     .ldy = width(op.output)};
  };
  passHeads(op, batch, kernels_.gatedDelta, argsOf, [&](DeltaArgs args, const float* log, int32_t head) {
    args.qkv = log;
    args.gates = log + columns + head;
    args.ldqkv = args.ldgates = stateLog_.stride();
    return args;
  });
  logDrafts(op, batch, value(op.input), columns, columns, 0);
  logDrafts(op, batch, value(op.by), gates, gates, columns);
}

void Executor::runSelectiveScan(const PlanOp& op, const BatchView& batch) {
  const int32_t heads = op.valueHeads, groups = op.keyHeads;
  const int64_t columns = width(op.input), values = int64_t(heads) * op.valueDim;
  const float* decay = static_cast<const float*>(weights_.raw(op.decay));
  const float* bias = static_cast<const float*>(weights_.raw(op.decayBias));
  const float* skip = static_cast<const float*>(weights_.raw(op.skip));
  const auto inputsOf = [&](ScanArgs args, const float* row, int32_t head) {
    args.x = row + int64_t(head) * op.valueDim;
    args.b = row + values + int64_t(head / (heads / groups)) * op.keyDim;
    args.c = args.b + int64_t(groups) * op.keyDim;
    return args;
  };
  const auto argsOf = [&](int32_t sequence, int32_t head) {
    const int64_t first = batch.queryStart[sequence];
    const ScanArgs args{.x = nullptr,
                        .b = nullptr,
                        .c = nullptr,
                        .ldx = columns,
                        .steps = value(op.by) + first * width(op.by) + op.byFirst + head,
                        .ldsteps = width(op.by),
                        .rate = op.rates ? decay[head] : static_cast<float>(-std::exp(double(decay[head]))),
                        .stepBias = bias[head],
                        .skip = skip[head],
                        .leastStep = op.leastStep,
                        .mostStep = op.mostStep,
                        .headDim = op.valueDim,
                        .stateDim = op.keyDim,
                        .state = nullptr,
                        .y = value(op.output) + first * values + int64_t(head) * op.valueDim,
                        .ldy = values};
    return inputsOf(args, value(op.input) + first * columns, head);
  };
  passHeads(op, batch, kernels_.selectiveScan, argsOf, [&](ScanArgs args, const float* log, int32_t head) {
    args.steps = log + columns + head;
    args.ldx = args.ldsteps = stateLog_.stride();
    return inputsOf(args, log, head);
  });
  logDrafts(op, batch, value(op.input), columns, columns, 0);
  logDrafts(op, batch, value(op.by) + op.byFirst, width(op.by), heads, columns);
}

}  // namespace skein

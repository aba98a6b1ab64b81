#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "executor/memory.h"
#include "executor/plan.h"
#include "executor/thread_pool.h"

namespace skein {

const char* opName(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbedding: return "embedding";
    case OpKind::kAddEmbedding: return "addEmbedding";
    case OpKind::kRmsNorm: return "rmsNorm";
    case OpKind::kRmsNormHeads: return "rmsNormHeads";
    case OpKind::kLayerNormHeads: return "layerNormHeads";
    case OpKind::kLayerNorm: return "layerNorm";
    case OpKind::kLinear: return "linear";
    case OpKind::kGatedLinear: return "gatedLinear";
    case OpKind::kRopeAndCache: return "ropeAndCache";
    case OpKind::kAttention: return "attention";
    case OpKind::kSoftCap: return "softCap";
    case OpKind::kXielu: return "xielu";
    case OpKind::kAddScaled: return "addScaled";
    case OpKind::kGate: return "gate";
    case OpKind::kShortConv: return "shortConv";
    case OpKind::kGatedDelta: return "gatedDelta";
    case OpKind::kSelectiveScan: return "selectiveScan";
    case OpKind::kScale: return "scale";
    case OpKind::kClamp: return "clamp";
    case OpKind::kSelectRows: return "selectRows";
    case OpKind::kJoin: return "join";
    case OpKind::kMeanPool: return "meanPool";
    case OpKind::kNormalize: return "normalize";
    case OpKind::kExchange: return "exchange";
    case OpKind::kExperts: return "experts";
    case OpKind::kDistanceRows: return "distanceRows";
    case OpKind::kDistanceProducts: return "distanceProducts";
    case OpKind::kDistanceBiases: return "distanceBiases";
    case OpKind::kAddPromptRows: return "addPromptRows";
    case OpKind::kRowInput: return "rowInput";
    case OpKind::kKeepRows: return "keepRows";
  }
  return "unknown";
}

namespace {

// Walks the ops in order and tracks which value each slot holds.
class PlanChecker {
 public:
  explicit PlanChecker(const ExecutorConfig& config)
      : config_(config),
        plan_(config.plan),
        owner_(config.plan.slots.size(), -1),
        cached_(config.plan.layers.size(), false),
        kept_(config.plan.states.size(), false) {}

  void run() {
    checkSlots();
    checkValues();
    for (index_ = 0; index_ < plan_.ops.size(); ++index_) checkOp(plan_.ops[index_]);
    if (plan_.logits == -1 && plan_.ranks > 1) return;
    if (plan_.logits < 0 || plan_.logits >= static_cast<int32_t>(plan_.values.size())) {
      throw std::runtime_error("The plan's logits name value " + std::to_string(plan_.logits) + ", but it has " +
                               std::to_string(plan_.values.size()) + " values.");
    }
    const PlanValue& logits = plan_.values[static_cast<size_t>(plan_.logits)];
    if (logits.rows != RowKind::kLogits || logits.width != plan_.outputWidth) {
      throw std::runtime_error("The plan's logits must be [logit rows x " + std::to_string(plan_.outputWidth) +
                               "], but value " + std::to_string(plan_.logits) + " is " + shape(plan_.logits) + ".");
    }
    if (owner_[static_cast<size_t>(logits.slot)] != plan_.logits) {
      throw std::runtime_error("The plan's logits (value " + std::to_string(plan_.logits) +
                               ") are never written, or their slot is used again after them.");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw std::runtime_error("Op " + std::to_string(index_) + " (" + opName(plan_.ops[index_].kind) +
                             ") of the plan: " + message + ".");
  }
  const PlanValue& value(int32_t index) const { return plan_.values[static_cast<size_t>(index)]; }
  const PlanWeight& weight(int32_t index) const { return plan_.weights[static_cast<size_t>(index)]; }
  int64_t capacity(RowKind rows) const { return config_.capacity(rows); }

  static std::string shape(RowKind rows, int64_t width) {
    const char* of = rows == RowKind::kTokens ? "tokens" : rows == RowKind::kLogits ? "logit rows" : "distances";
    return "[" + std::string(of) + " x " + std::to_string(width) + "]";
  }
  std::string shape(int32_t index) const { return shape(value(index).rows, value(index).width); }

  // Checks all slots, also those without a value: all of them take a place in the workspace.
  void checkSlots() const {
    constexpr int64_t kMostFloats = int64_t(1) << 40;
    int64_t floats = 0;
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      const PlanSlot& slot = plan_.slots[i];
      const std::string name = "Slot " + std::to_string(i) + " of the plan";
      if (slot.width < 1)
        throw std::runtime_error(name + " has width " + std::to_string(slot.width) + "; at least 1 is needed.");
      floats += capacity(slot.rows) * slot.width;
      if (floats > kMostFloats) {
        throw std::runtime_error(name + " brings the workspace to " + std::to_string(floats) + " values; at most " +
                                 std::to_string(kMostFloats) + " are taken.");
      }
    }
  }

  void checkValues() {
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const PlanValue& v = plan_.values[i];
      const std::string name = "Value " + std::to_string(i) + " of the plan";
      if (v.width < 1)
        throw std::runtime_error(name + " has width " + std::to_string(v.width) + "; at least 1 is needed.");
      if (v.slot < 0 || v.slot >= static_cast<int32_t>(plan_.slots.size())) {
        throw std::runtime_error(name + " lives in slot " + std::to_string(v.slot) + ", but the plan has " +
                                 std::to_string(plan_.slots.size()) + " slots.");
      }
      const PlanSlot& slot = plan_.slots[static_cast<size_t>(v.slot)];
      if (capacity(v.rows) * v.width > capacity(slot.rows) * slot.width) {
        throw std::runtime_error(name + " " + shape(static_cast<int32_t>(i)) + " does not fit into its slot " +
                                 std::to_string(v.slot) + " of width " + std::to_string(slot.width) + ".");
      }
    }
  }

  void checkIndex(int32_t index, const char* field) const {
    if (index < 0 || index >= static_cast<int32_t>(plan_.values.size())) {
      fail(std::string(field) + " names value " + std::to_string(index) + ", but the plan has " +
           std::to_string(plan_.values.size()) + " values");
    }
  }

  void reads(int32_t index, const char* field) const {
    checkIndex(index, field);
    const int32_t owner = owner_[static_cast<size_t>(value(index).slot)];
    if (owner == index) return;
    fail(std::string(field) + " reads value " + std::to_string(index) +
         (owner < 0 ? " before any op writes it" : ", whose slot holds value " + std::to_string(owner) + " by then"));
  }

  void writes(int32_t index, RowKind rows, int64_t width, const char* field) {
    checkIndex(index, field);
    if (value(index).rows != rows || value(index).width != width) {
      fail(std::string(field) + " must be " + shape(rows, width) + ", but value " + std::to_string(index) + " is " +
           shape(index));
    }
    if (rows == RowKind::kTokens && selected_)
      fail(std::string(field) + " has a row per token, but rows have been selected before");
    owner_[static_cast<size_t>(value(index).slot)] = index;
  }

  void separate(int32_t input, int32_t output) const {
    checkIndex(output, "output");
    if (value(input).slot == value(output).slot) {
      fail("input and output share slot " + std::to_string(value(input).slot) + ", which this op cannot do in place");
    }
  }

  void checkMatrix(int32_t index, int64_t rows, int64_t columns) const {
    const PlanWeight& w = weight(index);
    if (!w.matrix || w.rows != rows || w.columns != columns) {
      fail("weight " + w.name + " must be a matrix [" + std::to_string(rows) + " x " + std::to_string(columns) +
           "], but it is a " + (w.matrix ? "matrix" : "vector") + " [" + std::to_string(w.rows) + " x " +
           std::to_string(w.columns) + "]");
    }
  }

  void checkVector(int32_t index, int64_t columns, const char* field) const {
    const PlanWeight& w = weight(index);
    if (w.matrix || w.columns != columns) {
      fail(std::string(field) + " " + w.name + " must be a vector of " + std::to_string(columns) + ", but it is a " +
           (w.matrix ? "matrix" : "vector") + " [" + std::to_string(w.rows) + " x " + std::to_string(w.columns) + "]");
    }
  }

  void checkLayer(const PlanOp& op) const {
    if (selected_) fail("works on a row per token, but rows have been selected before");
    if (op.layer < 0 || op.layer >= plan_.numLayers()) {
      fail("layer " + std::to_string(op.layer) + " is not one of the " + std::to_string(plan_.numLayers()) + " layers");
    }
    const LayerHeads& heads = plan_.headsOf(op);
    const int32_t width = op.queriesOnly ? heads.queryWidth() : heads.qkvWidth();
    if (value(op.input).rows != RowKind::kTokens || value(op.input).width != width) {
      fail("qkv must be [tokens x " + std::to_string(width) + "], but value " + std::to_string(op.input) + " is " +
           shape(op.input));
    }
    if (!op.queriesOnly) return;
    if (!cached_[static_cast<size_t>(op.layer)])
      fail("its queries meet what layer " + std::to_string(op.layer) + " keeps, but no op has written that");
    if (config_.window().on()) fail("with an attention window each layer must keep keys and values of its own");
  }

  // True if the op before stores the keys that this attention reads: they may not be in the pool any earlier.
  bool followsItsCache(const PlanOp& op) const {
    if (index_ == 0) return false;
    const PlanOp& before = plan_.ops[index_ - 1];
    return before.kind == OpKind::kRopeAndCache && before.layer == op.layer && before.input == op.input && !before.queriesOnly;
  }

  void checkLinear(const PlanOp& op) {
    reads(op.input, "input");
    separate(op.input, op.output);
    const int64_t width = value(op.output).width;
    const int64_t stacked = op.kind == OpKind::kGatedLinear ? 2 : 1;
    const int64_t columns = plan_.ranks == 1 ? width : weight(op.weight).rows / stacked;
    const int64_t rows = stacked * columns;
    checkMatrix(op.weight, rows, value(op.input).width);
    checkColumns(op, columns);
    if (op.bias >= 0) checkVector(op.bias, rows, "bias");
    checkResidual(op);
    writes(op.output, value(op.input).rows, width, "output");
  }

  void checkRule(const ExpertRule& rule, int64_t experts) const {
    const auto within = [&](const char* name, int64_t value, int64_t most) {
      if (value < 1 || value > most)
        fail(std::string(name) + " must be between 1 and " + std::to_string(most) + ", but it is " +
             std::to_string(value));
    };
    within("groups.count", rule.groups, std::min<int64_t>(experts, kMostExpertGroups));
    if (experts % rule.groups != 0)
      fail("groups.count must divide the " + std::to_string(experts) + " experts, but it is " +
           std::to_string(rule.groups));
    const int64_t size = experts / rule.groups;
    within("groups.used", rule.usedGroups, rule.groups);
    within("groups.top", rule.groupTop, std::min<int64_t>(size, 2));
    within("used", rule.used, std::min<int64_t>(rule.usedGroups * size, kMostUsedExperts));
    if (!std::isfinite(rule.factor) || !(rule.factor > 0)) fail("factor must be a number greater than 0");
    if (!std::isfinite(rule.sumEpsilon) || !(rule.sumEpsilon >= 0)) fail("sumEpsilon must be a number of at least 0");
    if (rule.sumEpsilon > 0 && !(rule.isSigmoid() && rule.normalize))
      fail("sumEpsilon is for the sum of normalized sigmoids alone");
    const bool isSparse = rule.scoring == ExpertScoring::kSparseMixer;
    if (isSparse && (rule.used != kSparseUsed || rule.normalize || rule.groups != 1))
      fail("sparsemixer is for " + std::to_string(kSparseUsed) + " experts of one group that are not normalized");
    if (!(rule.jitter >= 0 && rule.jitter <= (isSparse ? 1 : 0)))
      fail("jitter must be a number from 0 to 1, and 0 without sparsemixer");
  }

  void checkExperts(const PlanOp& op) {
    reads(op.input, "input");
    reads(op.scores, "scores");
    separate(op.input, op.output);
    separate(op.scores, op.output);
    const int64_t experts = static_cast<int64_t>(op.gateUps.size());
    const PlanValue &input = value(op.input), &scores = value(op.scores), &output = value(op.output);
    if (experts < 1 || experts > kMostExperts || op.downs.size() != op.gateUps.size())
      fail("has " + std::to_string(experts) + " gates and " + std::to_string(op.downs.size()) +
           " ways down, but there must be as many of each, 1 to " + std::to_string(kMostExperts));
    if (scores.rows != input.rows || scores.width != experts)
      fail("scores must have a column for each of the " + std::to_string(experts) + " experts, but value " +
           std::to_string(op.scores) + " is " + shape(op.scores));
    checkRule(op.rule, experts);
    if (op.choiceBias >= 0) checkVector(op.choiceBias, experts, "choiceBias");
    if (op.choiceBias >= 0 && op.rule.scoring == ExpertScoring::kSparseMixer)
      fail("choiceBias is not for sparsemixer, which chooses by scores alone");
    if (op.shareScales >= 0) checkVector(op.shareScales, experts, "shareScales");
    const int64_t inner = weight(op.downs[0]).columns;
    for (size_t expert = 0; expert < op.gateUps.size(); ++expert) {
      checkMatrix(op.gateUps[expert], op.ungated ? inner : 2 * inner, input.width);
      checkMatrix(op.downs[expert], output.width, inner);
    }
    checkExpertParts(op, op.ungated ? inner : 2 * inner, output.width);
    checkResidual(op);
    writes(op.output, input.rows, output.width, "output");
  }

  // Checks what experts have besides their matrices. raised: rows of gate and up together.
  void checkExpertParts(const PlanOp& op, int64_t raised, int64_t width) const {
    const size_t count = op.gateUps.size();
    if (!op.gateUpBiases.empty() || !op.downBiases.empty()) {
      if (op.gateUpBiases.size() != count || op.downBiases.size() != count)
        fail("biases must be as many as the " + std::to_string(count) + " experts, but there are " +
             std::to_string(op.gateUpBiases.size()) + " and " + std::to_string(op.downBiases.size()));
      for (const int32_t bias : op.gateUpBiases) checkVector(bias, raised, "biases.gateUp");
      for (const int32_t bias : op.downBiases) checkVector(bias, width, "biases.down");
    }
    if (op.clampLimit == 0) return;
    if (!(op.clampAlpha > 0) || !(op.clampLimit > 0) || !std::isfinite(op.clampAlpha * op.clampLimit))
      fail("clamped must have an alpha and a limit greater than 0");
    if (op.ungated || op.activation != Activation::kNone) fail("clamped is in place of the activation of a gate");
  }

  // A rank's part of an op changes some columns of its output, which others complete.
  void checkColumns(const PlanOp& op, int64_t columns) const {
    const int64_t width = value(op.output).width;
    if (plan_.ranks == 1 ? op.firstColumn == 0 && columns == width
                         : op.firstColumn >= 0 && op.firstColumn + columns <= width)
      return;
    fail(std::to_string(columns) + " columns from column " + std::to_string(op.firstColumn) +
         " on do not fit the output, which is " + shape(op.output));
  }

  void checkExchange(const PlanOp& op) {
    checkIndex(op.input, "value");
    if (plan_.ranks == 1) fail("there is one rank alone");
    if (op.channel < 0 || op.channel >= kChannels) fail("channel " + std::to_string(op.channel) + " is not known");
    int32_t end = 0;
    bool has = false, gets = false;
    for (const ExchangePart& part : op.parts) {
      checkRank(part.rank);
      const bool fits = part.first >= end && part.count >= 1 && part.count <= value(op.input).width - part.first &&
                        static_cast<size_t>(part.count) <= kSlotBytes / sizeof(float);
      if (!fits) fail("the part of rank " + std::to_string(part.rank) + " does not fit " + shape(op.input));
      end = part.first + part.count;
      has = has || part.rank == plan_.rank;
    }
    for (const int32_t reader : op.readers) {
      checkRank(reader);
      gets = gets || reader == plan_.rank;
    }
    if (has) reads(op.input, "value");
    if (!gets) return;
    if (value(op.input).rows == RowKind::kLogits) selected_ = true;
    writes(op.input, value(op.input).rows, value(op.input).width, "value");
  }

  void checkRank(int32_t rank) const {
    if (rank < 0 || rank >= plan_.ranks)
      fail("rank " + std::to_string(rank) + " is not one of " + std::to_string(plan_.ranks));
  }

  void checkResidual(const PlanOp& op) const {
    if (op.residual < 0) return;
    reads(op.residual, "residual");
    if (value(op.residual).rows == value(op.output).rows && value(op.residual).width == value(op.output).width) return;
    fail("residual must have the shape of the output, " + shape(op.output) + ", but value " +
         std::to_string(op.residual) + " is " + shape(op.residual));
  }

  void checkEpsilon(const PlanOp& op) const {
    if (!(op.epsilon >= 0) || !std::isfinite(op.epsilon)) fail("epsilon must be a number of at least 0");
  }

  void checkHeads(const PlanOp& op) const {
    const int64_t headWidth = op.weight < 0 ? op.columns : weight(op.weight).columns;
    if (op.weight >= 0) checkVector(op.weight, headWidth, "weight");
    else if (headWidth < 1) fail("columns must be at least 1");
    const int64_t end = op.firstColumn + op.heads * headWidth;
    if (op.firstColumn >= 0 && op.heads >= 1 && end <= value(op.input).width) return;
    fail(std::to_string(op.heads) + " heads of " + std::to_string(headWidth) + " from column " +
         std::to_string(op.firstColumn) + " on must lie in value " + std::to_string(op.input) + ", which is " +
         shape(op.input));
  }

  // Checks heads that have weights of their own, one after the other.
  void checkOwnHeads(const PlanOp& op) const {
    const int64_t columns = weight(op.weight).columns;
    checkVector(op.weight, columns, "weight");
    if (op.heads < 1 || columns % op.heads != 0)
      fail("weight " + weight(op.weight).name + " has " + std::to_string(columns) + " entries for " +
           std::to_string(op.heads) + " heads");
    if (op.firstColumn >= 0 && op.firstColumn + columns <= value(op.input).width) return;
    fail(std::to_string(columns) + " columns from column " + std::to_string(op.firstColumn) + " on must lie in value " +
         std::to_string(op.input) + ", which is " + shape(op.input));
  }

  // Columns of a value that an op changes in place.
  void checkOwnColumns(const PlanOp& op) const {
    if (op.firstColumn >= 0 && op.columns >= 0 && op.columns <= value(op.input).width - op.firstColumn) return;
    fail("its columns do not lie in " + shape(op.input));
  }

  void checkSpan(int32_t index, int64_t first, int64_t columns, const char* field) const {
    if (first >= 0 && columns >= 1 && columns <= value(index).width - first) return;
    fail(std::string(field) + ": " + std::to_string(columns) + " columns from column " + std::to_string(first) +
         " on do not lie in " + shape(index));
  }

  void checkGate(const PlanOp& op) const {
    reads(op.input, "value");
    reads(op.by, "by");
    if (value(op.input).rows != value(op.by).rows) fail("the value and its factors must have as many rows");
    checkSpan(op.input, op.firstColumn, op.columns, "value");
    if (op.per < 1 || op.columns % op.per != 0)
      fail(std::to_string(op.columns) + " columns are not whole groups of " + std::to_string(op.per));
    checkSpan(op.by, op.byFirst, op.columns / op.per, "by");
    if (op.input == op.by && std::abs(op.firstColumn - op.byFirst) < op.columns)
      fail("columns cannot be changed by columns among them");
  }

  // A state of this size, which no other op of the plan uses.
  void checkState(const PlanOp& op, int64_t size) {
    if (op.state < 0 || op.state >= static_cast<int32_t>(plan_.states.size()))
      fail("state names state " + std::to_string(op.state) + ", but the plan has " +
           std::to_string(plan_.states.size()));
    if (kept_[static_cast<size_t>(op.state)]) fail("state " + std::to_string(op.state) + " is that of an op before");
    kept_[static_cast<size_t>(op.state)] = true;
    const int32_t found = plan_.states[static_cast<size_t>(op.state)];
    if (found != size)
      fail("state " + std::to_string(op.state) + " has " + std::to_string(found) + " numbers, but " +
           std::to_string(size) + " are needed");
    if (value(op.input).rows != RowKind::kTokens) fail("input must have one row per token");
  }

  void checkShortConv(const PlanOp& op) {
    reads(op.input, "input");
    separate(op.input, op.output);
    checkIndex(op.output, "output");
    const int64_t columns = value(op.output).width;
    checkSpan(op.input, op.firstColumn, columns, "input");
    if (op.taps < 2 || op.taps > 64) fail("taps must be between 2 and 64, but it is " + std::to_string(op.taps));
    checkVector(op.weight, columns * op.taps, "weight");
    if (op.bias >= 0) checkVector(op.bias, columns, "bias");
    checkState(op, (op.taps - 1) * columns);
    writes(op.output, RowKind::kTokens, columns, "output");
  }

  void checkGatedDelta(const PlanOp& op) {
    reads(op.input, "qkv");
    reads(op.by, "gates");
    separate(op.input, op.output);
    separate(op.by, op.output);
    const int64_t keyHeads = op.keyHeads, valueHeads = op.valueHeads, keyDim = op.keyDim, valueDim = op.valueDim;
    if (keyHeads < 1 || valueHeads < 1 || valueHeads > 4096 || valueHeads % keyHeads != 0)
      fail("valueHeads must be a multiple of keyHeads, but they are " + std::to_string(valueHeads) + " and " +
           std::to_string(keyHeads));
    if (keyDim < 1 || keyDim > kMostKeyDim || valueDim < 1 || valueDim > kMostKeyDim)
      fail("keyDim and valueDim must be between 1 and " + std::to_string(kMostKeyDim));
    if (value(op.input).width != 2 * keyHeads * keyDim + valueHeads * valueDim)
      fail("qkv must have the columns of all heads, but it is " + shape(op.input));
    if (value(op.by).width != 2 * valueHeads || value(op.by).rows != RowKind::kTokens)
      fail("gates must have two columns for each head of values, but they are " + shape(op.by));
    checkVector(op.decay, valueHeads, "decay");
    checkVector(op.decayBias, valueHeads, "decayBias");
    checkEpsilon(op);
    checkState(op, valueHeads * keyDim * valueDim);
    writes(op.output, RowKind::kTokens, valueHeads * valueDim, "output");
  }

  void checkSelectiveScan(const PlanOp& op) {
    reads(op.input, "input");
    reads(op.by, "steps");
    separate(op.input, op.output);
    separate(op.by, op.output);
    const int64_t groups = op.keyHeads, heads = op.valueHeads, stateDim = op.keyDim, headDim = op.valueDim;
    if (groups < 1 || heads < 1 || heads > kMostScanHeads || heads % groups != 0)
      fail("heads must be a multiple of groups and at most " + std::to_string(kMostScanHeads) + ", but they are " +
           std::to_string(heads) + " and " + std::to_string(groups));
    if (stateDim < 1 || stateDim > kMostKeyDim || headDim < 1 || headDim > kMostKeyDim)
      fail("stateDim and headDim must be between 1 and " + std::to_string(kMostKeyDim));
    if (value(op.input).width != heads * headDim + 2 * groups * stateDim)
      fail("input must have the columns of all heads and groups, but it is " + shape(op.input));
    if (value(op.by).rows != RowKind::kTokens) fail("steps must have one row per token");
    checkSpan(op.by, op.byFirst, heads, "steps");
    checkVector(op.decay, heads, "decay");
    checkVector(op.decayBias, heads, "stepBias");
    checkVector(op.skip, heads, "skip");
    if (!(op.leastStep >= 0) || !std::isfinite(op.leastStep) || !(op.mostStep >= op.leastStep))
      fail("leastStep must be a number of at least 0, and mostStep no less");
    checkState(op, heads * stateDim * headDim);
    writes(op.output, RowKind::kTokens, heads * headDim, "output");
  }

  void checkScale(const PlanOp& op) const {
    reads(op.input, "value");
    checkSpan(op.input, op.firstColumn, op.columns, "value");
    if (!std::isfinite(op.scale)) fail("factor must be a finite number");
  }

  void checkClamp(const PlanOp& op) const {
    reads(op.input, "value");
    checkSpan(op.input, op.firstColumn, op.columns, "value");
    if (!std::isfinite(op.least) || !std::isfinite(op.most) || op.least > op.most)
      fail("least and most must be finite numbers, least no more than most");
  }

  void checkXielu(const Xielu& xielu) const {
    for (const float number : {xielu.alphaPositive, xielu.alphaNegative, xielu.beta, xielu.epsilon})
      if (!std::isfinite(number)) fail("its numbers must be finite");
    if (xielu.epsilon > 0) fail("epsilon must be at most 0");
  }

  void checkTurnedNorms(const PlanOp& op) const {
    if (op.queryNorm < 0) return;
    checkEpsilon(op);
    checkVector(op.queryNorm, plan_.headsOf(op).headDim, "norms.query");
    checkVector(op.keyNorm, plan_.headsOf(op).headDim, "norms.key");
  }

  void checkRopeTable(const PlanOp& op) const {
    if (op.table < -1 || op.table >= static_cast<int32_t>(plan_.ropeTables.size()))
      fail("table names RoPE table " + std::to_string(op.table) + ", but the plan has " +
           std::to_string(plan_.ropeTables.size()));
    const int32_t rotated = plan_.rotaryDimOf(op.table), headDim = plan_.headsOf(op).headDim;
    if (rotated > headDim)
      fail("rotates " + std::to_string(rotated) + " columns of heads that have " + std::to_string(headDim));
  }

  void checkAttention(const PlanOp& op) const {
    if (!cached_[static_cast<size_t>(op.layer)]) {
      fail("layer " + std::to_string(op.layer) + " is attended to before ropeAndCache has written it");
    }
    if (!std::isfinite(op.scale)) fail("scale must be a finite number");
    if (!(op.softCap >= 0) || !std::isfinite(op.softCap)) fail("softCap must be a number greater than 0");
    if (op.window < 0) fail("window must be at least 1, but it is " + std::to_string(op.window));
    if (op.bothWays != plan_.bothWays)
      fail("attends up to each token's own position, but others of the plan both ways");
    if (op.segments && (!op.bothWays || op.window > 0 || op.relative >= 0 || config_.window().on()))
      fail("tokens attend to their segments only where they attend both ways, without a window and distances");
    if (op.bothWays && op.withinPictures) fail("attends both ways, and so within pictures too");
    if (config_.window().on() && !followsItsCache(op)) {
      fail("with an attention window it must follow the ropeAndCache of its layer directly");
    }
    if (op.relative >= 0) checkRelative(op);
    if (op.sinkLogits >= 0) checkVector(op.sinkLogits, plan_.headsOf(op).numHeads, "sinkLogits");
  }

  void checkRelative(const PlanOp& op) const {
    if (op.relative >= tables_) {
      fail("relative names table " + std::to_string(op.relative) + ", but ops before it make " +
           std::to_string(tables_));
    }
    if (!op.bothWays || op.window > 0 || op.softCap > 0)
      fail("scores depend on distances only where it attends both ways, without a window and a softCap");
    if (plan_.headsOf(op).headsPerKvHead() != 1 || config_.kvDtype != DType::kF32)
      fail("scores depend on distances only with a KV head for each head, and keys in f32");
  }

  // Tables are made in ascending order.
  void checkTable(const PlanOp& op) {
    if (op.relative != tables_)
      fail("table is " + std::to_string(op.relative) + ", but the next one is " + std::to_string(tables_));
    if (plan_.distanceBuckets.empty()) fail("the plan has no buckets of distances");
    ++tables_;
  }

  void checkDistanceProducts(const PlanOp& op) {
    reads(op.input, "value");
    if (value(op.input).rows != RowKind::kDistances) fail("value must have one row per distance");
    const int64_t width = plan_.layers.empty() ? 0 : plan_.layers.front().queryWidth();
    for (const int32_t first : {op.queriesColumn, op.keysColumn}) {
      if (first >= -1 && first + (first < 0 ? 1 : width) <= value(op.input).width) continue;
      fail(std::to_string(width) + " columns from column " + std::to_string(first) + " on must lie in value " +
           std::to_string(op.input) + ", which is " + shape(op.input));
    }
    checkTable(op);
  }

  void checkSelected(const PlanOp& op) {
    reads(op.input, "input");
    separate(op.input, op.output);
    if (value(op.input).rows != RowKind::kTokens) fail("input must have one row per token");
    if (op.rowsOfOutput < 1 || op.rowsOfOutput > kMostRowsOfOutput)
      fail("rows must be from 1 to " + std::to_string(kMostRowsOfOutput));
    if (op.rowsOfOutput > 1) checkAlone("its rows may be another rank's");
    selected_ = true;  // from here on every op can run again for other rows
    const int64_t sideBySide = op.meanOfRows ? 1 : op.rowsOfOutput;
    return writes(op.output, RowKind::kLogits, sideBySide * value(op.input).width, "output");
  }

  void checkAlone(const char* why) const {
    if (plan_.ranks > 1) fail("is not for ranks: " + std::string(why));
  }

  void checkOp(const PlanOp& op) {
    if (!plan_.isSetUp(op)) inSteps_ = true;
    else if (inSteps_) fail("is run once, and so must stand before all that each step runs");
    switch (op.kind) {
      case OpKind::kEmbedding:
        checkIndex(op.output, "output");
        checkMatrix(op.weight, plan_.vocabSize, value(op.output).width);
        if (!std::isfinite(op.scale)) fail("scale must be a finite number");
        return writes(op.output, RowKind::kTokens, value(op.output).width, "output");
      case OpKind::kAddEmbedding:
        reads(op.output, "output");
        checkMatrix(op.weight, op.lookup == LookupKind::kTokenIds ? plan_.vocabSize : weight(op.weight).rows,
                    value(op.output).width);
        if (!std::isfinite(op.scale)) fail("scale must be a finite number");
        return writes(op.output, RowKind::kTokens, value(op.output).width, "output");
      case OpKind::kRmsNorm:
      case OpKind::kLayerNorm:
        reads(op.input, "input");
        separate(op.input, op.output);
        checkVector(op.weight, value(op.input).width, "weight");
        if (op.bias >= 0) checkVector(op.bias, value(op.input).width, "bias");
        checkEpsilon(op);
        checkResidual(op);
        return writes(op.output, value(op.input).rows, value(op.input).width, "output");
      case OpKind::kRmsNormHeads:
        reads(op.input, "value");
        checkEpsilon(op);
        return checkHeads(op);
      case OpKind::kLayerNormHeads:
        reads(op.input, "value");
        checkEpsilon(op);
        return checkOwnHeads(op);
      case OpKind::kSoftCap:
        reads(op.input, "value");
        if (!(op.softCap > 0) || !std::isfinite(op.softCap)) fail("cap must be a number greater than 0");
        return checkOwnColumns(op);
      case OpKind::kXielu:
        reads(op.input, "value");
        checkXielu(op.xielu);
        return checkOwnColumns(op);
      case OpKind::kAddScaled:
        reads(op.input, "input");
        reads(op.output, "output");
        separate(op.input, op.output);
        checkVector(op.weight, value(op.input).width, "weight");
        return writes(op.output, value(op.input).rows, value(op.input).width, "output");
      case OpKind::kGate: return checkGate(op);
      case OpKind::kShortConv: return checkShortConv(op);
      case OpKind::kGatedDelta: return checkGatedDelta(op);
      case OpKind::kSelectiveScan: return checkSelectiveScan(op);
      case OpKind::kScale: return checkScale(op);
      case OpKind::kClamp: return checkClamp(op);
      case OpKind::kLinear:
      case OpKind::kGatedLinear: return checkLinear(op);
      case OpKind::kRopeAndCache:
        reads(op.input, "qkv");
        checkLayer(op);
        checkRopeTable(op);
        checkTurnedNorms(op);
        cached_[static_cast<size_t>(op.layer)] = true;
        return;
      case OpKind::kAttention:
        reads(op.input, "qkv");
        checkLayer(op);
        separate(op.input, op.output);
        checkAttention(op);
        checkIndex(op.output, "output");
        if (plan_.ranks > 1) {
          checkColumns(op, plan_.headsOf(op).queryWidth());
          return writes(op.output, RowKind::kTokens, value(op.output).width, "output");
        }
        return writes(op.output, RowKind::kTokens, plan_.headsOf(op).queryWidth(), "output");
      case OpKind::kNormalize:
        reads(op.input, "input");
        separate(op.input, op.output);
        return writes(op.output, value(op.input).rows, value(op.input).width, "output");
      case OpKind::kJoin:
        reads(op.input, "input");
        reads(op.by, "other");
        separate(op.input, op.output);
        separate(op.by, op.output);
        if (value(op.input).rows != value(op.by).rows) fail("the values that are joined must have as many rows");
        return writes(op.output, value(op.input).rows, int64_t(value(op.input).width) + value(op.by).width, "output");
      case OpKind::kMeanPool:
      case OpKind::kSelectRows: return checkSelected(op);
      case OpKind::kExchange: return checkExchange(op);
      case OpKind::kExperts: return checkExperts(op);
      case OpKind::kDistanceRows:
        checkIndex(op.output, "output");
        checkMatrix(op.weight, plan_.numBuckets, value(op.output).width);
        return writes(op.output, RowKind::kDistances, value(op.output).width, "output");
      case OpKind::kDistanceProducts: return checkDistanceProducts(op);
      case OpKind::kDistanceBiases:
        checkVector(op.weight, int64_t(plan_.numBuckets) * (plan_.layers.empty() ? 0 : plan_.layers.front().numHeads), "weight");
        return checkTable(op);
      case OpKind::kAddPromptRows:
        reads(op.output, "value");
        if (value(op.output).rows != RowKind::kTokens || selected_) fail("value must have one row per token");
        if (op.firstColumn < 0 || op.firstColumn > 1 << 20) fail("first must be from 0 to 1048576");
        return;
      case OpKind::kRowInput:
        checkAlone("its rows would be another rank's");
        checkIndex(op.output, "output");
        return writes(op.output, RowKind::kTokens, value(op.output).width, "output");
      case OpKind::kKeepRows:
        checkAlone("another rank would keep them");
        reads(op.input, "input");
        if (value(op.input).rows != RowKind::kTokens || selected_) fail("input must have one row per token");
        return;
    }
    fail("is not an op that this executor knows");
  }

  const ExecutorConfig& config_;
  const NetworkPlan& plan_;
  std::vector<int32_t> owner_;  // slot -> value it holds
  std::vector<bool> cached_;
  std::vector<bool> kept_;  // states that an op uses
  bool selected_ = false;
  bool inSteps_ = false;  // an op that each step runs has been seen
  int32_t tables_ = 0;    // of distances, made so far
  size_t index_ = 0;
};

void checkRange(int64_t value, int64_t least, int64_t most, const char* name) {
  if (value >= least && value <= most) return;
  throw std::runtime_error(std::string(name) + " must be between " + std::to_string(least) + " and " +
                           std::to_string(most) + ", but it is " + std::to_string(value) + ".");
}

void checkDistances(const ExecutorConfig& config) {
  constexpr int64_t kMostBuckets = 1 << 18, kMostTokens = 1 << 20;
  const NetworkPlan& plan = config.plan;
  const std::vector<int32_t>& buckets = plan.distanceBuckets;
  if (buckets.empty() && plan.numBuckets == 0) return;
  checkRange(plan.numBuckets, 1, kMostBuckets, "the number of buckets of distances");
  checkRange(static_cast<int64_t>(buckets.size()), 1, 2 * kMostBuckets, "the number of distances with a bucket");
  if (buckets.size() % 2 == 0)
    throw std::runtime_error("The distances with a bucket must be as many on both sides of 0.");
  for (const int32_t bucket : buckets) checkRange(bucket, 0, plan.numBuckets - 1, "a bucket of distances");
  checkRange(config.maxSeqLen, 1, kMostTokens, "maxSeqLen of a network whose scores depend on distances");
  if (plan.ranks > 1) throw std::runtime_error("Ranks do not share a network whose scores depend on distances.");
}

void checkPlaces(const ExecutorConfig& config) {
  const size_t threads = static_cast<size_t>(config.threads);
  if (!config.places.empty() && config.places.size() != threads) {
    throw std::runtime_error("places.cpus has places for " + std::to_string(config.places.size()) +
                             " threads, but there are " + std::to_string(threads) + ".");
  }
}

void checkHeads(const LayerHeads& heads) {
  checkRange(heads.numHeads, 1, 1 << 12, "numHeads");
  checkRange(heads.numKvHeads, 1, heads.numHeads, "numKvHeads");
  checkRange(heads.headDim, 1, 1 << 12, "headDim");
  if (heads.numHeads % heads.numKvHeads == 0) return;
  throw std::runtime_error("numHeads must be a multiple of numKvHeads, but they are " + std::to_string(heads.numHeads) +
                           " and " + std::to_string(heads.numKvHeads) + ".");
}

}  // namespace

AttentionWindow ExecutorConfig::window() const {
  if (maxAttentionWindow == 0) return {};
  const auto blocks = [&](int32_t tokens) { return (tokens + tokensPerBlock - 1) / tokensPerBlock; };
  const int32_t recent = maxAttentionWindow - sinkTokens;
  return {.recent = recent, .sinks = sinkTokens, .sinkBlocks = blocks(sinkTokens), .ringBlocks = blocks(recent)};
}

int64_t ExecutorConfig::tableEntries(int64_t tokens) const {
  const int64_t blocks = (tokens + tokensPerBlock - 1) / tokensPerBlock;
  const AttentionWindow range = window();
  return range.on() ? std::min<int64_t>(blocks, range.sinkBlocks + range.ringBlocks) : blocks;
}

void checkConfig(const ExecutorConfig& config) {
  constexpr int64_t kMost = int64_t(1) << 30;
  const NetworkPlan& plan = config.plan;
  checkRange(plan.ranks, 1, kMostRanks, "ranks");
  checkRange(plan.rank, 0, plan.ranks - 1, "rank");
  if (config.group != nullptr && (config.group->size() != plan.ranks || config.group->rank() != plan.rank))
    throw std::runtime_error("The plan is of rank " + std::to_string(plan.rank) + " of " + std::to_string(plan.ranks) +
                             ", but the group's memory is of rank " + std::to_string(config.group->rank()) + " of " +
                             std::to_string(config.group->size()) + ".");
  checkRange(plan.vocabSize, 1, kMost, "vocabSize");
  checkRange(plan.outputWidth, 1, kMost, "outputWidth");
  // Layers that keep states alone need no cache.
  checkRange(plan.numLayers(), plan.states.empty() ? 1 : 0, 1 << 16, "numLayers");
  for (const LayerHeads& heads : plan.layers) checkHeads(heads);
  checkRange(plan.rotaryDim, 0, 1 << 12, "rotaryDim");
  if (plan.rotaryDim % 2 != 0) {
    throw std::runtime_error("rotaryDim must be even, but it is " + std::to_string(plan.rotaryDim) + ".");
  }
  const size_t axes = plan.ropeAxes.size();
  if (axes > 0 && axes != static_cast<size_t>(plan.rotaryDim) / 2)
    throw std::runtime_error("ropeAxes has " + std::to_string(axes) + " axes, but there are " +
                             std::to_string(plan.rotaryDim / 2) + " frequencies.");
  for (const int32_t axis : plan.ropeAxes) checkRange(axis, 0, 2, "An axis of ropeAxes");
  for (const std::vector<float>& table : plan.ropeTables)
    checkRange(static_cast<int64_t>(table.size()), 0, 1 << 11, "The number of frequencies of a RoPE table");
  checkRange(config.threads, 1, ThreadPool::kMaxThreads, "threads");
  checkPlaces(config);
  checkRange(config.maxNumTokens, 1, (1 << 20) - 1, "maxNumTokens");
  checkRange(config.maxNumSequences, 1, (1 << 20) - 1, "maxNumSequences");
  checkRange(config.maxLogitRows, 1, (1 << 20) - 1, "maxLogitRows");
  checkRange(config.maxSeqLen, 1, kMost, "maxSeqLen");
  checkRange(config.numBlocks, 1, kMost, "numBlocks");
  checkRange(config.tokensPerBlock, 8, 1 << 16, "tokensPerBlock");
  if ((config.tokensPerBlock & (config.tokensPerBlock - 1)) != 0) {
    throw std::runtime_error("tokensPerBlock must be a power of two, but it is " +
                             std::to_string(config.tokensPerBlock) + ".");
  }
  checkRange(int64_t(config.numBlocks) * config.tokensPerBlock, 1, INT32_MAX, "numBlocks x tokensPerBlock");
  checkRange(config.maxAttentionWindow, 0, kMost, "maxAttentionWindow");
  for (const int32_t size : plan.states) checkRange(size, 1, kMost, "The size of a state");
  checkRange(config.numStateSlots, plan.states.empty() ? 0 : 1, (1 << 20) - 1, "numStateSlots");
  checkRange(config.numDraftSlots, 0, config.numStateSlots, "numDraftSlots");
  checkRange(config.stateDraftRows, 0, (1 << 16) - 1, "stateDraftRows");
  checkRange(config.maxAdapters, 0, kMostAdapters, "maxAdapters");
  checkRange(config.maxLoraRank, config.maxAdapters > 0 ? 1 : 0, kMostLoraRank, "maxLoraRank");
  checkRange(config.sinkTokens, 0, std::max(config.maxAttentionWindow - 1, 0), "sinkTokenLength");
  if (plan.wholeSequences && config.maxAttentionWindow > 0) {
    throw std::runtime_error("maxAttentionWindow is " + std::to_string(config.maxAttentionWindow) +
                             ", but a network that takes whole sequences has no window of the engine.");
  }
  if (config.sinkTokens > 0 && !plan.layersAreAlike()) {
    throw std::runtime_error("sinkTokenLength is " + std::to_string(config.sinkTokens) +
                             ", but with layers that have a window or a RoPE of their own there are no sinks.");
  }
  checkDistances(config);
  for (const OpProduct& product : plan.packed) {
    const PlanWeight& weight = plan.weights[static_cast<size_t>(product.weight)];
    if (!weight.matrix || (product.gated && weight.rows % 2 != 0))
      throw std::runtime_error("The plan packs " + weight.name + ", which is no matrix of such a product.");
  }
  PlanChecker(config).run();
}

}  // namespace skein

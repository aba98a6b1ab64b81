#include "executor/expert_rows.h"

#include <algorithm>

#include "executor/expert_choice.h"
#include "executor/memory.h"

namespace skein {

void ExpertRows::begin(const PlanOp& op, int32_t rows, const float* choiceBias, const float* shareScales) {
  experts_ = static_cast<int32_t>(op.gateUps.size());
  rule_ = op.rule;
  choiceBias_ = choiceBias;
  shareScales_ = shareScales;
  used_ = op.rule.used;
  rows_ = rows;
  const size_t pairs = static_cast<size_t>(rows) * static_cast<size_t>(used_);
  for (std::vector<int32_t>* list : {&chosen_, &pairOf_, &rowOfPair_, &expertOfPair_})
    if (list->size() < pairs) list->resize(pairs);
  if (shares_.size() < pairs) shares_.resize(pairs);
}

void ExpertRows::route(int32_t row, const float* scores) {
  int32_t* chosen = chosen_.data() + size_t(row) * size_t(used_);
  chooseExperts(rule_, experts_, scores, choiceBias_, chosen);
  float* shares = shares_.data() + size_t(row) * size_t(used_);
  shareOut(rule_, experts_, scores, chosen, shares);
  if (shareScales_ == nullptr) return;
  for (int32_t i = 0; i < used_; ++i) shares[i] *= shareScales_[chosen[i]];
}

void ExpertRows::sort() {
  firstPair_.assign(static_cast<size_t>(experts_) + 1, 0);
  const size_t pairs = static_cast<size_t>(this->pairs());
  for (size_t i = 0; i < pairs; ++i) ++firstPair_[static_cast<size_t>(chosen_[i]) + 1];
  for (size_t expert = 0; expert < static_cast<size_t>(experts_); ++expert)
    firstPair_[expert + 1] += firstPair_[expert];
  next_.assign(firstPair_.begin(), firstPair_.end() - 1);
  for (size_t i = 0; i < pairs; ++i) {
    const size_t pair = static_cast<size_t>(next_[static_cast<size_t>(chosen_[i])]++);
    pairOf_[i] = static_cast<int32_t>(pair);
    rowOfPair_[pair] = static_cast<int32_t>(i / static_cast<size_t>(used_));
    expertOfPair_[pair] = chosen_[i];
  }
}

const std::vector<ExpertTask>& ExpertRows::cut(int32_t panels, int32_t wanted, int32_t blockRows) {
  tasks_.clear();
  for (int32_t expert = 0; expert < experts_; ++expert) {
    const int32_t rows = rowsOf(expert);
    if (rows == 0) continue;
    const int64_t share = (int64_t(wanted) * rows + pairs() - 1) / pairs();
    const int32_t ranges = static_cast<int32_t>(std::clamp<int64_t>(share, 1, panels));
    // The blocks of rows are the inner loop: neighbouring tasks read the same weights.
    for (int32_t range = 0; range < ranges; ++range) {
      for (int32_t begin = 0; begin < rows; begin += blockRows) {
        tasks_.push_back({expert, begin, std::min(rows, begin + blockRows),
                          static_cast<int32_t>(int64_t(range) * panels / ranges),
                          static_cast<int32_t>(int64_t(range + 1) * panels / ranges)});
      }
    }
  }
  return tasks_;
}

size_t bytesOfRows(const KernelTable& kernels, DType weights, int32_t rows, int32_t k) {
  const size_t rounded = kernels.roundedBytes(weights, rows, k);
  return rounded > 0 ? rounded : static_cast<size_t>(rows) * static_cast<size_t>(k) * sizeof(float);
}

ExpertFloats expertFloats(const ExecutorConfig& config, const KernelTable& kernels, const PackedWeights& weights) {
  ExpertFloats most{};
  // Bytes of one pair as a product takes it: those of pairs of one expert lie close, and each expert's begin at a cache line.
  const auto bytesOfPair = [&](int32_t weight, int32_t k) {
    size_t bytes = 0;
    for (const DType dtype : weights.dtypes(weight)) bytes = std::max(bytes, bytesOfRows(kernels, dtype, 1, k));
    return roundUp(bytes, kLineBytes) + kLineBytes;
  };
  for (const PlanOp& op : config.plan.ops) {
    if (op.kind != OpKind::kExperts) continue;
    const PlanValue& input = config.plan.values[static_cast<size_t>(op.input)];
    const PlanValue& output = config.plan.values[static_cast<size_t>(op.output)];
    const int32_t inner = config.plan.weights[static_cast<size_t>(op.downs[0])].columns;
    const int32_t rows = config.capacity(input.rows);
    const size_t pairs = static_cast<size_t>(std::min(rows, rowsOfPass(op))) * static_cast<size_t>(op.rule.used);
    size_t bytes = 0;
    bool isMixed = false;
    for (size_t expert = 0; expert < op.gateUps.size(); ++expert) {
      bytes = std::max({bytes, bytesOfPair(op.gateUps[expert], input.width), bytesOfPair(op.downs[expert], inner)});
      isMixed = isMixed || config.plan.weights[static_cast<size_t>(op.gateUps[expert])].parts.size() > 1;
    }
    most.pairs = std::max(most.pairs, pairs * bytes / sizeof(float));
    most.inner = std::max(most.inner, pairs * static_cast<size_t>(inner));
    const bool isClamped = op.clampLimit > 0;
    if (isMixed) most.up = std::max(most.up, (isClamped ? 2 : 1) * pairs * static_cast<size_t>(inner));
    if (isClamped) most.clamped = kClampedFloats * static_cast<size_t>(config.threads);
    most.sums = std::max(most.sums, pairs * static_cast<size_t>(output.width));
  }
  return most;
}

}  // namespace skein

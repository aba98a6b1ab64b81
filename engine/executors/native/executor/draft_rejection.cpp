#include "executor/draft_rejection.h"

#include <algorithm>
#include <cmath>

#include "executor/philox.h"

namespace skein {
namespace {

// Numbers of these draws at a position, apart from those of ordinary draws, which count from 0.
constexpr uint32_t kAcceptanceDraw = 0x80000000u;
constexpr uint32_t kResidualDraw = 0x80000001u;

}  // namespace

int32_t DraftRejection::draw(const SamplingView& sampling, int64_t row, const DraftRowView& draft, const float* logits,
                             float maximum) {
  weighTarget(sampling, row, logits, maximum);
  weighDraft(draft.logits.data);
  const auto uniform = [&](uint32_t number) {
    return philoxUniform(sampling.seed[row], sampling.sequenceIndex[row], sampling.position[row], number);
  };
  const size_t drafted = static_cast<size_t>(draft.token);
  if (uniform(kAcceptanceDraw) * draft_[drafted] < target_[drafted]) return draft.token;
  double sum = 0;
  for (size_t t = 0; t < target_.size(); ++t) sum += std::max(0.0, target_[t] - draft_[t]);
  // If p equals q except for rounding there is no rest to draw from, and p itself will do.
  const bool isRest = sum > 0;
  double left = uniform(kResidualDraw) * (isRest ? sum : 1);
  int32_t token = -1;
  for (int32_t t = 0; t < vocabSize_; ++t) {
    const size_t i = static_cast<size_t>(t);
    const double mass = isRest ? target_[i] - draft_[i] : target_[i];
    if (mass <= 0) continue;
    token = t;
    left -= mass;
    if (left < 0) break;
  }
  return token;
}

void DraftRejection::weighTarget(const SamplingView& sampling, int64_t row, const float* logits, float maximum) {
  const float temperature = sampling.temperature[row], topP = sampling.topP[row], minP = sampling.minP[row];
  const int32_t topK = sampling.topK[row];
  const size_t size = static_cast<size_t>(vocabSize_);
  weights_.resize(size);
  target_.assign(size, 0);
  order_.clear();
  kernels_.expRow(logits, vocabSize_, maximum, 1.0f / temperature, weights_.data());
  const double floor =
      minP > 0 ? static_cast<double>(maximum) + std::log(static_cast<double>(minP)) * static_cast<double>(temperature)
               : -INFINITY;
  for (int32_t t = 0; t < vocabSize_; ++t)
    if (weights_[static_cast<size_t>(t)] > 0) order_.push_back(t);
  const bool sorts = topP < 1 || (topK > 0 && topK < vocabSize_);
  if (sorts) {
    std::sort(order_.begin(), order_.end(),
              [&](int32_t a, int32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
    if (topK > 0 && topK < static_cast<int32_t>(order_.size())) order_.resize(static_cast<size_t>(topK));
  }
  double mass = 0;
  for (const int32_t t : order_) mass += static_cast<double>(weights_[static_cast<size_t>(t)]);
  double before = 0, kept = 0;
  for (const int32_t t : order_) {
    const double weight = static_cast<double>(weights_[static_cast<size_t>(t)]);
    // The kept tokens are a beginning of the order; the most probable token is always kept.
    if (topP < 1 && kept > 0 && before >= static_cast<double>(topP) * mass) break;
    before += weight;
    if (logits[t] < static_cast<float>(floor)) continue;
    target_[static_cast<size_t>(t)] = weight;
    kept += weight;
  }
  for (double& probability : target_) probability /= kept;
}

void DraftRejection::weighDraft(const float* logits) {
  const float maximum = *std::max_element(logits, logits + vocabSize_);
  kernels_.expRow(logits, vocabSize_, maximum, 1.0f, weights_.data());
  double sum = 0;
  for (const float weight : weights_) sum += static_cast<double>(weight);
  draft_.resize(weights_.size());
  for (size_t t = 0; t < draft_.size(); ++t) draft_[t] = static_cast<double>(weights_[t]) / sum;
}

}  // namespace skein

#include "executor/sampling.h"

#include <algorithm>
#include <cmath>

#include "executor/log_probs.h"
#include "executor/philox.h"

namespace skein {
namespace {

// Least sum of a flat chunk, in which most tokens have some weight relative to the greatest. In a flat row top-p needs
// most weights again for each draw, so they are kept; otherwise writing them costs more than computing the few again.
constexpr float kFlatSum = 64;
// More than the rounding error of sums in f64.
constexpr double kRoundingMargin = 1e-12;
constexpr int32_t kGroupsPerChunk = kVocabChunk / kVocabGroup;

// Adds up the weights of tokens that `bound` holds, in eight lanes; ids are counted from the first token.
template <class Holds>
float addHeld(const float* logits, const float* weights, int32_t n, const Holds& holds) {
  constexpr int32_t kLanes = 8;
  float lanes[kLanes] = {};
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int32_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += holds(logits[i + lane], i + lane) ? weights[i + lane] : 0.0f;
  }
  for (; i < n; ++i) lanes[0] += holds(logits[i], i) ? weights[i] : 0.0f;
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

float weightHeld(const float* logits, const float* weights, int32_t n, OrderBound bound) {
  const float least = bound.logit;
  // All tokens come before the bound's id, or all after it: only one group has both.
  if (bound.before >= n) return addHeld(logits, weights, n, [least](float logit, int32_t) { return logit >= least; });
  if (bound.before <= 0) return addHeld(logits, weights, n, [least](float logit, int32_t) { return logit > least; });
  return addHeld(logits, weights, n, [bound](float logit, int32_t id) { return bound.holds(logit, id); });
}

size_t partsOf(int32_t vocabSize, int32_t part) { return static_cast<size_t>((vocabSize + part - 1) / part); }

}  // namespace

RowSampler::RowSampler(const KernelTable& kernels, int32_t vocabSize)
    : kernels_(kernels),
      vocabSize_(vocabSize),
      maxima_(partsOf(vocabSize, kVocabChunk)),
      sums_(maxima_.size()),
      factors_(maxima_.size()),
      weights_(partsOf(vocabSize, kVocabChunk) * kVocabChunk),
      groupMaxima_(partsOf(vocabSize, kVocabGroup)),
      logSoftmax_(static_cast<size_t>(vocabSize)),
      changes_(vocabSize),
      selection_(kernels, vocabSize),
      rejection_(kernels, vocabSize),
      chain_(kernels, selection_) {}

void RowSampler::sample(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, float* logits) {
  if (sampling.listsCandidates.length > 0 && sampling.listsCandidates[row] != 0)
    return listCandidates(sampling, output, row, logits);
  const float* changed = changes_.apply(sampling, row, logits);
  float maximum = 0;
  const int32_t token = choose(sampling, row, changed, &maximum);
  output.tokens[row] = token;
  output.logProbs[row] = 0;
  if (token >= 0) {
    output.status[row] = kRowOk;
    writeLogProbs(sampling, output, row, changed, maximum);
  } else {
    const bool allBanned = std::all_of(changed, changed + vocabSize_, [](float x) { return x == -INFINITY; });
    output.status[row] = allBanned && changes_.bans() ? kRowNoTokenLeft : kRowNotFinite;
  }
  changes_.undo();
}

int32_t RowSampler::choose(const SamplingView& sampling, int64_t row, const float* logits, float* maximum) {
  const float temperature = sampling.temperature[row];
  const int32_t topK = sampling.topK[row];
  const bool isGreedy = temperature < kLeastTemperature;
  const bool truncatesK = topK > 0 && topK < vocabSize_;
  bool finite = changes_.replacedFinite();
  int32_t best = -1;
  inverseTemperature_ = isGreedy ? 1.0f : 1.0f / temperature;
  weightsKnown_ = false;
  const ChainView* chain = isGreedy ? nullptr : entryOf(sampling.chains, row);
  if (isGreedy || truncatesK || chain != nullptr) {
    *maximum = -INFINITY;  // the result if no value is finite
    best = kernels_.argmax(logits, vocabSize_, maximum, groupMaxima_.data());
    if (best < 0) *maximum = *std::max_element(groupMaxima_.begin(), groupMaxima_.end());
    finite = finite && best >= 0;
  } else {
    const bool truncatesP = sampling.topP[row] < 1;
    finite = weighChunks(logits, truncatesP || sampling.minP[row] > 0, truncatesP, maximum) && finite;
  }
  if (!finite) return -1;
  if (isGreedy) return best;
  if (chain != nullptr) return chain_.draw(sampling, row, *chain, logits, vocabSize_, *maximum);
  const DraftRowView* draft = entryOf(sampling.draftRows, row);
  return draft != nullptr ? rejection_.draw(sampling, row, *draft, logits, *maximum)
                          : this->draw(sampling, row, logits, *maximum);
}

bool RowSampler::weighChunks(const float* logits, bool wantsGroups, bool truncatesP, float* maximum) {
  const auto weigh = [&](int32_t count) {
    kernels_.chunkExp(logits, count, inverseTemperature_, maxima_.data(), sums_.data(),
                      wantsGroups ? groupMaxima_.data() : nullptr, weightsKnown_ ? weights_.data() : nullptr);
  };
  if (truncatesP) weigh(std::min(kVocabChunk, vocabSize_));
  weightsKnown_ = truncatesP && sums_[0] > kFlatSum;
  weigh(vocabSize_);
  *maximum = *std::max_element(maxima_.begin(), maxima_.end());
  const bool numbers = std::none_of(sums_.begin(), sums_.end(), [](float sum) { return std::isnan(sum); });
  return numbers && *maximum > -INFINITY && *maximum < INFINITY;
}

int32_t RowSampler::draw(const SamplingView& sampling, int64_t row, const float* logits, float maximum) {
  const float topP = sampling.topP[row], minP = sampling.minP[row];
  const int32_t topK = sampling.topK[row];
  OrderBound bound = kNoBound;
  double sum;
  const auto weighMaxima = [&] {
    kernels_.expRow(maxima_.data(), static_cast<int32_t>(maxima_.size()), maximum, inverseTemperature_,
                    factors_.data());
  };
  if (topK > 0 && topK < vocabSize_) {
    for (size_t chunk = 0; chunk < maxima_.size(); ++chunk) {
      const size_t begin = chunk * kGroupsPerChunk, end = std::min(begin + kGroupsPerChunk, groupMaxima_.size());
      maxima_[chunk] = *std::max_element(groupMaxima_.begin() + static_cast<int64_t>(begin),
                                         groupMaxima_.begin() + static_cast<int64_t>(end));
    }
    weighMaxima();
    bound = selection_.boundOfGreatest(logits, vocabSize_, topK, groupMaxima_.data());
    sum = weighBefore(logits, bound);
  } else {
    weighMaxima();
    sum = totalOfSums();
  }
  const double mass = topP * sum;
  if (minP > 0) {
    const double floor = static_cast<double>(maximum) +
                         std::log(static_cast<double>(minP)) * static_cast<double>(sampling.temperature[row]);
    const OrderBound floorBound{static_cast<float>(floor), vocabSize_};
    if (isStricter(floorBound, bound)) {
      bound = floorBound;
      sum = weighBefore(logits, bound);
    }
  }
  for (uint32_t number = 0;; ++number) {
    const double uniform =
        philoxUniform(sampling.seed[row], sampling.sequenceIndex[row], sampling.position[row], number);
    const int32_t token = tokenAt(logits, bound, uniform * sum);
    if (topP >= 1) return token;
    bound = {logits[token], token};
    sum = weighBefore(logits, bound, mass);
    if (sum <= 0 || sum < mass) return token;  // the most probable token is always kept: nothing lies before it
  }
}

double RowSampler::weighBefore(const float* logits, OrderBound bound, double mass) {
  const int32_t chunks = static_cast<int32_t>(maxima_.size());
  // No chunk can hold more mass than it had before the last bound: rounding never makes a sum of fewer terms larger.
  double most = mass > 0 ? totalOfSums() : 0;
  const double margin = most * kRoundingMargin;
  for (int32_t chunk = 0; chunk < chunks; ++chunk) {
    float& sum = sums_[static_cast<size_t>(chunk)];
    if (mass > 0 && sum == 0) continue;  // nothing was before the last bound either
    const int32_t first = chunk * kVocabChunk;
    if (mass > 0) most -= massOf(chunk, chunk + 1);
    if (maxima_[static_cast<size_t>(chunk)] < bound.logit) {
      sum = 0;
    } else {
      kernels_.chunkExpAbove(logits + first, std::min(kVocabChunk, vocabSize_ - first), inverseTemperature_,
                             maxima_.data() + chunk, groupMaxima_.data() + chunk * kGroupsPerChunk,
                             weightsKnown_ ? weights_.data() + first : nullptr, bound.logit, bound.before - first,
                             &sum);
    }
    if (mass <= 0) continue;
    most += massOf(chunk, chunk + 1);
    if (most + margin < mass) return most;
  }
  return totalOfSums();
}

double RowSampler::massOf(int32_t begin, int32_t end) const {
  double total = 0;
  for (size_t chunk = static_cast<size_t>(begin); chunk < static_cast<size_t>(end); ++chunk)
    total += static_cast<double>(sums_[chunk]) * static_cast<double>(factors_[chunk]);
  return total;
}

// The token before `bound` at which the running sum in ascending id passes `target`; sums_ are those before `bound`. The
// search goes through the chunks, then the groups of one chunk, then the tokens of one group:
//
//   chunks    |        |   x    |        |        |
//   groups             | |x| | |
//   tokens               ..x..
int32_t RowSampler::tokenAt(const float* logits, OrderBound bound, double target) {
  double before = 0;
  int32_t last = -1;
  for (size_t chunk = 0; chunk < sums_.size(); ++chunk) {
    const double factor = static_cast<double>(factors_[chunk]), sum = static_cast<double>(sums_[chunk]) * factor;
    if (sum <= 0) continue;
    last = static_cast<int32_t>(chunk);
    if (before + sum > target) break;
    before += sum;
  }
  // The target lies past the last chunk, or past the end of a chunk or group whose sum was rounded above its parts: take
  // the last token that can be drawn there.
  const int32_t begin = last * kVocabChunk, count = std::min(kVocabChunk, vocabSize_ - begin);
  const double factor = static_cast<double>(factors_[static_cast<size_t>(last)]);
  float* weights = weights_.data() + begin;
  if (!weightsKnown_)
    kernels_.expRow(logits + begin, count, maxima_[static_cast<size_t>(last)], inverseTemperature_, weights);
  int32_t group = 0;
  double beforeGroup = before;
  for (int32_t at = 0; at < count; at += kVocabGroup) {
    const int32_t first = begin + at, length = std::min(kVocabGroup, count - at);
    const double sum =
        static_cast<double>(weightHeld(logits + first, weights + at, length, {bound.logit, bound.before - first})) *
        factor;
    if (sum <= 0) continue;
    group = at;
    beforeGroup = before;
    before += sum;
    if (before > target) break;
  }
  int32_t token = -1;
  for (int32_t i = group; i < std::min(group + kVocabGroup, count); ++i) {
    if (weights[i] <= 0 || !bound.holds(logits[begin + i], begin + i)) continue;
    beforeGroup += static_cast<double>(weights[i]) * factor;
    token = begin + i;
    if (beforeGroup > target) break;
  }
  return token;
}

void RowSampler::listCandidates(const SamplingView& sampling, const SamplingOutputView& output, int64_t row,
                                const float* logits) {
  output.tokens[row] = -1;
  output.logProbs[row] = 0;
  output.status[row] = kRowNotFinite;
  float maximum = -INFINITY;
  if (kernels_.argmax(logits, vocabSize_, &maximum, groupMaxima_.data()) < 0) return;
  const LogProbs probs(kernels_, logits, vocabSize_, maximum);
  for (int32_t token = 0; token < vocabSize_; ++token) logSoftmax_[static_cast<size_t>(token)] = probs.of(token);
  const float* changed = changes_.apply(sampling, row, logSoftmax_.data());
  const int64_t first = output.topStart[row];
  const int32_t count = sampling.numTopLogProbs[row];
  int32_t* tokens = output.topTokens.data + first;
  selection_.greatestTokens(changed, vocabSize_, count, tokens);
  for (int32_t i = 0; i < count; ++i) output.topLogProbs[first + i] = changed[tokens[i]];
  output.tokens[row] = tokens[0];
  output.logProbs[row] = output.topLogProbs[first];
  output.status[row] = output.logProbs[row] > -INFINITY ? kRowOk : kRowNoTokenLeft;
  changes_.undo();
}

void RowSampler::writeLogProbs(const SamplingView& sampling, const SamplingOutputView& output, int64_t row,
                               const float* logits, float maximum) {
  const int32_t wanted = sampling.numTopLogProbs[row];
  if (wanted < 0) return;
  const LogProbs probs(kernels_, logits, vocabSize_, maximum);
  output.logProbs[row] = probs.of(output.tokens[row]);
  const int64_t first = output.topStart[row];
  probs.top(wanted, selection_, output.topTokens.data + first, output.topLogProbs.data + first);
}

}  // namespace skein

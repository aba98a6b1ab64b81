#include "executor/sampling.h"

#include <algorithm>
#include <cmath>

#include "executor/log_probs.h"
#include "executor/philox.h"

namespace skein {

RowSampler::RowSampler(const KernelTable& kernels, int32_t vocabSize)
    : kernels_(kernels),
      vocabSize_(vocabSize),
      probabilities_(static_cast<size_t>(vocabSize)),
      chunkSums_(static_cast<size_t>((vocabSize + kVocabChunk - 1) / kVocabChunk)),
      counts_(static_cast<size_t>(vocabSize)),
      seen_(static_cast<size_t>(vocabSize)),
      unmasked_(static_cast<size_t>(vocabSize)),
      selection_(vocabSize) {
  changed_.reserve(static_cast<size_t>(vocabSize) + 1);
}

void RowSampler::sample(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, float* logits) {
  float maximum = 0;
  int32_t best = -1;
  const bool masked = sampling.maskOfRow.length > 0 && sampling.maskOfRow[row] >= 0;
  const bool finite = !masked || applyMask(sampling, row, logits);
  if (applyPenalties(sampling, row, logits) && finite) best = kernels_.argmax(logits, vocabSize_, &maximum);
  if (best < 0) {
    output.status[row] = kRowNotFinite;
    output.tokens[row] = -1;
    output.logProbs[row] = 0;
  } else {
    output.status[row] = kRowOk;
    output.tokens[row] = choose(sampling, row, logits, best, maximum);
    writeLogProbs(sampling, output, row, logits, maximum);
  }
  restore(logits, masked);
}

// A mask takes out most of a vocabulary, so the row is kept whole. False as with a banned token.
bool RowSampler::applyMask(const SamplingView& sampling, int64_t row, float* logits) {
  std::copy_n(logits, vocabSize_, unmasked_.data());
  const int32_t* words = sampling.maskWords.data + sampling.maskOfRow[row] * wordsOfMask(vocabSize_);
  bool finite = true;
  for (int32_t begin = 0; begin < vocabSize_; begin += 32, ++words) {
    const uint32_t forbidden = ~static_cast<uint32_t>(*words);
    if (forbidden == 0) continue;
    const int32_t end = std::min(begin + 32, vocabSize_);
    for (int32_t token = begin; token < end; ++token) {
      if ((forbidden >> (token - begin) & 1) == 0) continue;
      finite = finite && logits[token] < INFINITY;
      logits[token] = -INFINITY;
    }
  }
  return finite;
}

// False where a banned token's logit was not a number: the row is broken even though that entry is replaced.
bool RowSampler::applyPenalties(const SamplingView& sampling, int64_t row, float* logits) {
  const float repetition = sampling.repetitionPenalty[row];
  const float presence = sampling.presencePenalty[row], frequency = sampling.frequencyPenalty[row];
  const int32_t begin = sampling.historyStart[row], end = sampling.historyStart[row + 1];
  const int32_t generatedBegin = begin + sampling.historyPromptLength[row];
  if (repetition != 1 || presence != 0 || frequency != 0) {
    for (int32_t i = begin; i < end; ++i) {
      const int32_t token = sampling.history[i];
      counts_[static_cast<size_t>(token)] += i >= generatedBegin;
      if (seen_[static_cast<size_t>(token)]) continue;
      seen_[static_cast<size_t>(token)] = 1;
      changed_.push_back({token, logits[token]});
    }
    for (const Changed& entry : changed_) {
      const size_t token = static_cast<size_t>(entry.token);
      const float repeated = entry.logit < 0 ? entry.logit * repetition : entry.logit / repetition;
      const int32_t count = counts_[token];
      logits[token] = repeated - (frequency * static_cast<float>(count) + (count > 0 ? presence : 0.0f));
      counts_[token] = 0;
      seen_[token] = 0;
    }
  }
  bool finite = true;
  for (int32_t i = sampling.bannedStart[row]; i < sampling.bannedStart[row + 1]; ++i) {
    const int32_t token = sampling.banned[i];
    const float logit = logits[token];
    changed_.push_back({token, logit});
    logits[token] = -INFINITY;
    finite = finite && logit < INFINITY;
  }
  return finite;
}

// In reverse: a token changed twice gets its first value back.
void RowSampler::restore(float* logits, bool masked) {
  for (auto entry = changed_.rbegin(); entry != changed_.rend(); ++entry) logits[entry->token] = entry->logit;
  changed_.clear();
  if (masked) std::copy_n(unmasked_.data(), vocabSize_, logits);
}

int32_t RowSampler::choose(const SamplingView& sampling, int64_t row, const float* logits, int32_t best, float maximum) {
  const float temperature = sampling.temperature[row];
  if (temperature < kLeastTemperature) return best;
  kernels_.expRow(logits, vocabSize_, maximum, 1.0f / temperature, probabilities_.data());
  const double uniform = philoxUniform(sampling.seed[row], sampling.sequenceIndex[row], sampling.position[row], 0);

  const int32_t topK = sampling.topK[row];
  const float topP = sampling.topP[row], minP = sampling.minP[row];
  const bool truncatesK = topK > 0 && topK < vocabSize_;
  if (!truncatesK && topP >= 1 && minP <= 0) return drawFromAll(uniform * sumProbabilities());

  // The greatest probability is exp(0) = 1, so minP is already relative to it.
  if (truncatesK) {
    selection_.gatherGreatest(logits, probabilities_.data(), vocabSize_, topK);
    if (topP < 1) selection_.keepMass(topP * selection_.sum());
    if (minP > 0) selection_.keepProbability(minP);
  } else if (topP < 1) {
    const double total = sumProbabilities();
    gatherMass(logits, topP * total, total, minP);
    selection_.keepMass(topP * total);
  } else {
    selection_.gather(logits, probabilities_.data(), vocabSize_, minP);
  }
  return selection_.draw(uniform * selection_.sum());
}

// Gathers a prefix of the order that holds at least `mass`, or all tokens of at least minP. Probabilities are relative
// to the greatest: in most rows a handful of tokens does.
void RowSampler::gatherMass(const float* logits, double mass, double total, float minP) {
  // Tokens below this floor hold less than the rest of the mass together, so none of them is needed.
  const float lowest = static_cast<float>((total - mass) / vocabSize_ * 0.999);
  for (const float floor : {0x1p-6f, 0x1p-12f, lowest}) {
    const float least = std::max({floor, lowest, minP});
    selection_.gather(logits, probabilities_.data(), vocabSize_, least);
    if (least <= std::max(lowest, minP) || selection_.sum() >= mass * 1.0001) return;
  }
}

// Fills chunkSums_; eight running sums per chunk, always added in the same order.
double RowSampler::sumProbabilities() {
  constexpr int32_t kLanes = 8;
  double total = 0;
  for (size_t chunk = 0; chunk < chunkSums_.size(); ++chunk) {
    const int32_t begin = static_cast<int32_t>(chunk) * kVocabChunk, end = std::min(begin + kVocabChunk, vocabSize_);
    float lanes[kLanes] = {};
    int32_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += probabilities_[static_cast<size_t>(i + lane)];
    }
    double sum = 0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    for (; i < end; ++i) sum += static_cast<double>(probabilities_[static_cast<size_t>(i)]);
    chunkSums_[chunk] = sum;
    total += sum;
  }
  return total;
}

int32_t RowSampler::drawFromAll(double target) const {
  double before = 0;
  size_t chunk = 0;
  while (chunk + 1 < chunkSums_.size() && before + chunkSums_[chunk] <= target) before += chunkSums_[chunk++];
  const int32_t begin = static_cast<int32_t>(chunk) * kVocabChunk, end = std::min(begin + kVocabChunk, vocabSize_);
  int32_t last = -1;
  for (int32_t i = begin; i < end; ++i) {
    const float probability = probabilities_[static_cast<size_t>(i)];
    if (probability <= 0) continue;
    before += static_cast<double>(probability);
    last = i;
    if (before > target) return i;
  }
  // The chunk's sum was rounded above its parts (or, past the last chunk, the total was): the last possible token.
  if (last >= 0) return last;
  for (int32_t i = begin; i-- > 0;) {
    if (probabilities_[static_cast<size_t>(i)] > 0) return i;
  }
  return 0;
}

void RowSampler::writeLogProbs(const SamplingView& sampling, const SamplingOutputView& output, int64_t row,
                               const float* logits, float maximum) const {
  const int32_t wanted = sampling.numTopLogProbs[row];
  output.logProbs[row] = 0;
  if (wanted < 0) return;
  const LogProbs probs(kernels_, logits, vocabSize_, maximum);
  output.logProbs[row] = probs.of(output.tokens[row]);
  const int64_t first = row * output.maxTopLogProbs;
  probs.top(wanted, output.topTokens.data + first, output.topLogProbs.data + first);
}

}  // namespace skein

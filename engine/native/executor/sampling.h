// Sampling of one row of logits, as engine/decoding/sampling-batch.ts states it:
//
//   mask, penalties, banned token -> log-probs -> temperature -> top-k -> top-p -> min-p -> draw
//
// The draw inverts the cumulative distribution over the kept tokens in ascending id with one Philox number, so it
// depends on nothing but the row. Sums run in f64 over fixed chunks of the vocabulary.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/selection.h"
#include "kernels/kernels.h"

namespace skein {

// Temperatures below are greedy: their distribution is a single token in f32.
constexpr float kLeastTemperature = 1e-5f;

// Memory of one thread. The row's logits are changed while it is sampled and put back afterwards.
class RowSampler {
 public:
  RowSampler(const KernelTable& kernels, int32_t vocabSize);
  void sample(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, float* logits);

 private:
  bool applyMask(const SamplingView& sampling, int64_t row, float* logits);
  bool applyPenalties(const SamplingView& sampling, int64_t row, float* logits);
  void restore(float* logits, bool masked);
  int32_t choose(const SamplingView& sampling, int64_t row, const float* logits, int32_t best, float maximum);
  void gatherMass(const float* logits, double mass, double total, float minP);
  int32_t drawFromAll(double uniform) const;
  double sumProbabilities();
  void writeLogProbs(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, const float* logits,
                     float maximum) const;

  struct Changed {
    int32_t token;
    float logit;
  };

  const KernelTable& kernels_;
  int32_t vocabSize_;
  std::vector<float> probabilities_;
  std::vector<double> chunkSums_;
  std::vector<int32_t> counts_;  // occurrences in the generated part; all zero between rows
  std::vector<uint8_t> seen_;
  std::vector<Changed> changed_;
  std::vector<float> unmasked_;  // a masked row as it was
  Selection selection_;
};

}  // namespace skein

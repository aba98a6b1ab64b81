// Sampling of one row of logits, as engine/decoding/sampling-batch.ts states it:
//
//   what the request changes (logit_changes.h) -> log-probs -> temperature -> top-k -> top-p -> min-p -> draw
//
// Tokens are ordered by logit, greatest first, equal ones by ascending id. Each filter keeps a beginning of this order,
// so what all of them keep is one too, and the strictest decides:
//
//   top-k   the first k
//   top-p   those before which less than p of the mass of what top-k keeps lies
//   min-p   those whose logit is at least maximum + temperature * ln(min-p)
//
// The draw needs no sorting. With S what top-k and min-p keep, the number of draw 0 falls on one token of S, in
// ascending id, as often as its weight says. One that top-p does not keep is rejected, and the number of the next draw
// falls on those of S that come before it in the order, which still hold all that top-p keeps. The token that is
// taken in the end is distributed as if drawn from what all filters keep; the first draw is rejected with
// probability 1 - p at most.
//
//   order    a b c d e f g h      top-p keeps a b c
//   draw 0   . . . . . * . .      f: too much lies before it
//   draw 1   . * . . .            b: taken
//
// A row that lists candidates draws nothing. Its log-softmax is taken first, of the logits as they are, and what the request
// changes is done to these log-probs, as Hugging Face's beam search does it; the greatest of them are listed.
//
// A row that draws against a draft token whose distribution is known does so in another way: draft_rejection.h.
//
// Whether enough lies before a token that was drawn is known as soon as what lies before it in the chunks looked at so far,
// with all of the others, is less than p of the mass: then it is taken without looking further.
//
// Weights are exp((logit - maximum) / temperature). Sums run over fixed chunks of the vocabulary (f32 inside a chunk, f64
// over chunks), and the numbers are Philox's of (seed, sequence, position, draw): nothing depends on any other row.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/draft_rejection.h"
#include "executor/logit_changes.h"
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
  Selection& selection() { return selection_; }

 private:
  // The token drawn, and the row's maximum; -1 where there is none.
  int32_t choose(const SamplingView& sampling, int64_t row, const float* logits, float* maximum);
  int32_t draw(const SamplingView& sampling, int64_t row, const float* logits, float maximum);
  // Maxima and sums of the chunks, and what top-p and min-p need of the groups and tokens; false: not finite.
  bool weighChunks(const float* logits, bool wantsGroups, bool truncatesP, float* maximum);
  // groupMaxima_ is there. Leaves in sums_ what lies before `bound`, which is stricter than the bound of the sums there, and
  // returns the sum of it; or, leaving nothing, less than `mass`, as soon as it is known to be less.
  double weighBefore(const float* logits, OrderBound bound, double mass = 0);
  double massOf(int32_t begin, int32_t end) const;  // of chunks
  double totalOfSums() const { return massOf(0, static_cast<int32_t>(sums_.size())); }
  int32_t tokenAt(const float* logits, OrderBound bound, double target);
  void listCandidates(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, const float* logits);
  void writeLogProbs(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, const float* logits,
                     float maximum);

  const KernelTable& kernels_;
  int32_t vocabSize_;
  float inverseTemperature_ = 1;
  std::vector<float> maxima_;   // of chunks
  std::vector<float> sums_;     // of chunks, relative to their maxima
  std::vector<float> factors_;  // of chunks: weight of their maximum
  std::vector<float> weights_;  // of the row's tokens by chunk maximum where weightsKnown_, else of one chunk
  bool weightsKnown_ = false;
  std::vector<float> groupMaxima_;
  std::vector<float> logSoftmax_;  // of rows that list candidates
  LogitChanges changes_;
  Selection selection_;
  DraftRejection rejection_;
};

}  // namespace skein

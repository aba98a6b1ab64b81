// Samples one row of logits as engine/packed-call/sampling-batch.ts defines it:
//
//   what the request changes (logit_changes.h) -> log-probs -> temperature -> top-k -> top-p -> min-p -> draw
//
// Tokens are ordered by logit, greatest first, equal ones by ascending id. Each filter keeps a beginning of this order, so
// all filters together keep one too, and the strictest decides:
//
//   top-k   the first k
//   top-p   those before which less than p of the mass of what top-k keeps lies
//   min-p   those whose logit is at least maximum + temperature * ln(min-p)
//
// The draw needs no sorting. Let S be the tokens that top-k and min-p keep. Draw 0 picks a token of S at random by weight,
// walking S in ascending id. If top-p does not keep that token it is rejected, and the next draw picks among those tokens of
// S that come before it in the order; they still include all that top-p keeps. The token taken in the end is distributed as
// if drawn from the tokens that all filters keep; the first draw is rejected with probability at most 1 - p.
//
//   order    a b c d e f g h      top-p keeps a b c
//   draw 0   . . . . . * . .      f: too much lies before it
//   draw 1   . * . . .            b: taken
//
// A row that lists candidates draws nothing. Its log-softmax is taken first, of the unchanged logits, and the request's
// changes are made to these log-probs, as in Hugging Face's beam search; the greatest of them are listed.
//
// A row with a chain of other filters is drawn by sampler_chain.h, which weighs the whole row in f64 and takes longer.
//
// A row that draws against a draft token whose distribution is known works in another way: draft_rejection.h.
//
// top-p keeps a drawn token if less than p of the mass lies before it. This is settled early once the mass found before it
// in the chunks visited so far, plus all of the other chunks, is less than p: then it is taken without looking further.
//
// Weights are exp((logit - maximum) / temperature). Sums run over fixed chunks of the vocabulary (f32 inside a chunk, f64
// over chunks), and the random numbers are Philox's of (seed, sequence, position, draw): nothing depends on any other row.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/draft_rejection.h"
#include "executor/logit_changes.h"
#include "executor/sampler_chain.h"
#include "executor/selection.h"
#include "kernels/kernels.h"

namespace skein {

// One object per thread, with memory of its own. The row's logits are changed while it is sampled and put back
// afterwards.
class RowSampler {
 public:
  RowSampler(const KernelTable& kernels, int32_t vocabSize);
  void sample(const SamplingView& sampling, const SamplingOutputView& output, int64_t row, float* logits);
  Selection& selection() { return selection_; }

 private:
  // Returns the token drawn, or -1 if there is none, and the row's maximum.
  int32_t choose(const SamplingView& sampling, int64_t row, const float* logits, float* maximum);
  int32_t draw(const SamplingView& sampling, int64_t row, const float* logits, float maximum);
  // Computes maxima and sums of the chunks, and what top-p and min-p need of the groups and tokens; false: not finite.
  bool weighChunks(const float* logits, bool wantsGroups, bool truncatesP, float* maximum);
  // Computes the mass before `bound`, which must be stricter than the bound of the present sums_; needs groupMaxima_. Leaves
  // it by chunk in sums_ and returns the total. With `mass`: as soon as the total is known to be below `mass`, returns some
  // value below it and leaves sums_ incomplete.
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
  SamplerChain chain_;
};

}  // namespace skein

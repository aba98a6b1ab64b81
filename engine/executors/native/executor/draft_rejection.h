// Rejection sampling against a draft whose distribution is known (Leviathan et al., "Fast Inference from Transformers via
// Speculative Decoding"). With p the request's distribution and q the one that its draft token d was drawn from,
//
//   d is taken with probability min(1, p(d) / q(d)), else a token is drawn from what p has more than q
//
//   p  |####  ##|######  |        |## |        q above p at a and c: a draft token there may be rejected
//   q  |######  |##      |##      |   |        p above q at b and d: a rejected one becomes one of these
//       a        b        c        d
//
// The token is distributed as p, whatever q is. p is the distribution after the temperature that top-k, top-p and min-p
// leave; q is the softmax of the draft's unchanged logits. Only rows of requests that bring draft_logits pay for it: one
// sort.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "kernels/kernels.h"

namespace skein {

// Uses memory of its own, taken with the first row; one object per thread.
class DraftRejection {
 public:
  DraftRejection(const KernelTable& kernels, int32_t vocabSize) : kernels_(kernels), vocabSize_(vocabSize) {}
  // Draws the token of a row that is not greedy: `logits` are finite or -infinity, `maximum` is the greatest of them.
  int32_t draw(const SamplingView& sampling, int64_t row, const DraftRowView& draft, const float* logits,
               float maximum);

 private:
  void weighTarget(const SamplingView& sampling, int64_t row, const float* logits, float maximum);
  void weighDraft(const float* logits);

  const KernelTable& kernels_;
  int32_t vocabSize_;
  std::vector<float> weights_;
  std::vector<int32_t> order_;
  std::vector<double> target_;  // p
  std::vector<double> draft_;   // q
};

}  // namespace skein

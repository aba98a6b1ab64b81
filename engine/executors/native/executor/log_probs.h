// Log-softmax of one row of logits at single tokens: log_softmax(x)[t] = x[t] - max - log(sum(exp(x - max))).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "executor/selection.h"
#include "kernels/kernels.h"

namespace skein {

class LogProbs {
 public:
  // `maximum` is the greatest of the n logits.
  LogProbs(const KernelTable& kernels, const float* logits, int32_t n, float maximum)
      : logits_(logits),
        n_(n),
        logSum_(static_cast<double>(maximum) + std::log(kernels.sumExp(logits, n, maximum, 1.0f))) {}

  float of(int32_t token) const { return static_cast<float>(static_cast<double>(logits_[token]) - logSum_); }

  // Writes the `wanted` most probable tokens, equal ones by ascending id; -1 and -infinity beyond the vocabulary.
  void top(int32_t wanted, Selection& selection, int32_t* tokens, float* logProbs) const {
    const int32_t count = std::min(wanted, n_);
    if (count > 0) selection.greatestTokens(logits_, n_, count, tokens);
    for (int32_t i = 0; i < count; ++i) logProbs[i] = of(tokens[i]);
    for (int32_t i = count; i < wanted; ++i) {
      tokens[i] = -1;
      logProbs[i] = -INFINITY;
    }
  }

 private:
  const float* logits_;
  int32_t n_;
  double logSum_;
};

}  // namespace skein

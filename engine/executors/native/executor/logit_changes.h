// Changes that a request makes to its row of logits before anything is drawn, in this order:
//
//   mask -> biases -> repetition penalty -> frequency and presence penalty -> penalties of the request's own (DRY)
//     -> bans (repeated n-grams, banned tokens)
//
// Penalties and bans change few tokens: their logits are noted and put back. A mask, and a bias on the whole vocabulary,
// are applied to a copy.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"

namespace skein {

// One object per thread, with memory of its own.
class LogitChanges {
 public:
  explicit LogitChanges(int32_t vocabSize);

  // Returns the row to sample from: `logits` changed in place, or a copy. Valid until undo().
  float* apply(const SamplingView& sampling, int64_t row, float* logits);
  // Restores the row's logits.
  void undo();

  // True if the changes applied last can make a finite logit -infinity.
  bool bans() const { return bans_; }
  // False if a logit that a ban replaced was NaN or +infinity: the row is broken although this no longer shows.
  bool replacedFinite() const { return replacedFinite_; }

 private:
  float* mask(const int32_t* words, const float* logits);
  float* addBias(const RowBiasView& bias, float* logits);
  void penalise(const SamplingView& sampling, int64_t row, float* logits);
  void banRepeatedNgrams(const int32_t* history, int64_t length, int64_t size, float* logits);
  void ban(int32_t token, float* logits);
  void note(int32_t token, float logit) { changed_.push_back({token, logit}); }

  struct Changed {
    int32_t token;
    float logit;
  };

  int32_t vocabSize_;
  std::vector<int32_t> counts_;  // occurrences in the generated part; all zero between rows
  std::vector<uint8_t> seen_;
  std::vector<Changed> changed_;
  std::vector<float> copy_;
  std::vector<int64_t> fallback_;
  float* row_ = nullptr;
  bool bans_ = false;
  bool replacedFinite_ = true;
};

}  // namespace skein

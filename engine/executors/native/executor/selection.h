// Finds the beginning of the order "greatest logit first, equal ones by ascending id" without sorting the vocabulary.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace skein {

// A beginning of the order: the tokens whose logit is greater, and those with this logit whose id is below `before`.
struct OrderBound {
  float logit;
  int32_t before;
  bool holds(float other, int32_t token) const { return other > logit || (other == logit && token < before); }
};

// Bound that holds all tokens that can be drawn.
constexpr OrderBound kNoBound{-__builtin_inff(), 0};

// True if a is the stricter bound, which holds no token that b does not hold.
inline bool isStricter(OrderBound a, OrderBound b) {
  return a.logit > b.logit || (a.logit == b.logit && a.before < b.before);
}

// One object per thread, with memory for rows of up to n tokens.
class Selection {
 public:
  Selection(const KernelTable& kernels, int32_t n);

  // Bound of the first k tokens, 1 <= k < n, or of all tokens above -infinity if there are fewer. groupMaxima: the
  // greatest of each kVocabGroup logits (null: not known).
  OrderBound boundOfGreatest(const float* logits, int32_t n, int32_t k, const float* groupMaxima);

  // Writes the first `count` tokens of the order, in order; -infinity counts. 0 < count <= n.
  void greatestTokens(const float* logits, int32_t n, int32_t count, int32_t* tokens);

 private:
  void gatherGroups(const float* logits, int32_t n, int32_t k, const float* groupMaxima);
  bool gatherSampled(const float* logits, int32_t n, int32_t k);
  int32_t gatherBucket(const float* logits, int32_t n, int32_t k);
  void gatherFrom(const float* logits, int32_t begin, int32_t end, float least);

  const KernelTable& kernels_;
  std::vector<uint64_t> candidates_;  // keys: see keyOf
  std::vector<int32_t> histogram_;
  std::vector<float> sample_;
  std::vector<int32_t> indices_;
  int32_t size_ = 0;
};

}  // namespace skein

// Integer sums by dot products of four bytes with a word that the instruction picks out of a vector, so that no word of a row is
// spread over a vector of its own:
//
//   weights   step s      w0[k .. k+3] w1[k .. k+3] w2 .. w3 ..
//   row       x[k .. k+3] x[k+4 .. k+7] x[k+8 .. k+11] x[k+12 .. k+15]     the words of the steps s .. s + 3
//
// The sums are whole numbers, the same as those of any other order.
#pragma once
#include "kernels/unroll.h"

namespace skein {
namespace {

template <class V>
concept HasWords = requires { typename V::Words; };

// Adds to sum[m][half] the products of M rows and 16 kSixteens k of one panel, from step `first` of 4 k on. x: the quants of row 0
// at that step. kPerVector: steps in one packed vector.
template <class V, int kPerVector, int kSixteens, int M, class Groups>
[[gnu::always_inline]] inline void addWords(const uint8_t* x, int64_t rowStride, const Groups& groups, int first,
                                            typename V::I (&sum)[M][2]) {
  SKEIN_UNROLL(2)
  for (int sixteen = 0; sixteen < kSixteens; sixteen++) {
    typename V::Words rows[M];
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) rows[m] = V::words(x + m * rowStride + 16 * sixteen);
    SKEIN_UNROLL(4)
    for (int word = 0; word < 4; word++) {
      const int four = first + 4 * sixteen + word;
      if (four % kPerVector == 0) groups.prefetch(four / kPerVector);
      SKEIN_UNROLL(2)
      for (int half = 0; half < 2; half++) {
        const auto weights = groups.weights(four / kPerVector, four % kPerVector, half);
        SKEIN_UNROLL(8)
        for (int m = 0; m < M; m++) sum[m][half] = V::dotWord(sum[m][half], weights, rows[m], word);
      }
    }
  }
}

}  // namespace
}  // namespace skein

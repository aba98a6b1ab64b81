// Integer sums by an instruction that multiplies two rows of 8 k by 8 k of two outputs, from the panels and the rounded rows that
// dot products of four bytes read (quantized_panels.h, quantized_rows.h):
//
//   weights   step s      w0[k .. k+3] w1[k .. k+3] w2 .. w3 ..          zipped:   w0[k .. k+7] w1[k .. k+7]    w2 .. w3 ..
//             step s + 1  w0[k+4 .. k+7] w1[k+4 .. k+7] ..
//   rows      x0[k .. k+7] x1[k .. k+7]
//   squares   x0 w0 | x0 w1 | x1 w0 | x1 w1
//
// An odd row at the end is paired with itself.
#pragma once
#include "kernels/unroll.h"

namespace skein {
namespace {

template <class V>
concept HasSquares = requires { typename V::Squares; };

// Where the sums of two rows begin: at zero, in registers of their own, or at what `sum` holds.
template <class V, bool kFromZero>
[[gnu::always_inline]] inline typename V::Squares startOfSquares(const typename V::I& even, const typename V::I& odd) {
  if constexpr (kFromZero) return V::zeroSquares();
  else return V::squaresOf(even, odd);
}

// Adds to sum[m][half] the products of M rows and 8 kEights k of one panel, from step `first` of 4 k on. x: the quants of row 0
// at that step. kPerVector: steps in one packed vector. kFromZero: what `sum` held does not matter.
template <class V, int kPerVector, int kEights, int M, bool kFromZero, class Groups>
[[gnu::always_inline]] inline void addSquares(const uint8_t* x, int64_t rowStride, const Groups& groups, int first,
                                              typename V::I (&sum)[M][2]) {
  constexpr int kPairs = (M + 1) / 2;
  const auto odd = [](int pair) { return 2 * pair + 1 < M ? 2 * pair + 1 : M - 1; };
  typename V::Squares squares[kPairs][2];
  SKEIN_UNROLL(8)
  for (int p = 0; p < kPairs; p++)
    for (int half = 0; half < 2; half++) squares[p][half] = startOfSquares<V, kFromZero>(sum[2 * p][half], sum[odd(p)][half]);
  SKEIN_UNROLL(4)
  for (int e = 0; e < kEights; e++) {
    const int four = first + 2 * e;
    groups.prefetch(four / kPerVector);
    if constexpr (kPerVector == 1) groups.prefetch(four + 1);
    typename V::RowPair rows[kPairs];
    SKEIN_UNROLL(8)
    for (int p = 0; p < kPairs; p++) rows[p] = V::rowPair(x + 2 * p * rowStride + 8 * e, x + odd(p) * rowStride + 8 * e);
    SKEIN_UNROLL(2)
    for (int half = 0; half < 2; half++) {
      const auto even = groups.weights(four / kPerVector, four % kPerVector, half);
      const auto next = groups.weights((four + 1) / kPerVector, (four + 1) % kPerVector, half);
      SKEIN_UNROLL(8)
      for (int i = 0; i < V::kSquares; i++) {
        const auto weights = V::weightsOf(even, next, i);
        SKEIN_UNROLL(8)
        for (int p = 0; p < kPairs; p++)
          squares[p][half].of[i] = V::addSquare(squares[p][half].of[i], rows[p], weights);
      }
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < kPairs; p++)
    for (int half = 0; half < 2; half++) {
      sum[2 * p][half] = V::evenRow(squares[p][half]);
      if (2 * p + 1 < M) sum[2 * p + 1][half] = V::oddRow(squares[p][half]);
    }
}

}  // namespace
}  // namespace skein

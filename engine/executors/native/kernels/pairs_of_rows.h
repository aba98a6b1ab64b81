// Products of pairs of bf16 (pairs.h) by an instruction that multiplies two rows of 4 k by 4 k of two outputs. Each of its sums is
// two dot products of pairs, the lower k first, so that it has the bits of pairs.h; one row takes the dot products. Panels and rounded
// rows are the same, squares those of row_pairs.h:
//
//   weights   step s      w0[k] w0[k+1] | w1[k] w1[k+1] | w2 .. | w3 ..        zipped:  w0[k .. k+3] w1[k .. k+3]   w2 .. w3 ..
//             step s + 1  w0[k+2] w0[k+3] | ..
//   rows      x0[k .. k+3] x1[k .. k+3]
#pragma once
#include "kernels/pairs.h"

namespace skein {
namespace {

template <class V>
concept MultipliesRowPairs = V::kBf16Pairs && requires { typename V::FloatSquares; };

template <class V>
struct PairsOfRows : Pairs<V> {
  using Input = typename Pairs<V>::Input;
  using F = typename V::F;
  using I = typename V::I;
  // Three rows are two pairs: with two panels their sums would leave no register.
  static constexpr int kWideRows = 2;

  // sums() of gemm.h.
  template <int M, int P>
  static void sumsOfRows(const Input* x, int64_t ldx, const char* panels, int steps, float* tile, Ahead* ahead) {
    constexpr int kPairs = (M + 1) / 2;
    constexpr size_t kStep = Pairs<V>::kStepBytes;
    const auto odd = [](int pair) { return 2 * pair + 1 < M ? 2 * pair + 1 : M - 1; };
    const size_t panelBytes = size_t(steps) * kStep;
    typename V::FloatSquares squares[kPairs][P][2];
    SKEIN_UNROLL(8)
    for (int pair = 0; pair < kPairs; pair++) SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) squares[pair][p][0] = squares[pair][p][1] = V::emptySquares();
    const int even = steps / 2 * 2;
    for (int s = 0; s < even; s += 2) {
      if (s % kStepsOfCall == 0) ahead->some();
      typename V::Bf16RowPair rows[kPairs];
      SKEIN_UNROLL(8)
      for (int pair = 0; pair < kPairs; pair++)
        rows[pair] = V::bf16RowPair(x + 2 * pair * ldx + s, x + odd(pair) * ldx + s);
      SKEIN_UNROLL(8)
      for (int p = 0; p < P; p++) {
        const char* panel = panels + p * panelBytes + s * kStep;
        I weights[2][2];
        Pairs<V>::load(panel, weights[0][0], weights[0][1]);
        Pairs<V>::load(panel + kStep, weights[1][0], weights[1][1]);
        for (size_t at = 0; at < 2 * kStep; at += 64) __builtin_prefetch(panel + Pairs<V>::kAhead + at);
        SKEIN_UNROLL(2)
        for (int half = 0; half < 2; half++) SKEIN_UNROLL(8)
        for (int i = 0; i < V::kSquares; i++) SKEIN_UNROLL(8)
        for (int pair = 0; pair < kPairs; pair++)
          V::addSquare(squares[pair][p][half], rows[pair], weights[0][half], weights[1][half], i);
      }
    }
    if (even < steps && even % kStepsOfCall == 0) ahead->some();
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) {
      F low = V::rowOf(squares[m / 2][p][0], m % 2), high = V::rowOf(squares[m / 2][p][1], m % 2);
      if (even < steps) {
        I lowWeights, highWeights;
        Pairs<V>::load(panels + p * panelBytes + even * kStep, lowWeights, highWeights);
        const I a = V::set1I(x[m * ldx + even]);
        low = V::dotPairs(low, a, lowWeights);
        high = V::dotPairs(high, a, highWeights);
      }
      V::store(tile + (m * P + p) * kPanelWidth<V>, low);
      V::store(tile + (m * P + p) * kPanelWidth<V> + V::W, high);
    }
  }
};

}  // namespace
}  // namespace skein

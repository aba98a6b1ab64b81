// The tiles of attention_tiles.h over a cache of 8-bit quants, by dot products of pairs of 16-bit words:
//
//   scores   q[0] q[1] | q[2] q[3] | ..   times   k[0][t] k[1][t] | k[2][t] k[3][t] | ..   words of two dimensions
//   values   p[0] p[1] | p[2] p[3] | ..   times   v[0][d] v[1][d] | v[2][d] v[3][d] | ..   words of two tokens
//
// The quants are widened in registers. A query is turned as the keys are (kv_rotation.h) and rounded to 16 bits with a scale of its own. So are the probabilities of
// one (row, head) in one step, each times the scale of its token's values. Both are off by no more than 2^-16 of the
// greatest among them, 1/256 of the error of rounding to quants. Sums are whole numbers below 2^31, the same on every
// instruction set and in every tile:
//
//   score[t] = float(sum over d) * (scale of q * scale of k[t])
//   acc      = acc * correction + float(sum over the step's t) * scale of p
//
// Tokens whose keys or values are not finite have scales of NaN, which make NaN of every row that attends to them.
#pragma once
#include "kernels/attention_pairs.h"
#include "kernels/kv_quants.h"

namespace skein {
namespace {

// Number of (row, head) pairs at once: with 2 vectors of tokens or dimensions they fill the registers.
template <class V>
constexpr int kQuantizedTile = V::W == 16 ? 8 : 6;

// Greatest whole number of a query: sums of headDim products with quants stay below 2^31.
inline float queryQuants(int headDim) {
  const int most = int(0x7fffffff / (127 * int64_t(headDim)));
  return float(most < 32767 ? most : 32767);
}
constexpr float kProbabilityQuants = 32767.0f;

// Computes scores[p * 32 ..] = q[p] . K for N (row, head) pairs. kScales: scales of the step's tokens.
template <class V, int N, bool kPrefetch>
[[gnu::noinline]] void quantizedScoreTile(const uint16_t* const* q, const float* qScales, const int8_t* kStep,
                                          const float* kScales, const int8_t* next, int headDim, float* scores) {
  constexpr int kHalf = 2 * V::W;  // tokens at once
  SKEIN_UNROLL(1)
  for (int t = 0; t < kStepTokens; t += kHalf) {
    typename V::I sum[N][2];
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) sum[p][0] = sum[p][1] = V::set1I(0);
    for (int s = 0; s < pairsOf(headDim); s++) {
      const size_t row = size_t(s) * 2 * kStepTokens;
      if constexpr (kPrefetch)
        if (t == 0) prefetch<int8_t, 2 * kStepTokens>(next + row);
      const auto low = V::widenPairs(kStep + row + 2 * t);
      const auto high = V::widenPairs(kStep + row + 2 * (t + V::W));
      SKEIN_UNROLL(8)
      for (int p = 0; p < N; p++) {
        const auto a = V::set1I(pairAt(q[p], s));
        sum[p][0] = V::dotWords(sum[p][0], low, a);
        sum[p][1] = V::dotWords(sum[p][1], high, a);
      }
    }
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++)
      for (int i = 0; i < 2; i++) {
        const auto scale = V::mul(V::set1(qScales[p]), V::load(kScales + t + i * V::W));
        V::store(scores + p * kStepTokens + t + i * V::W, V::mul(V::toFloat(sum[p][i]), scale));
      }
  }
}

// Rounds probabilities of N pairs, times the scales of the values, to 16 bits, and gives the scale of each pair.
template <class V, int N>
void roundProbabilities(const float* probabilities, const float* vScales, int16_t* rounded, float* scales) {
  constexpr int kVectors = kStepTokens / V::W;
  for (int p = 0; p < N; p++) {
    typename V::F weights[kVectors];
    auto greatest = V::set1(0.0f);
    SKEIN_UNROLL(4)
    for (int i = 0; i < kVectors; i++) {
      weights[i] = V::mul(V::load(probabilities + p * kStepTokens + i * V::W), V::load(vScales + i * V::W));
      greatest = V::greaterMagnitude(greatest, weights[i]);
    }
    const Rounding rounding = roundingOf(finiteMaximum<V>(greatest), kProbabilityQuants);
    scales[p] = rounding.scale;
    SKEIN_UNROLL(4)
    for (int i = 0; i < kVectors; i++)
      V::storeWords(rounded + p * kStepTokens + i * V::W, V::mul(weights[i], V::set1(rounding.inverse)));
  }
}

// Computes acc[p] = acc[p] * correction[p] + scales[p] * sum over t of probabilities[p][t] * V[t], for N pairs and
// kVectors vectors of dimensions from `column` on; where it is one vector, `lanes` of it are valid.
template <class V, int N, int kVectors, bool kPrefetch>
void quantizedValueTile(const uint16_t* probabilities, const float* scales, const float* corrections,
                        const int8_t* vStep, const int8_t* next, int stride, int column, float* const* acc, int lanes) {
  typename V::I sum[N][kVectors];
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) sum[p][i] = V::set1I(0);
  for (int s = 0; s < kStepTokens / 2; s++) {
    const size_t row = 2 * (size_t(s) * stride + column);
    if constexpr (kPrefetch) prefetch<int8_t, 2 * kVectors * V::W>(next + row);
    typename V::I values[kVectors];
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) values[i] = V::widenPairs(vStep + row + 2 * i * V::W);
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) {
      const auto a = V::set1I(pairAt(probabilities + p * kStepTokens, s));
      SKEIN_UNROLL(8)
      for (int i = 0; i < kVectors; i++) sum[p][i] = V::dotWords(sum[p][i], values[i], a);
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) {
    float* to = acc[p] + column + i * V::W;
    const int valid = kVectors == 1 ? lanes : V::W;
    const auto before = V::mul(loadHead<V>(to, valid, 0.0f), V::set1(corrections[p]));
    storeHead<V>(to, valid, V::fma(V::toFloat(sum[p][i]), V::set1(scales[p]), before));
  }
}

// stride: columns of a row of V. probabilities: in f32, rounded here.
template <class V, int N, bool kPrefetch>
void quantizedValueTiles(const float* probabilities, const float* corrections, const int8_t* vStep,
                         const float* vScales, const int8_t* next, int stride, int headDim, float* const* acc) {
  int16_t rounded[N * kStepTokens];
  float scales[N];
  roundProbabilities<V, N>(probabilities, vScales, rounded, scales);
  const uint16_t* words = reinterpret_cast<const uint16_t*>(rounded);
  constexpr int kVectors = V::W == 16 && N <= 6 ? 4 : 2;
  int d = 0;
  for (; d + kVectors * V::W <= headDim; d += kVectors * V::W)
    quantizedValueTile<V, N, kVectors, kPrefetch>(words, scales, corrections, vStep, next, stride, d, acc,
                                                  kVectors * V::W);
  for (; d < headDim; d += V::W)
    quantizedValueTile<V, N, 1, kPrefetch>(words, scales, corrections, vStep, next, stride, d, acc, headDim - d);
}

}  // namespace
}  // namespace skein

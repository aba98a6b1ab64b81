// The tiles of attention_tiles.h over a bf16 cache by dot products of pairs of bf16: queries and probabilities are rounded
// to bf16 as products with bf16 weights round their rows (see pairs.h for what the instruction does), everything between
// them stays f32.
//
//   scores    pairs of dimensions   q[0] q[1] | q[2] q[3] | ..      times   k[0][t] k[1][t] | k[2][t] k[3][t] | ..
//   values    pairs of tokens       p[0] p[1] | p[2] p[3] | ..      times   v[0][d] v[1][d] | v[2][d] v[3][d] | ..
//
// A step's rows of the cache are paired up once in scratch, for many (row, head) pairs, or while they are read.
#pragma once
#include "kernels/attention_tiles.h"
#include "kernels/pairs.h"

namespace skein {
namespace {

// Number of (row, head) pairs at once: with 2 vectors of scores, and of values in turn, they fill the registers. Where vectors have
// 16 lanes, up to six pairs take 4 vectors of values.
template <class V>
constexpr int kPairedTile = V::W == 16 ? 8 : 6;

// A word of two bf16, from two rows that are paired up in scratch.
using Paired = int32_t;

// Reads pair i of a row that was rounded to bf16.
inline Paired pairAt(const uint16_t* row, int i) {
  Paired pair;
  __builtin_memcpy(&pair, row + 2 * i, sizeof pair);
  return pair;
}

// Loads two vectors of pairs of the rows `step * 2` and `step * 2 + 1`, from column `column` on.
template <class V>
inline void loadPairs(const Paired* rows, int step, int stride, int column, typename V::I& low, typename V::I& high) {
  const Paired* p = rows + step * stride + column;
  low = V::loadI(reinterpret_cast<const uint8_t*>(p));
  high = V::loadI(reinterpret_cast<const uint8_t*>(p + V::W));
}
template <class V>
inline void loadPairs(const uint16_t* rows, int step, int stride, int column, typename V::I& low, typename V::I& high) {
  const uint16_t* even = rows + size_t(2 * step) * stride + column;
  V::pairRows(even, even + stride, low, high);
}

// Writes `count` pairs of two rows into scratch; odd null: a row of zeros.
template <class V>
void pairUp(const uint16_t* even, const uint16_t* odd, int count, Paired* to) {
  int i = 0;
  if (odd)
    for (; i + 2 * V::W <= count; i += 2 * V::W) {
      typename V::I low, high;
      V::pairRows(even + i, odd + i, low, high);
      V::storeI(reinterpret_cast<uint8_t*>(to + i), low);
      V::storeI(reinterpret_cast<uint8_t*>(to + i + V::W), high);
    }
  for (; i < count; i++) to[i] = Paired(uint32_t(even[i]) | (odd ? uint32_t(odd[i]) << 16 : 0u));
}

// Computes scores[p * 32 ..] = q[p] . K for N (row, head) pairs.
template <class V, int N, bool kPrefetch, class T>
[[gnu::noinline]] void pairedScoreTile(const uint16_t* const* q, const T* kStep, const T* next, int headDim,
                                       float* scores) {
  constexpr int kTokens = 2 * V::W;  // at once
  SKEIN_UNROLL(1)
  for (int t = 0; t < kStepTokens; t += kTokens) {
    typename V::F acc[N][2];
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) acc[p][0] = acc[p][1] = V::set1(0.0f);
    for (int s = 0; s < pairsOf(headDim); s++) {
      if constexpr (kPrefetch)
        if (t == 0) prefetch<T, 2 * kStepTokens>(next + size_t(2 * s) * kStepTokens);
      typename V::I low, high;
      loadPairs<V>(kStep, s, kStepTokens, t, low, high);
      SKEIN_UNROLL(8)
      for (int p = 0; p < N; p++) {
        const auto a = V::set1I(pairAt(q[p], s));
        acc[p][0] = V::dotPairs(acc[p][0], a, low);
        acc[p][1] = V::dotPairs(acc[p][1], a, high);
      }
    }
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++)
      for (int i = 0; i < 2; i++) V::store(scores + p * kStepTokens + t + i * V::W, acc[p][i]);
  }
}

// Computes acc[p] = acc[p] * correction[p] + sum over t of probabilities[p][t] * V[t], for N pairs and 2 kDoubles
// vectors of dimensions; where these are two vectors, `lanes` of them are valid.
template <class V, int N, int kDoubles, bool kPrefetch, class T>
void pairedValueTile(const uint16_t* probabilities, const float* corrections, const T* vStep, const T* next, int stride,
                     int column, float* const* acc, int lanes) {
  constexpr int kVectors = 2 * kDoubles;
  typename V::F sum[N][kVectors];
  const auto lanesOf = [&](int i) {
    if (kDoubles > 1) return V::W;
    return lanes - i * V::W < V::W ? (lanes > i * V::W ? lanes - i * V::W : 0) : V::W;
  };
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++)
    sum[p][i] = V::mul(loadHead<V>(acc[p] + column + i * V::W, lanesOf(i), 0.0f), V::set1(corrections[p]));
  for (int s = 0; s < kStepTokens / 2; s++) {
    if constexpr (kPrefetch) {
      prefetch<T, kVectors * V::W>(next + size_t(2 * s) * stride + column);
      prefetch<T, kVectors * V::W>(next + size_t(2 * s + 1) * stride + column);
    }
    typename V::I values[kVectors];
    SKEIN_UNROLL(8)
    for (int i = 0; i < kDoubles; i++)
      loadPairs<V>(vStep, s, stride, column + 2 * i * V::W, values[2 * i], values[2 * i + 1]);
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) {
      const auto a = V::set1I(pairAt(probabilities + p * kStepTokens, s));
      SKEIN_UNROLL(8)
      for (int i = 0; i < kVectors; i++) sum[p][i] = V::dotPairs(sum[p][i], a, values[i]);
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) storeHead<V>(acc[p] + column + i * V::W, lanesOf(i), sum[p][i]);
}

// stride: columns of a row of V. scores: probabilities in f32, rounded here.
template <class V, int N, bool kPrefetch, class T>
void pairedValueTiles(const float* scores, const float* corrections, const T* vStep, const T* next, int stride,
                      int headDim, float* const* acc) {
  uint16_t probabilities[N * kStepTokens];
  for (int i = 0; i < N * kStepTokens; i += V::W) V::storeBf16(probabilities + i, V::load(scores + i));
  constexpr int kDoubles = V::W == 16 && N <= 6 ? 2 : 1;
  int d = 0;
  for (; d + 2 * kDoubles * V::W <= headDim; d += 2 * kDoubles * V::W)
    pairedValueTile<V, N, kDoubles, kPrefetch>(probabilities, corrections, vStep, next, stride, d, acc,
                                               2 * kDoubles * V::W);
  for (; d < headDim; d += 2 * V::W)
    pairedValueTile<V, N, 1, kPrefetch>(probabilities, corrections, vStep, next, stride, d, acc, headDim - d);
}

}  // namespace
}  // namespace skein

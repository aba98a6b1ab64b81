// The arithmetic of one step of attention for a few (row, head) pairs, whose sums fill the registers: scores, probabilities,
// weighted values. For the walk over the cache and the layout of a step see attention.h.
#pragma once
#include "kernels/math.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

constexpr int padTo(int n, int width) { return (n + width - 1) / width * width; }

template <class T>
inline float cacheValue(T x) {
  if constexpr (sizeof(T) == 4) return x;
  else return fromBf16(x);
}

template <class V>
inline typename V::F loadCache(const float* p) {
  return V::load(p);
}
template <class V>
inline typename V::F loadCache(const uint16_t* p) {
  return V::loadBf16(p);
}

// Prefetches data of the next step while this one computes: a cache line or two of K for each dimension, of V for each
// token.
template <class T, int kElements>
inline void prefetch(const T* p) {
  constexpr int kBytes = kElements * int(sizeof(T));
  SKEIN_UNROLL(8)
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + i);
}

// Computes scores[p * 32 ..] = q[p] . K for N (row, head) pairs.
template <class V, int N, bool kPrefetch, class T>
[[gnu::noinline]] void scoreTile(const float* const* q, const T* kStep, const T* next, int headDim, float* scores) {
  constexpr int kVectors = kStepTokens / V::W;
  typename V::F acc[N][kVectors];
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) acc[p][i] = V::set1(0.0f);
  for (int d = 0; d < headDim; d++) {
    if constexpr (kPrefetch) prefetch<T, kStepTokens>(next + d * kStepTokens);
    typename V::F a[N];
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) a[p] = V::set1(q[p][d]);
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) {
      const auto keys = loadCache<V>(kStep + d * kStepTokens + i * V::W);
      SKEIN_UNROLL(8)
      for (int p = 0; p < N; p++) acc[p][i] = V::fma(a[p], keys, acc[p][i]);
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) V::store(scores + p * kStepTokens + i * V::W, acc[p][i]);
}

// The tokens of a step that a pair attends to: those before `end` that are from `begin` on or before `sinks`.
struct Visible {
  int begin, end, sinks;
  bool whole() const { return begin <= 0 && end >= kStepTokens; }
};

// Scales the scores of N pairs, and makes -infinity of those that a pair does not attend to. A function of its own, because few steps
// need it.
template <class V, int N>
[[gnu::noinline]] void maskScores(float* scores, float scale, const Visible* visible) {
  const auto hidden = V::set1(kMinusInfinity);
  for (int p = 0; p < N; p++) {
    const auto begin = V::set1(float(visible[p].begin)), end = V::set1(float(visible[p].end));
    const auto sinks = V::set1(float(visible[p].sinks));
    for (int i = 0; i < kStepTokens; i += V::W) {
      float* at = scores + p * kStepTokens + i;
      const auto s = V::mul(V::load(at), V::set1(scale));
      const auto lanes = V::add(V::iota(), V::set1(float(i)));
      const auto ofWindow = V::selectLess(lanes, begin, V::selectLess(lanes, sinks, s, hidden), s);
      V::store(at, V::selectLess(lanes, end, ofWindow, hidden));
    }
  }
}

// Turns the scores of N pairs into probabilities against each pair's new maximum, and computes the corrections of the
// earlier sums, with one exponential for all of them. acc[p] is followed by the pair's maximum and sum. Each pair sees
// a token of the step. kCoarse: the probabilities will be rounded to bf16.
template <class V, int N, bool kCoarse>
void softmaxStep(float* scores, float scale, float* const* acc, int headDim, float* corrections) {
  constexpr int kVectors = kStepTokens / V::W;
  static_assert(N <= V::W);
  float gaps[V::W] = {};
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) {
    auto top = V::set1(kMinusInfinity);
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) {
      float* at = scores + p * kStepTokens + i * V::W;
      const auto s = V::mul(V::load(at), V::set1(scale));
      top = V::max(top, s);
      V::store(at, s);
    }
    const float stepMaximum = V::reduceMax(top);
    float& maximum = acc[p][headDim];
    const float m = stepMaximum > maximum ? stepMaximum : maximum;
    gaps[p] = maximum - m;
    maximum = m;
  }
  float lanes[V::W];
  V::store(lanes, vexpBelow<V>(V::load(gaps)));
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) {
    const auto m = V::set1(acc[p][headDim]);
    auto total = V::set1(0.0f);
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) {
      float* at = scores + p * kStepTokens + i * V::W;
      const auto gap = V::sub(V::load(at), m);
      typename V::F e;
      if constexpr (kCoarse) e = vexpCoarse<V>(gap);
      else e = vexpBelow<V>(gap);
      V::store(at, e);
      total = V::add(total, e);
    }
    corrections[p] = lanes[p];
    float& sum = acc[p][headDim + 1];
    sum = sum * lanes[p] + V::reduceAdd(total);
  }
}

// Computes acc[p] = acc[p] * correction[p] + sum over t of scores[p][t] * V[t], for N pairs and kVectors vectors of
// dimensions; where it is one vector, `lanes` of it are valid.
template <class V, int N, int kVectors, bool kPrefetch, class T>
void valueTile(const float* scores, const float* corrections, const T* vStep, const T* next, int padded,
               float* const* acc, int lanes) {
  typename V::F sum[N][kVectors];
  const int valid = kVectors == 1 ? lanes : V::W;
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++)
    sum[p][i] = V::mul(loadHead<V>(acc[p] + i * V::W, valid, 0.0f), V::set1(corrections[p]));
  for (int t = 0; t < kStepTokens; t++) {
    if constexpr (kPrefetch) prefetch<T, kVectors * V::W>(next + size_t(t) * padded);
    typename V::F a[N];
    SKEIN_UNROLL(8)
    for (int p = 0; p < N; p++) a[p] = V::set1(scores[p * kStepTokens + t]);
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) {
      const auto values = loadCache<V>(vStep + size_t(t) * padded + i * V::W);
      SKEIN_UNROLL(8)
      for (int p = 0; p < N; p++) sum[p][i] = V::fma(a[p], values, sum[p][i]);
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) storeHead<V>(acc[p] + i * V::W, valid, sum[p][i]);
}

template <class V, int N, bool kPrefetch, class T>
void valueTiles(const float* scores, const float* corrections, const T* vStep, const T* next, int headDim,
                float* const* acc) {
  constexpr int kVectors = 4;
  const int padded = padTo(headDim, V::W);
  float* at[N];
  int d = 0;
  for (; d + kVectors * V::W <= headDim; d += kVectors * V::W) {
    for (int p = 0; p < N; p++) at[p] = acc[p] + d;
    valueTile<V, N, kVectors, kPrefetch>(scores, corrections, vStep + d, next + d, padded, at, kVectors * V::W);
  }
  for (; d < headDim; d += V::W) {
    for (int p = 0; p < N; p++) at[p] = acc[p] + d;
    valueTile<V, N, 1, kPrefetch>(scores, corrections, vStep + d, next + d, padded, at, headDim - d);
  }
}

}  // namespace
}  // namespace skein

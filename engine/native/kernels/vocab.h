// Reductions over one row of logits. Sums run over fixed chunks of kVocabChunk values, so that they depend on nothing but
// the row.
#pragma once
#include "kernels/math.h"

namespace skein {
namespace {

// The greatest of values [begin, end), where NaN counts for nothing but sets `nan`.
template <class V>
inline float greatest(const float* logits, int begin, int end, bool& nan) {
  auto top = V::set1(kMinusInfinity);
  for (int i = begin; i < end; i += V::W) {
    const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
    nan |= V::anyNan(a);
    top = V::max(a, top);
  }
  return V::reduceMax(top);
}

template <class V>
int32_t argmax(const float* logits, int32_t n, float* maximum, float* groupMaxima) {
  float m = kMinusInfinity;
  int first = 0;
  bool nan = false;
  for (int begin = 0; begin < n; begin += kVocabGroup) {
    const float top = greatest<V>(logits, begin, n - begin < kVocabGroup ? n : begin + kVocabGroup, nan);
    if (groupMaxima != nullptr) groupMaxima[begin / kVocabGroup] = top;
    if (top > m) m = top, first = begin;
  }
  if (nan || m == kMinusInfinity || m == -kMinusInfinity) return -1;
  *maximum = m;
  while (logits[first] != m) first++;
  return first;
}

template <class V>
inline typename V::F weightOf(typename V::F logits, float maximum, float inverseTemperature) {
  return vexp<V>(V::mul(V::sub(logits, V::set1(maximum)), V::set1(inverseTemperature)));
}

template <class V>
double sumExp(const float* logits, int32_t n, float maximum, float inverseTemperature) {
  double total = 0.0;
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    auto sum = V::set1(0.0f);
    for (int i = begin; i < end; i += V::W) {
      const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
      sum = V::add(sum, weightOf<V>(a, maximum, inverseTemperature));
    }
    total += double(V::reduceAdd(sum));
  }
  return total;
}

// One pass over memory: a chunk that has just been searched for its maximum is still in the first cache.
template <class V>
void chunkExp(const float* logits, int32_t n, float inverseTemperature, float* maxima, float* sums) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    auto top = V::set1(kMinusInfinity);
    for (int i = begin; i < end; i += V::W)
      top = V::max(loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity), top);
    const float m = V::reduceMax(top);
    auto sum = V::set1(0.0f);
    if (m == kMinusInfinity) {
      bool nan = false;
      greatest<V>(logits, begin, end, nan);
      if (nan) sum = V::set1(__builtin_nanf(""));
    } else {
      for (int i = begin; i < end; i += V::W) {
        const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
        sum = V::add(sum, weightOf<V>(a, m, inverseTemperature));
      }
    }
    maxima[begin / kVocabChunk] = m;
    sums[begin / kVocabChunk] = V::reduceAdd(sum);
  }
}

// The sum over [begin, end) of the weights of values that are not below `bound`; with kStrict, that are above it.
template <class V, bool kStrict>
inline float sumAbove(const float* logits, int begin, int end, float m, float inverseTemperature, float bound) {
  const auto limit = V::set1(bound), zero = V::set1(0.0f);
  auto sum = zero;
  for (int i = begin; i < end; i += V::W) {
    const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
    const auto w = weightOf<V>(a, m, inverseTemperature);
    sum = V::add(sum, kStrict ? V::selectLess(limit, a, w, zero) : V::selectLess(a, limit, zero, w));
  }
  return V::reduceAdd(sum);
}

// The chunk in which `before` lies: an equal of the bound counts in front of it only.
template <class V>
inline float sumAround(const float* logits, int begin, int end, float m, float inverseTemperature, float bound, int before) {
  const auto limit = V::set1(bound), zero = V::set1(0.0f);
  auto sum = zero;
  for (int i = begin; i < end; i += V::W) {
    const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
    const auto w = weightOf<V>(a, m, inverseTemperature);
    const auto inFront = V::selectLess(V::iota(), V::set1(float(before - i)), V::selectLess(a, limit, zero, w), zero);
    sum = V::add(sum, V::selectLess(limit, a, w, inFront));
  }
  return V::reduceAdd(sum);
}

template <class V>
void chunkExpAbove(const float* logits, int32_t n, float inverseTemperature, const float* maxima, float bound, int32_t before,
                   float* sums) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    const float m = maxima[begin / kVocabChunk];
    float& sum = sums[begin / kVocabChunk];
    if (m < bound || m == kMinusInfinity) sum = 0.0f;
    else if (before <= begin) sum = sumAbove<V, true>(logits, begin, end, m, inverseTemperature, bound);
    else if (before >= end) sum = sumAbove<V, false>(logits, begin, end, m, inverseTemperature, bound);
    else sum = sumAround<V>(logits, begin, end, m, inverseTemperature, bound, before);
  }
}

template <class V>
void expRow(const float* logits, int32_t n, float maximum, float inverseTemperature, float* probabilities) {
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(probabilities + i, lanes,
                 weightOf<V>(loadHead<V>(logits + i, lanes, kMinusInfinity), maximum, inverseTemperature));
  }
}

}  // namespace
}  // namespace skein

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

// exp((logits - maximum) * inverseTemperature) = 2^n * 2^r with n whole and |r| <= 1/2; 2^r by a polynomial of least
// relative error with 2^0 = 1. Within 2 ulp near the maximum; the exponent's own rounding adds |exponent| / 2^24 below it.
// 0 below 2^-125. No logit may be more than 126 ln 2 / inverseTemperature above the maximum.
template <class V>
inline typename V::F weightOf(typename V::F logits, float maximum, float inverseTemperature) {
  const auto x = V::mul(V::sub(logits, V::set1(maximum)), V::set1(inverseTemperature * 1.44269504088896341f));
  const auto n = V::roundNearest(x);
  const auto r = V::sub(x, n);
  auto p = V::fma(V::set1(1.5353361440e-4f), r, V::set1(1.3398874570e-3f));
  p = V::fma(p, r, V::set1(9.6184373608e-3f));
  p = V::fma(p, r, V::set1(5.5503324706e-2f));
  p = V::fma(p, r, V::set1(2.4022647914e-1f));
  p = V::fma(p, r, V::set1(6.9314720286e-1f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::timesPow2(p, n);
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

// The greatest of values [begin, end), and where it is wanted that of each group; NaN counts for nothing.
template <class V>
inline float greatestOfGroups(const float* logits, int begin, int end, float* groupMaxima) {
  auto top = V::set1(kMinusInfinity);
  for (int group = begin; group < end; group += kVocabGroup) {
    const int groupEnd = end - group < kVocabGroup ? end : group + kVocabGroup;
    auto ofGroup = V::set1(kMinusInfinity);
    for (int i = group; i < groupEnd; i += V::W)
      ofGroup = V::max(loadHead<V>(logits + i, groupEnd - i < V::W ? groupEnd - i : V::W, kMinusInfinity), ofGroup);
    if (groupMaxima != nullptr) groupMaxima[group / kVocabGroup] = V::reduceMax(ofGroup);
    top = V::max(ofGroup, top);
  }
  return V::reduceMax(top);
}

// One pass over memory: a chunk that has just been searched for its maximum is still in the first cache.
template <class V>
void chunkExp(const float* logits, int32_t n, float inverseTemperature, float* maxima, float* sums, float* groupMaxima) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    const float m = greatestOfGroups<V>(logits, begin, end, groupMaxima);
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

// The weights of values above `bound`, and of those equal to it whose index is below `before`, summed over a chunk.
template <class V>
struct WeightsBefore {
  float m, inverseTemperature, bound;
  int before;
  const float* logits;

  // Adds those of [begin, end), a group. An equal of the bound counts in front of `before` only.
  typename V::F add(typename V::F sum, int begin, int end) const {
    if (before <= begin) return addAll<true>(sum, begin, end);
    return before >= end ? addAll<false>(sum, begin, end) : addAround(sum, begin, end);
  }

 private:
  template <bool kStrict>
  typename V::F addAll(typename V::F sum, int begin, int end) const {
    const auto limit = V::set1(bound), zero = V::set1(0.0f);
    for (int i = begin; i < end; i += V::W) {
      const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
      const auto w = weightOf<V>(a, m, inverseTemperature);
      sum = V::add(sum, kStrict ? V::selectLess(limit, a, w, zero) : V::selectLess(a, limit, zero, w));
    }
    return sum;
  }
  typename V::F addAround(typename V::F sum, int begin, int end) const {
    const auto limit = V::set1(bound), zero = V::set1(0.0f);
    for (int i = begin; i < end; i += V::W) {
      const auto a = loadHead<V>(logits + i, end - i < V::W ? end - i : V::W, kMinusInfinity);
      const auto w = weightOf<V>(a, m, inverseTemperature);
      const auto inFront = V::selectLess(V::iota(), V::set1(float(before - i)), V::selectLess(a, limit, zero, w), zero);
      sum = V::add(sum, V::selectLess(limit, a, w, inFront));
    }
    return sum;
  }
};

// Groups that lie below the bound as a whole add zeros only: they are passed over.
template <class V>
void chunkExpAbove(const float* logits, int32_t n, float inverseTemperature, const float* maxima, const float* groupMaxima,
                   float bound, int32_t before, float* sums) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    const float m = maxima[begin / kVocabChunk];
    auto sum = V::set1(0.0f);
    if (m >= bound && m > kMinusInfinity) {
      const WeightsBefore<V> weights{m, inverseTemperature, bound, before, logits};
      for (int group = begin; group < end; group += kVocabGroup) {
        if (groupMaxima[group / kVocabGroup] < bound) continue;
        sum = weights.add(sum, group, end - group < kVocabGroup ? end : group + kVocabGroup);
      }
    }
    sums[begin / kVocabChunk] = V::reduceAdd(sum);
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

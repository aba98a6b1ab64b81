// Reductions over one row of logits. Sums run over fixed chunks of kVocabChunk values, so that they depend on nothing but
// the row.
#pragma once
#include "kernels/math.h"

namespace skein {
namespace {

// The greatest of values [begin, end), ignoring NaN, which sets `nan`.
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
// The result is 0 below 2^-125. No logit may be more than 126 ln 2 / inverseTemperature above the maximum.
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

// Adds up a chunk in four vectors, by a value's place in its chunk, so that an addition need not wait for the one before:
//
//   |  0  |  1  |  2  |  3  |  0  |  1  | ...
template <class V>
struct ChunkSum {
  static constexpr int kParts = 4;
  static_assert(kVocabGroup % (kParts * V::W) == 0, "a group begins at the first part");
  typename V::F part[kParts] = {V::set1(0.0f), V::set1(0.0f), V::set1(0.0f), V::set1(0.0f)};

  // Adds term(i, lanes) for the vectors of [begin, end), which begins at the first part.
  template <class Term>
  void add(int begin, int end, const Term& term) {
    int i = begin;
    for (; i + kParts * V::W <= end; i += kParts * V::W) {
      SKEIN_UNROLL(4)
      for (int k = 0; k < kParts; k++) part[k] = V::add(part[k], term(i + k * V::W, V::W));
    }
    for (int k = 0; i < end; i += V::W, k++) part[k] = V::add(part[k], term(i, end - i < V::W ? end - i : V::W));
  }
  float total() const { return V::reduceAdd(V::add(V::add(part[0], part[1]), V::add(part[2], part[3]))); }
};

// The greatest of values [begin, end), and if wanted of each group; NaN is ignored.
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

// Makes one pass over memory: a chunk that has just been searched for its maximum is still in the first-level cache, and the
// next chunk is prefetched while this one is weighed.
template <class V>
void chunkExp(const float* logits, int32_t n, float inverseTemperature, float* maxima, float* sums, float* groupMaxima,
              float* weights) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    const float m = greatestOfGroups<V>(logits, begin, end, groupMaxima);
    ChunkSum<V> sum;
    if (m == kMinusInfinity) {
      bool nan = false;
      greatest<V>(logits, begin, end, nan);
      if (nan) sum.part[0] = V::set1(__builtin_nanf(""));
    } else {
      sum.add(begin, end, [&](int i, int lanes) {
        __builtin_prefetch(logits + i + kVocabChunk);
        const auto w = weightOf<V>(loadHead<V>(logits + i, lanes, kMinusInfinity), m, inverseTemperature);
        if (weights != nullptr) storeHead<V>(weights + i, lanes, w);
        return w;
      });
    }
    maxima[begin / kVocabChunk] = m;
    sums[begin / kVocabChunk] = sum.total();
  }
}

// Sums over a chunk the weights of values above `bound`, and of those equal to it whose index is below `before`. They are
// computed, or read if chunkExp has stored them.
template <class V, bool kKnown>
struct WeightsBefore {
  float m, inverseTemperature, bound;
  int before;
  const float* logits;
  const float* weights;

  // Adds the weights within [begin, end), one or several groups. A value equal to the bound counts only in front of
  // `before`.
  void add(ChunkSum<V>& sum, int begin, int end) const {
    if (before <= begin) return addAll<true>(sum, begin, end);
    before >= end ? addAll<false>(sum, begin, end) : addAround(sum, begin, end);
  }

 private:
  typename V::F weigh(typename V::F logit, int i, int lanes) const {
    if constexpr (kKnown) return loadHead<V>(weights + i, lanes, 0.0f);
    return weightOf<V>(logit, m, inverseTemperature);
  }
  template <bool kStrict>
  void addAll(ChunkSum<V>& sum, int begin, int end) const {
    const auto limit = V::set1(bound), zero = V::set1(0.0f);
    sum.add(begin, end, [&](int i, int lanes) {
      const auto a = loadHead<V>(logits + i, lanes, kMinusInfinity);
      const auto w = weigh(a, i, lanes);
      return kStrict ? V::selectLess(limit, a, w, zero) : V::selectLess(a, limit, zero, w);
    });
  }
  void addAround(ChunkSum<V>& sum, int begin, int end) const {
    const auto limit = V::set1(bound), zero = V::set1(0.0f);
    sum.add(begin, end, [&](int i, int lanes) {
      const auto a = loadHead<V>(logits + i, lanes, kMinusInfinity);
      const auto w = weigh(a, i, lanes);
      const auto inFront = V::selectLess(V::iota(), V::set1(float(before - i)), V::selectLess(a, limit, zero, w), zero);
      return V::selectLess(limit, a, w, inFront);
    });
  }
};

// One bit for each of the V::W groups from `first` on, within `end`: set if its greatest value is at least `bound`.
template <class V>
inline uint32_t groupsFrom(const float* groupMaxima, int first, int end, float bound) {
  const int left = (end - first + kVocabGroup - 1) / kVocabGroup, count = left < V::W ? left : V::W;
  const auto maxima = loadHead<V>(groupMaxima + first / kVocabGroup, count, kMinusInfinity);
  return V::atLeast(maxima, V::set1(bound)) & ((1u << count) - 1);
}

// Passes over groups that lie below the bound as a whole, since they add only zeros.
template <class V, bool kKnown>
void chunksAbove(const float* logits, int32_t n, float inverseTemperature, const float* maxima,
                 const float* groupMaxima, const float* known, float bound, int32_t before, float* sums) {
  for (int begin = 0; begin < n; begin += kVocabChunk) {
    const int end = n - begin < kVocabChunk ? n : begin + kVocabChunk;
    const float m = maxima[begin / kVocabChunk];
    ChunkSum<V> sum;
    if (m >= bound && m > kMinusInfinity) {
      const WeightsBefore<V, kKnown> weights{m, inverseTemperature, bound, before, logits, known};
      constexpr int kSpan = V::W * kVocabGroup;
      for (int first = begin; first < end; first += kSpan) {
        uint32_t groups = groupsFrom<V>(groupMaxima, first, end, bound);
        if (groups == (1u << V::W) - 1) {
          weights.add(sum, first, end - first < kSpan ? end : first + kSpan);
          continue;
        }
        for (; groups != 0; groups &= groups - 1) {
          const int group = first + __builtin_ctz(groups) * kVocabGroup;
          weights.add(sum, group, end - group < kVocabGroup ? end : group + kVocabGroup);
        }
      }
    }
    sums[begin / kVocabChunk] = sum.total();
  }
}

template <class V>
void chunkExpAbove(const float* logits, int32_t n, float inverseTemperature, const float* maxima,
                   const float* groupMaxima, const float* weights, float bound, int32_t before, float* sums) {
  if (weights != nullptr)
    return chunksAbove<V, true>(logits, n, inverseTemperature, maxima, groupMaxima, weights, bound, before, sums);
  chunksAbove<V, false>(logits, n, inverseTemperature, maxima, groupMaxima, nullptr, bound, before, sums);
}

// Writes the indices of the values that are at least `least`, ascending, and returns their number. There must be room for n
// of them.
template <class V>
int32_t indicesFrom(const float* values, int32_t n, float least, int32_t* indices) {
  const auto limit = V::set1(least);
  int32_t count = 0;
  for (int i = 0; i < n; i += V::W) {
    uint32_t found = V::atLeast(loadHead<V>(values + i, n - i < V::W ? n - i : V::W, kMinusInfinity), limit);
    for (; found != 0; found &= found - 1) indices[count++] = i + __builtin_ctz(found);
  }
  return count;
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

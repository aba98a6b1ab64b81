// Reductions over one row of logits. Sums run over fixed chunks of kVocabChunk values.
#pragma once
#include "kernels/math.h"

namespace skein {
namespace {

template <class V>
int32_t argmax(const float* logits, int32_t n, float* maximum) {
  auto top = V::set1(kMinusInfinity);
  bool nan = false;
  for (int i = 0; i < n; i += V::W) {
    const auto a = loadHead<V>(logits + i, n - i < V::W ? n - i : V::W, kMinusInfinity);
    nan |= V::anyNan(a);
    top = V::max(a, top);
  }
  const float m = V::reduceMax(top);
  if (nan || m == kMinusInfinity || m == -kMinusInfinity) return -1;
  *maximum = m;
  for (int i = 0; i < n; i++)
    if (logits[i] == m) return i;
  return -1;
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

// Rounds rows to whole numbers with one scale each, for a quantised cache and the queries multiplied with it.
#pragma once
#include "kernels/kv_rotation.h"
#include "kernels/math.h"

namespace skein {
namespace {

constexpr float kKvQuants = 127.0f;

// Rows whose greatest magnitude is below this (2^-100) count as zero; a reciprocal could overflow.
constexpr float kSmallestRow = 0x1p-100f;

// Factor by which a row is multiplied before rounding, and scale of the resulting whole numbers.
struct Rounding {
  float inverse, scale;
};

// Lets whole numbers up to `most` stand for values up to `maximum`; NaN is passed on in the scale.
inline Rounding roundingOf(float maximum, float most) {
  if (maximum >= kSmallestRow) return {most / maximum, maximum / most};
  return {0.0f, maximum < kSmallestRow ? 0.0f : maximum};
}

// The greatest of the magnitudes that V::greaterMagnitude collected; NaN if one is NaN or infinite.
template <class V>
inline float finiteMaximum(typename V::F greatest) {
  return V::anyNan(V::mul(greatest, V::set1(0.0f))) ? __builtin_nanf("") : V::reduceMax(greatest);
}

template <class V>
inline Rounding rowRounding(const float* x, int n, float most) {
  auto greatest = V::set1(0.0f);
  for (int i = 0; i < n; i += V::W)
    greatest = V::greaterMagnitude(greatest, loadHead<V>(x + i, n - i < V::W ? n - i : V::W, 0.0f));
  return roundingOf(finiteMaximum<V>(greatest), most);
}

// Writes the whole numbers of one row, to nearest even; their count is even, so a 0 follows an odd n. Returns the scale.
template <class V>
float quantizeRow16(const float* x, int n, float most, int16_t* to) {
  const Rounding rounding = rowRounding<V>(x, n, most);
  const auto factor = V::set1(rounding.inverse);
  int i = 0;
  for (; i + V::W <= n; i += V::W) V::storeWords(to + i, V::mul(V::load(x + i), factor));
  if (i == n) return rounding.scale;
  int16_t tail[V::W];
  V::storeWords(tail, V::mul(loadHead<V>(x + i, n - i, 0.0f), factor));
  __builtin_memcpy(to + i, tail, size_t((n - i + 1) / 2 * 2) * 2);
  return rounding.scale;
}

// Calls fn(quant, i) for the quants of one row. Returns the scale.
template <class V, class Fn>
inline float eachQuant(const float* x, int n, Fn fn) {
  const Rounding rounding = rowRounding<V>(x, n, kKvQuants);
  const auto factor = V::set1(rounding.inverse);
  int16_t words[V::W];
  for (int i = 0; i < n; i += V::W) {
    const int count = n - i < V::W ? n - i : V::W;
    V::storeWords(words, V::mul(loadHead<V>(x + i, count, 0.0f), factor));
    for (int j = 0; j < count; j++) fn(int8_t(words[j]), i + j);
  }
  return rounding.scale;
}

// Writes one token's k, turned, and v into its slot of a kInt8 layer.
template <class V>
void storeQuants(const KvLayer& kv, const float* k, const float* v, int64_t slot) {
  const int tokens = kv.tokensPerBlock;
  const int headDim = kv.headDim;
  const int group = tokens < kStepTokens ? tokens : kStepTokens;
  const int offset = int(slot % tokens);
  for (int h = 0; h < kv.kvHeads; h++) {
    char* head = kv.head(int32_t(slot / tokens), h);
    int8_t* kTo = reinterpret_cast<int8_t*>(head + size_t(offset / group) * group * kv.keyBytes()) + offset % group * 2;
    int8_t* vTo = reinterpret_cast<int8_t*>(head + size_t(tokens) * kv.keyBytes() + size_t(offset / 2) * 2 * headDim) +
                  offset % 2;
    float* scales = reinterpret_cast<float*>(head + kv.quantBytes());
    const RotatedHead key(k + h * headDim, headDim);
    scales[offset] = eachQuant<V>(key.numbers(), headDim,
                                  [&](int8_t quant, int d) { kTo[size_t(d / 2) * 2 * group + d % 2] = quant; });
    scales[tokens + offset] = eachQuant<V>(v + h * headDim, headDim, [&](int8_t quant, int d) { vTo[2 * d] = quant; });
  }
}

}  // namespace
}  // namespace skein

// Work on one row at a time: norm, embedding, RoPE, the write into the cache.
#pragma once
#include "kernels/dequantize_row.h"
#include "kernels/formats.h"
#include "kernels/kv_quants.h"

namespace skein {
namespace {

// y = (x / sqrt(mean(x^2) + epsilon)) * w, then + residual.
template <class V>
void rmsNorm(const float* x, const float* w, float epsilon, const float* residual, int32_t n, float* y) {
  const auto inverse = V::set1(1.0f / __builtin_sqrtf(sumOfSquares<V>(x, n) / float(n) + epsilon));
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    const auto scaled = V::mul(loadHead<V>(x + i, lanes, 0.0f), inverse);
    auto normed = V::mul(scaled, loadHead<V>(w + i, lanes, 0.0f));
    if (residual) normed = V::add(normed, loadHead<V>(residual + i, lanes, 0.0f));
    storeHead<V>(y + i, lanes, normed);
  }
}

template <class V>
void scaleRow(float* x, float factor, int32_t n) {
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(x + i, lanes, V::mul(loadHead<V>(x + i, lanes, 0.0f), V::set1(factor)));
  }
}

template <class V>
void softCapRow(float* x, float cap, int32_t n) {
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(x + i, lanes, softCapped<V>(loadHead<V>(x + i, lanes, 0.0f), cap));
  }
}

template <class V>
void xieluRow(float* x, const Xielu& xielu, int32_t n) {
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(x + i, lanes, xieluOf<V>(loadHead<V>(x + i, lanes, 0.0f), xielu));
  }
}

// Sums mean and variance each in W lanes over ascending columns, then across them.
template <class V>
void layerNorm(const float* x, const float* w, const float* bias, float epsilon, int32_t n, float* y) {
  auto total = V::set1(0.0f);
  for (int i = 0; i < n; i += V::W) total = V::add(total, loadHead<V>(x + i, n - i < V::W ? n - i : V::W, 0.0f));
  const float average = V::reduceAdd(total) / float(n);
  const auto mean = V::set1(average);
  auto squares = V::set1(0.0f);
  for (int i = 0; i < n; i += V::W) {
    const auto apart = V::sub(loadHead<V>(x + i, n - i < V::W ? n - i : V::W, average), mean);
    squares = V::fma(apart, apart, squares);
  }
  const auto inverse = V::set1(1.0f / __builtin_sqrtf(V::reduceAdd(squares) / float(n) + epsilon));
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    const auto scaled = V::mul(V::sub(loadHead<V>(x + i, lanes, 0.0f), mean), inverse);
    const auto added = bias ? loadHead<V>(bias + i, lanes, 0.0f) : V::set1(0.0f);
    storeHead<V>(y + i, lanes, V::fma(scaled, loadHead<V>(w + i, lanes, 0.0f), added));
  }
}

template <class V>
void meanRows(const float* x, int32_t rows, int32_t n, float* y) {
  const auto inverse = V::set1(1.0f / float(rows));
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    auto total = V::set1(0.0f);
    for (int row = 0; row < rows; row++) total = V::add(total, loadHead<V>(x + int64_t(row) * n + i, lanes, 0.0f));
    storeHead<V>(y + i, lanes, V::mul(total, inverse));
  }
}

template <class V>
void unitRow(const float* x, int32_t n, float* y) {
  const float norm = __builtin_sqrtf(sumOfSquares<V>(x, n));
  const auto inverse = V::set1(1.0f / (norm < 1e-12f ? 1e-12f : norm));
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(y + i, lanes, V::mul(loadHead<V>(x + i, lanes, 0.0f), inverse));
  }
}

template <class V>
void embeddingRow(DType dtype, const void* row, int32_t n, float* y) {
  if (dtype == DType::kF32) return void(__builtin_memcpy(y, row, size_t(n) * 4));
  if (isQuantized(dtype))
    return forFormat(dtype, [&]<DType D>(Format<D>) { dequantizeRow<D>(static_cast<const uint8_t*>(row), n, y); });
  const uint16_t* from = static_cast<const uint16_t*>(row);
  for (int i = 0; i < n; i++) y[i] = fromBf16(from[i]);
}

// Adds a row in runs of a superblock, which begin at a whole block of every format.
template <class V>
void addEmbeddingRow(DType dtype, const void* row, int32_t n, float* y) {
  const uint8_t* at = static_cast<const uint8_t*>(row);
  for (int i = 0; i < n; i += kSuperblock, at += rowBytes(dtype, kSuperblock)) {
    const int count = n - i < kSuperblock ? n - i : kSuperblock;
    float run[kSuperblock] = {};
    embeddingRow<V>(dtype, at, count, run);
    for (int j = 0; j < count; j++) y[i + j] += run[j];
  }
}

// The angle is rounded to f32 first, as in the reference; its sine and cosine are then exact to f32.
template <class V>
void ropeAngles(const float* inverseFrequencies, int32_t half, float scale, int32_t position, float* cosine,
                float* sine) {
  for (int i = 0; i < half; i++) {
    const float angle = float(position) * inverseFrequencies[i];
    cosine[i] = float(__builtin_cos(double(angle))) * scale;
    sine[i] = float(__builtin_sin(double(angle))) * scale;
  }
}

template <class V>
void rope(float* x, int32_t heads, int32_t headDim, int32_t half, const float* cosine, const float* sine) {
  for (int h = 0; h < heads; h++) {
    float* low = x + int64_t(h) * headDim;
    float* high = low + half;
    for (int i = 0; i < half; i++) {
      const float a = low[i];
      const float b = high[i];
      low[i] = a * cosine[i] - b * sine[i];
      high[i] = b * cosine[i] + a * sine[i];
    }
  }
}

template <class T>
inline T toCache(float x) {
  if constexpr (sizeof(T) == 4) return x;
  else return toBf16(x);
}

template <class T>
void storeKvOf(const KvLayer& kv, const float* k, const float* v, int64_t slot) {
  const int tokens = kv.tokensPerBlock;
  const int headDim = kv.headDim;
  const int group = tokens < kStepTokens ? tokens : kStepTokens;
  const int offset = int(slot % tokens);
  for (int h = 0; h < kv.kvHeads; h++) {
    T* head = reinterpret_cast<T*>(kv.head(int32_t(slot / tokens), h));
    T* kTo = head + size_t(offset / group) * headDim * group + offset % group;
    T* vTo = head + size_t(tokens + offset) * headDim;
    for (int d = 0; d < headDim; d++) kTo[size_t(d) * group] = toCache<T>(k[h * headDim + d]);
    for (int d = 0; d < headDim; d++) vTo[d] = toCache<T>(v[h * headDim + d]);
  }
}

template <class V>
void storeKv(const KvLayer& kv, const float* k, const float* v, int64_t slot) {
  if (kv.dtype == DType::kF32) storeKvOf<float>(kv, k, v, slot);
  else if (kv.dtype == DType::kBf16) storeKvOf<uint16_t>(kv, k, v, slot);
  else storeQuants<V>(kv, k, v, slot);
}

}  // namespace
}  // namespace skein

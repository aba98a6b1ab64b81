// Scores that depend on the distance of two tokens, for a few rows of one head. The keys of a step are neighbours in a table too, so that
// a row's part of it is read like the keys:
//
//   keys k       [headDim][32]          positions  s ... s + 31
//   table rows   [headDim][stride]      columns    zero + s - row ... + 31, one further down for the next row
#pragma once
#include "kernels/attention_products.h"

namespace skein {
namespace {

// First column of a pair's part of a table.
inline int64_t firstColumn(const Rows& rows, int pair, int stepStart) {
  return rows.args.relative->zero + stepStart - rows.args.firstPosition - rows.rowOf(pair);
}

// Computes scores[p * 32 ..] = q[p] . K + q[p] . keys + queries . K for N (row, head) pairs: for each dimension d, in ascending order,
// the sum gets k[d] * (q[d] + queries[d]), then q[d] * keys[d].
template <class V, int N>
[[gnu::noinline]] void relativeScoreTile(const float* const* q, const float* kStep, const float* const* queries,
                                         const float* const* keys, int64_t stride, int headDim, float* scores) {
  constexpr int kVectors = kStepTokens / V::W;
  typename V::F acc[N][kVectors];
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) acc[p][i] = V::set1(0.0f);
  for (int d = 0; d < headDim; d++) {
    SKEIN_UNROLL(8)
    for (int i = 0; i < kVectors; i++) {
      const auto k = V::load(kStep + d * kStepTokens + i * V::W);
      SKEIN_UNROLL(8)
      for (int p = 0; p < N; p++) {
        const int64_t at = d * stride + i * V::W;
        const auto a = V::set1(q[p][d]);
        const auto sum = V::fma(k, V::add(a, V::load(queries[p] + at)), acc[p][i]);
        acc[p][i] = V::fma(a, V::load(keys[p] + at), sum);
      }
    }
  }
  SKEIN_UNROLL(8)
  for (int p = 0; p < N; p++) SKEIN_UNROLL(8)
  for (int i = 0; i < kVectors; i++) V::store(scores + p * kStepTokens + i * V::W, acc[p][i]);
}

template <class V, int N>
void relativeScores(const Rows& rows, int pair, int stepStart, const float* kStep, float* scores) {
  const RelativeScores& table = *rows.args.relative;
  const int64_t ofHead = int64_t(rows.kvHead) * rows.headDim() * table.stride;
  const float *q[N], *queries[N], *keys[N];
  for (int p = 0; p < N; p++) {
    const int64_t at = ofHead + firstColumn(rows, pair + p, stepStart);
    q[p] = rows.query(pair + p, false);
    queries[p] = table.queries + at;
    keys[p] = table.keys + at;
  }
  relativeScoreTile<V, N>(q, kStep, queries, keys, table.stride, rows.headDim(), scores);
}

// Scales the scores of N pairs and adds their biases, so that softmaxStep takes them with a scale of 1.
template <class V, int N>
[[gnu::noinline]] void addBiases(const Rows& rows, int pair, int stepStart, float scale, float* scores) {
  const RelativeScores& table = *rows.args.relative;
  for (int p = 0; p < N; p++) {
    const float* biases = table.biases + rows.kvHead * table.stride + firstColumn(rows, pair + p, stepStart);
    for (int i = 0; i < kStepTokens; i += V::W) {
      float* at = scores + p * kStepTokens + i;
      V::store(at, V::fma(V::load(at), V::set1(scale), V::load(biases + i)));
    }
  }
}

}  // namespace
}  // namespace skein

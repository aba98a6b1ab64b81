// Work of layers that keep a state of a sequence: gates, short convolutions, and the gated delta rule. Tokens are computed one after
// the other, each column in a lane of its own, so the bits depend neither on how a sequence is cut into chunks nor on the width of a
// vector, but for the lengths of queries and keys.
#pragma once
#include <cmath>

#include "kernels/math.h"

namespace skein {
namespace {

template <class V>
void gateRow(float* x, const float* by, Activation activation, int32_t n) {
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    const auto factor = activate<V>(activation, loadHead<V>(by + i, lanes, 0.0f));
    storeHead<V>(x + i, lanes, V::mul(loadHead<V>(x + i, lanes, 0.0f), factor));
  }
}

template <class V>
void shortConvRow(const ConvArgs& args, int32_t row) {
  for (int i = 0; i < args.n; i += V::W) {
    const int lanes = args.n - i < V::W ? args.n - i : V::W;
    auto sum = args.bias ? loadHead<V>(args.bias + i, lanes, 0.0f) : V::set1(0.0f);
    for (int tap = 0; tap < args.taps; tap++) {
      const float* x = args.input(row - (args.taps - 1) + tap);
      if (x == nullptr) continue;  // before the sequence's first token
      sum = V::fma(loadHead<V>(args.weight + int64_t(tap) * args.n + i, lanes, 0.0f), loadHead<V>(x + i, lanes, 0.0f), sum);
    }
    storeHead<V>(args.y + row * args.ldy + i, lanes, activate<V>(args.activation, sum));
  }
}

// y = x * factor / sqrt(sum of x^2 + epsilon)
template <class V>
void scaledUnit(const float* x, int32_t n, float epsilon, float factor, float* y) {
  const auto inverse = V::set1(factor / __builtin_sqrtf(sumOfSquares<V>(x, n) + epsilon));
  for (int i = 0; i < n; i += V::W) {
    const int lanes = n - i < V::W ? n - i : V::W;
    storeHead<V>(y + i, lanes, V::mul(loadHead<V>(x + i, lanes, 0.0f), inverse));
  }
}

// Computes columns [begin, begin + Count * W) of the value, of which `columns` are there, for one token.
//
//   state [keyDim x valueDim]   | column 0 | column 1 | ...      each column is a lane: its sums go over ascending keys
template <class V, int Count>
inline void deltaColumns(const DeltaArgs& args, const float* q, const float* k, const float* v, float decay, float beta,
                         int32_t begin, float* y) {
  using F = typename V::F;
  const int32_t ld = args.valueDim;
  const int32_t left = ld - begin;
  const auto lanes = [&](int i) { return left - i * V::W < V::W ? left - i * V::W : V::W; };
  const F kept = V::set1(decay);
  F sums[Count];
  for (int i = 0; i < Count; i++) sums[i] = V::set1(0.0f);
  const float* from = args.state + begin;
  for (int32_t key = 0; key < args.keyDim; key++, from += ld) {
    const F factor = V::set1(k[key]);
    for (int i = 0; i < Count; i++)
      sums[i] = V::fma(V::mul(loadHead<V>(from + i * V::W, lanes(i), 0.0f), kept), factor, sums[i]);
  }
  F change[Count];
  for (int i = 0; i < Count; i++) {
    change[i] = V::mul(V::sub(loadHead<V>(v + begin + i * V::W, lanes(i), 0.0f), sums[i]), V::set1(beta));
    sums[i] = V::set1(0.0f);
  }
  float* at = args.state + begin;
  for (int32_t key = 0; key < args.keyDim; key++, at += ld) {
    const F factor = V::set1(k[key]), query = V::set1(q[key]);
    for (int i = 0; i < Count; i++) {
      const F next = V::fma(factor, change[i], V::mul(loadHead<V>(at + i * V::W, lanes(i), 0.0f), kept));
      storeHead<V>(at + i * V::W, lanes(i), next);
      sums[i] = V::fma(next, query, sums[i]);
    }
  }
  for (int i = 0; i < Count; i++) storeHead<V>(y + begin + i * V::W, lanes(i), sums[i]);
}

inline double softplusOf(float a, float bias) {
  const double x = double(a) + double(bias);
  return x > 30 ? x : std::log1p(std::exp(x));
}

// Factors of a token, in double precision: how much of the state it keeps, and how much of its change it takes over.
inline float keptShare(float a, float bias, float decay) {
  return float(std::exp(-std::exp(double(decay)) * softplusOf(a, bias)));
}
inline float sigmoidOf(float x) { return float(1 / (1 + std::exp(-double(x)))); }

template <class V>
void gatedDelta(const DeltaArgs& args, int32_t begin, int32_t end) {
  constexpr int kColumns = 4;
  float q[kMostKeyDim], k[kMostKeyDim];
  const float scale = 1.0f / __builtin_sqrtf(float(args.keyDim));
  for (int32_t row = begin; row < end; row++) {
    const float* at = args.qkv + row * args.ldqkv;
    scaledUnit<V>(at + args.query, args.keyDim, args.epsilon, scale, q);
    scaledUnit<V>(at + args.key, args.keyDim, args.epsilon, 1.0f, k);
    const float* gates = args.gates + row * args.ldgates;
    const float kept = keptShare(gates[args.valueHeads], args.decayBias, args.decay), beta = sigmoidOf(gates[0]);
    float* y = args.y + row * args.ldy;
    int32_t column = 0;
    for (; column + kColumns * V::W <= args.valueDim; column += kColumns * V::W)
      deltaColumns<V, kColumns>(args, q, k, at + args.value, kept, beta, column, y);
    for (; column < args.valueDim; column += V::W)
      deltaColumns<V, 1>(args, q, k, at + args.value, kept, beta, column, y);
  }
}

}  // namespace
}  // namespace skein

// The selective scan of Mamba2: tokens are computed one after the other, each column of a head in a lane of its own, in ascending rows of
// the state. So the bits depend neither on how a sequence is cut into chunks nor on the width of a vector.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/math.h"
#include "kernels/states.h"

namespace skein {
namespace {

// Computes columns [begin, begin + Count * W) of the head, of which `columns` are there, for one token.
//
//   state [stateDim x headDim]   | column 0 | column 1 | ...
template <class V, int Count>
inline void scanColumns(const ScanArgs& args, int64_t row, float kept, float step, int32_t begin) {
  using F = typename V::F;
  const int32_t ld = args.headDim, left = ld - begin;
  const auto lanes = [&](int i) { return left - i * V::W < V::W ? left - i * V::W : V::W; };
  const float *x = args.x + row * args.ldx + begin, *b = args.b + row * args.ldx, *c = args.c + row * args.ldx;
  const F share = V::set1(kept);
  F change[Count], sums[Count];
  for (int i = 0; i < Count; i++) {
    change[i] = V::mul(loadHead<V>(x + i * V::W, lanes(i), 0.0f), V::set1(step));
    sums[i] = V::set1(0.0f);
  }
  float* at = args.state + begin;
  for (int32_t n = 0; n < args.stateDim; n++, at += ld) {
    const F in = V::set1(b[n]), out = V::set1(c[n]);
    for (int i = 0; i < Count; i++) {
      const F next = V::fma(in, change[i], V::mul(loadHead<V>(at + i * V::W, lanes(i), 0.0f), share));
      storeHead<V>(at + i * V::W, lanes(i), next);
      sums[i] = V::fma(next, out, sums[i]);
    }
  }
  float* y = args.y + row * args.ldy + begin;
  for (int i = 0; i < Count; i++)
    storeHead<V>(y + i * V::W, lanes(i),
                 V::fma(V::set1(args.skip), loadHead<V>(x + i * V::W, lanes(i), 0.0f), sums[i]));
}

template <class V>
void selectiveScan(const ScanArgs& args, int32_t begin, int32_t end) {
  constexpr int kColumns = 4;
  for (int64_t row = begin; row < end; row++) {
    const double softplus = softplusOf(args.steps[row * args.ldsteps], args.stepBias);
    const float step = std::clamp(float(softplus), args.leastStep, args.mostStep);
    const float kept = float(std::exp(double(step) * double(args.rate)));
    int32_t column = 0;
    for (; column + kColumns * V::W <= args.headDim; column += kColumns * V::W)
      scanColumns<V, kColumns>(args, row, kept, step, column);
    for (; column < args.headDim; column += V::W) scanColumns<V, 1>(args, row, kept, step, column);
  }
}

}  // namespace
}  // namespace skein

// Register-only loops of the GEMM's instruction mix: what "peak" means in the micro-benchmark.
#pragma once
#include <cstdint>

namespace skein {
namespace {

// Runs `iterations` steps of the tallest tile with its operands in registers; the result keeps the work alive.
// One step is 2 * kTileRows vectors of fused multiply-adds.
template <class V>
__attribute__((noinline)) float peakLoop(int64_t iterations) {
  constexpr int kChains = 2 * V::kTileRows;
  typename V::F sum[kChains];
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) sum[i] = V::set1(float(i));
  const auto a = V::set1(0.999f);
  const auto b = V::set1(0.001f);
  for (int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) sum[i] = V::fma(sum[i], a, b);
  }
  auto total = sum[0];
#pragma GCC unroll 32
  for (int i = 1; i < kChains; ++i) total = V::add(total, sum[i]);
  return V::reduceAdd(total);
}

}  // namespace

float avx2Peak(int64_t iterations);
float avx512Peak(int64_t iterations);
}  // namespace skein

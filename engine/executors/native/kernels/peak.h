// Register-only loops of the GEMMs' instruction mixes, which measure the "peak" of the micro-benchmark.
#pragma once
#include <cstdint>

#include "kernels/pairs_of_rows.h"
#include "kernels/quantized_panels.h"
#include "kernels/row_pairs.h"

namespace skein {
namespace {

// Runs about `iterations` steps of the tallest tile with its operands in registers; the result keeps the work alive.
// One step is 2 * kTileRows vectors of fused multiply-adds.
template <class V>
__attribute__((noinline)) float floatPeakLoop(int64_t iterations) {
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

// The integer sums of kChains vectors over `steps` steps of four k, in kParts parts each.
template <class V, DType D, int kParts, int kChains>
  requires(!HasSquares<V>)
[[gnu::always_inline]] inline void peakSums(int steps, typename V::I w, typename V::I& a, typename V::I (&sum)[kChains]) {
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) sum[i] = V::kept(V::set1I(0));
  for (int step = 0; step < steps * kParts; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) {
      a = V::kept(a);  // otherwise one product would serve all chains
      sum[i] = D == DType::kInt8 ? V::dot8(sum[i], w, a) : V::dot4(sum[i], w, a);
    }
  }
}

// The same by products of two rows, whose sums are two of the vectors.
template <HasSquares V, DType D, int kParts, int kChains>
[[gnu::always_inline]] inline void peakSums(int steps, typename V::I w, typename V::I&, typename V::I (&sum)[kChains]) {
  constexpr int kPairs = kChains / 2;
  const uint8_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  auto rows = V::rowPair(ones, ones);
  const auto weights = V::weightsOf(w, w, 0);
  typename V::Squares squares[kPairs];
#pragma GCC unroll 32
  for (int p = 0; p < kPairs; ++p) squares[p] = V::squaresOf(V::kept(V::set1I(0)), V::set1I(0));
  for (int step = 0; step < steps; step += 2) {
#pragma GCC unroll 32
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int i = 0; i < V::kSquares; ++i) {
        rows = V::kept(rows);
        squares[p].of[i] = V::addSquare(squares[p].of[i], rows, weights);
      }
    }
  }
#pragma GCC unroll 32
  for (int p = 0; p < kPairs; ++p) sum[2 * p] = V::evenRow(squares[p]), sum[2 * p + 1] = V::oddRow(squares[p]);
}

// Like floatPeakLoop, with the dot products of quantised weights, whose sums are scaled and added up after each group of
// 32, that is after eight steps of four k.
template <class V, DType D>
__attribute__((noinline)) float integerPeakLoop(int64_t iterations) {
  // Uses a third fewer chains than the tile, and as many more steps: the other registers hold values that the tile
  // keeps in memory.
  constexpr int kChains = 2 * V::kTileRows * 2 / 3, kTotals = kChains / 2;
  constexpr int kParts = D == DType::kInt8 ? V::kInt8Parts : 1;
  constexpr int kSums = D == DType::kQ6K ? 2 : 1;  // sums of a group
  typename V::F total[kTotals];
#pragma GCC unroll 32
  for (int i = 0; i < kTotals; ++i) total[i] = V::set1(0.0f);
  const auto scale = V::set1(0.5f), factor = V::set1(0.25f);
  const auto w = V::set1I(0x01020304);
  auto a = V::set1I(0x01010101);
  [[maybe_unused]] const auto multiples = V::multiplesOf(V::multipleWord(3));
  const uint8_t ones[V::W] = {1};
  [[maybe_unused]] const auto wholeScale = V::byteScales(ones);
  [[maybe_unused]] typename V::Scale weighed[kChains] = {};
  for (int64_t n = 0; n < iterations * 3 / 2; n += kGroup / 4) {
    typename V::I sum[kChains];
    for (int part = 0; part < kSums; ++part) {
      peakSums<V, D, kParts>(kGroup / 4 / kSums, w, a, sum);
      if constexpr (kSums == 1) continue;
#pragma GCC unroll 32
      for (int i = 0; i < kChains; ++i)
        weighed[i] = part == 0 ? V::weigh(sum[i], wholeScale) : V::addWeighed(weighed[i], sum[i], wholeScale);
    }
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) {
      auto& y = total[i % kTotals];
      if constexpr (D == DType::kInt8) y = V::fma(V::toFloat(sum[i]), V::mul(scale, factor), y);
      else if constexpr (kSums == 2) y = V::fma(V::mul(V::floatOf(weighed[i]), scale), factor, V::fma(scale, factor, y));
      else if constexpr (D == DType::kQ5_0) y = V::fma(V::scaled4(sum[i], multiples), scale, y);
      else y = V::fma(V::scaled4(sum[i], multiples), scale, V::fma(scale, factor, y));
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < kTotals; ++i) total[0] = V::add(total[0], total[i]);
  return V::reduceAdd(total[0]);
}

// Like floatPeakLoop, with dot products of pairs of bf16.
template <class V>
__attribute__((noinline)) float pairsPeakLoop(int64_t iterations) {
  constexpr int kChains = 2 * V::kTileRows;
  typename V::F sum[kChains];
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) sum[i] = V::set1(float(i));
  auto w = V::set1I(0x3c003c00), a = V::set1I(0x3c013c01);
  for (int64_t n = 0; n < iterations; ++n) {
    a = V::kept(a);
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) sum[i] = V::dotPairs(sum[i], a, w);
  }
#pragma GCC unroll 32
  for (int i = 1; i < kChains; ++i) sum[0] = V::add(sum[0], sum[i]);
  return V::reduceAdd(sum[0]);
}

// The same by products of two rows: a step is two k, one product four.
template <MultipliesRowPairs V>
__attribute__((noinline)) float pairsPeakLoop(int64_t iterations) {
  constexpr int kSquares = V::kTileRows;  // of two rows and half a panel
  typename V::FloatSquares sum[kSquares];
#pragma GCC unroll 32
  for (int s = 0; s < kSquares; ++s) sum[s] = V::emptySquares();
  const auto w = V::set1I(0x3c003c00);
  const int32_t x[2] = {0x3c013c01, 0x3c013c01};
  auto rows = V::bf16RowPair(x, x);
  for (int64_t n = 0; n < iterations; n += 2) {
    rows = V::kept(rows);
#pragma GCC unroll 32
    for (int s = 0; s < kSquares; ++s) {
#pragma GCC unroll 4
      for (int i = 0; i < V::kSquares; ++i) V::addSquare(sum[s], rows, w, w, i);
    }
  }
  auto total = V::rowOf(sum[0], 0);
#pragma GCC unroll 32
  for (int s = 1; s < kSquares; ++s) total = V::add(total, V::rowOf(sum[s], 0));
  return V::reduceAdd(total);
}

template <class V>
float peakLoop(DType dtype, int64_t iterations) {
  switch (formOf(dtype)) {
    case DType::kInt8: return integerPeakLoop<V, DType::kInt8>(iterations);
    case DType::kQ6K: return integerPeakLoop<V, DType::kQ6K>(iterations);
    case DType::kInt4:
    case DType::kQ5_1: return integerPeakLoop<V, DType::kInt4>(iterations);
    case DType::kQ5_0:
    case DType::kMxfp4: return integerPeakLoop<V, DType::kQ5_0>(iterations);
    default: break;
  }
  return floatPeakLoop<V>(iterations);
}

}  // namespace

float avx2Peak(DType dtype, int64_t iterations);
float avxVnniPeak(DType dtype, int64_t iterations);
float avx512Peak(DType dtype, int64_t iterations);
float avx512VnniPeak(DType dtype, int64_t iterations);
float avx512Bf16Peak(int64_t iterations);  // of pairs of bf16
float amxPeak(DType dtype, int64_t iterations);  // of tiles of bf16
float neonPeak(DType dtype, int64_t iterations);
float neonDotPeak(DType dtype, int64_t iterations);
float neonI8mmPeak(DType dtype, int64_t iterations);
float neonBf16Peak(int64_t iterations);  // of pairs of bf16
}  // namespace skein

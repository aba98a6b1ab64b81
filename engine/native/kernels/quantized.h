// GEMM over 8- and 4-bit weights in groups of 32 along k, times activations quantised to 8 bits in the same groups.
//
// A panel holds NR = 2 W outputs, group after group:
//
//   int8  NR scales (f16)                     | 8 steps of 4 k x NR outputs      | next group
//   int4  NR scales (f16) | NR minima (f16)   | 4 double steps of 8 k x NR       | next group
//
//   a step    lane 0: w[0][k .. k+3]   lane 1: w[1][k .. k+3]   ..   4 bytes a lane, W lanes a vector, 2 vectors
//   (int4: the low nibbles are the step 2 s, the high ones the step 2 s + 1)
//
// Activations lie group by group, in a block for each row, so that the rows of a tile are neighbours:
//
//   group 0: row 0 [ scale | sum | 32 quants ]  row 1 [ .. ] ..   group 1: row 0 [ .. ] ..
//
// The sum over a group is an integer and exact, in whatever order and with whatever instructions it is made. The groups
// are then added in ascending order, each by one fused multiply-add in f32 (int4: and one for the minimum):
//
//   y = fma(float(sum), weightScale * activationScale, y)      y = fma(weightMinimum, activationScale * sumOfQuants, y)
#pragma once
#include "kernels/gemm.h"
#include "kernels/half.h"

namespace skein {
namespace {

inline int groupsOf(int k) { return (k + kGroup - 1) / kGroup; }

// Quants of activations for int8 weights are 16 bits wide where the processor multiplies pairs of those.
template <class V, DType D>
constexpr int kQuantBytes = D == DType::kInt8 ? V::kInt8Parts : 1;
template <class V, DType D>
constexpr int kActivationBytes = 8 + kGroup * kQuantBytes<V, D>;  // of one block

template <class V, DType D>
constexpr int kScaleBytes = kPanelWidth<V> * (D == DType::kInt4 ? 4 : 2);
template <class V, DType D>
constexpr int kPanelGroupBytes = kScaleBytes<V, D> + kPanelWidth<V> * (D == DType::kInt4 ? kGroup / 2 : kGroup);

inline int32_t loadWord(const uint8_t* p) {
  int32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}
inline float loadFloat(const uint8_t* p) {
  float value;
  __builtin_memcpy(&value, p, 4);
  return value;
}

// Magnitudes below this (2^-100) are nothing beside any weight; their reciprocal could overflow.
constexpr float kSmallestMagnitude = 0x1p-100f;

// Adding 1.5 * 2^23 rounds to a whole number, ties to even, and leaves it in the low bits.
constexpr float kRound = 12582912.0f;

// One block: quants of x[0 .. 31]. A group that holds NaN or infinity gets the scale NaN and so makes its row's outputs
// NaN, and nobody else's.
template <class V, DType D>
inline void quantizeGroup(const float* x, uint8_t* block) {
  using F = typename V::F;
  constexpr int kVectors = kGroup / V::W;
  const F zero = V::set1(0.0f);
  F values[kVectors], greatest = zero, finite = zero;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kVectors; i++) {
    values[i] = V::load(x + i * V::W);
    greatest = V::max(greatest, V::max(values[i], V::sub(zero, values[i])));
    finite = V::fma(values[i], zero, finite);  // NaN as soon as one is not
  }
  const bool isFinite = !V::anyNan(finite);
  const float maximum = V::reduceMax(greatest);
  if (!isFinite || maximum < kSmallestMagnitude) {
    __builtin_memset(block, 0, kActivationBytes<V, D>);
    const float scale = isFinite ? 0.0f : __builtin_nanf("");
    __builtin_memcpy(block, &scale, 4);
    return;
  }
  const float scale = maximum / 127.0f;
  const F inverse = V::set1(127.0f / maximum), round = V::set1(kRound);
  F sums = zero;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kVectors; i++) {
    values[i] = V::add(V::mul(values[i], inverse), round);
    sums = V::add(sums, V::sub(values[i], round));
  }
  const float sum = V::reduceAdd(sums);  // of whole numbers: exact
  __builtin_memcpy(block, &scale, 4);
  if constexpr (D == DType::kInt8) {
    const int32_t whole = int32_t(sum);
    __builtin_memcpy(block + 4, &whole, 4);
  } else {
    const float scaledSum = scale * sum;
    __builtin_memcpy(block + 4, &scaledSum, 4);
  }
  if constexpr (kQuantBytes<V, D> == 2)
    V::storeWide(values, block + 8);
  else
    V::storeBytes(values, block + 8);
}

template <class V, DType D>
void quantizeRowOf(const float* x, int32_t k, int32_t row, int32_t rows, uint8_t* blocks) {
  uint8_t* block = blocks + int64_t(row) * kActivationBytes<V, D>;
  const int64_t stride = int64_t(rows) * kActivationBytes<V, D>;
  int i = 0;
  for (; i + kGroup <= k; i += kGroup, block += stride) quantizeGroup<V, D>(x + i, block);
  if (i == k) return;
  float tail[kGroup] = {};
  __builtin_memcpy(tail, x + i, size_t(k - i) * 4);
  quantizeGroup<V, D>(tail, block);
}

template <class V>
void quantizeRow(DType weights, const float* x, int32_t k, int32_t row, int32_t rows, void* blocks) {
  if (weights == DType::kInt8)
    quantizeRowOf<V, DType::kInt8>(x, k, row, rows, static_cast<uint8_t*>(blocks));
  else
    quantizeRowOf<V, DType::kInt4>(x, k, row, rows, static_cast<uint8_t*>(blocks));
}

template <class V>
size_t quantizedBytes(DType weights, int32_t rows, int32_t k) {
  const int block = weights == DType::kInt8 ? kActivationBytes<V, DType::kInt8> : kActivationBytes<V, DType::kInt4>;
  return size_t(rows) * groupsOf(k) * block;
}

// Integer sums of M rows and one panel over one group.
template <class V, DType D, int M>
[[gnu::always_inline]] inline void groupSums(const uint8_t* x, const uint8_t* weights, typename V::I (&sum)[M][2]) {
  using I = typename V::I;
  constexpr int kBlock = kActivationBytes<V, D>;
  constexpr int kVector = 4 * V::W;  // bytes
  constexpr size_t kAhead = 2048;
  if constexpr (D == DType::kInt8) {
SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) sum[m][0] = sum[m][1] = V::start8(loadWord(x + m * kBlock + 4));
SKEIN_UNROLL(8)
    for (int s = 0; s < kGroup / 4; s++) {
      const uint8_t* w = weights + s * 2 * kVector;
      __builtin_prefetch(w + kAhead);
      if constexpr (2 * kVector > 64) __builtin_prefetch(w + kAhead + 64);
SKEIN_UNROLL(2)
      for (int part = 0; part < V::kInt8Parts; part++) {
        const I low = V::weights8(w, part), high = V::weights8(w + kVector, part);
SKEIN_UNROLL(16)
        for (int m = 0; m < M; m++) {
          const I a = V::set1I(loadWord(x + m * kBlock + 8 + (s * V::kInt8Parts + part) * 4));
          sum[m][0] = V::dot8(sum[m][0], low, a);
          sum[m][1] = V::dot8(sum[m][1], high, a);
        }
      }
    }
  } else {
SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) sum[m][0] = sum[m][1] = V::set1I(0);
SKEIN_UNROLL(4)
    for (int s = 0; s < kGroup / 8; s++) {
      const uint8_t* w = weights + s * 2 * kVector;
      __builtin_prefetch(w + kAhead);
      if constexpr (2 * kVector > 64) __builtin_prefetch(w + kAhead + 64);
SKEIN_UNROLL(2)
      for (int part = 0; part < 2; part++) {
        const I low = V::weights4(w, part), high = V::weights4(w + kVector, part);
SKEIN_UNROLL(16)
        for (int m = 0; m < M; m++) {
          const I a = V::set1I(loadWord(x + m * kBlock + 8 + (2 * s + part) * 4));
          sum[m][0] = V::dot4(sum[m][0], low, a);
          sum[m][1] = V::dot4(sum[m][1], high, a);
        }
      }
    }
SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      sum[m][0] = V::finish4(sum[m][0]);
      sum[m][1] = V::finish4(sum[m][1]);
    }
  }
}

// tile[m * NR ..] = the products of M rows and one panel. The f32 sums stay in the first-level cache; the registers are
// the integer sums'.
template <class V, DType D, int M>
void quantizedSums(const uint8_t* x, int64_t groupStride, const uint8_t* panel, int groups, float* tile) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  for (int i = 0; i < M * NR; i += V::W) V::store(tile + i, V::set1(0.0f));
  for (int g = 0; g < groups; g++) {
    typename V::I sum[M][2];
    groupSums<V, D, M>(x, panel + kScaleBytes<V, D>, sum);
    asm volatile("" ::: "memory");  // or the compiler loads the tile above, only to spill it
const F scales[2] = {V::loadHalf(panel), V::loadHalf(panel + 2 * V::W)};
    F minima[2];
    if constexpr (D == DType::kInt4) {
      minima[0] = V::loadHalf(panel + 2 * NR);
      minima[1] = V::loadHalf(panel + 2 * NR + 2 * V::W);
    }
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const uint8_t* block = x + m * kActivationBytes<V, D>;
      float* to = tile + m * NR;
      const F scale = V::set1(loadFloat(block));
      F low = V::fma(V::toFloat(sum[m][0]), V::mul(scales[0], scale), V::load(to));
      F high = V::fma(V::toFloat(sum[m][1]), V::mul(scales[1], scale), V::load(to + V::W));
      if constexpr (D == DType::kInt4) {
        const F total = V::set1(loadFloat(block + 4));
        low = V::fma(minima[0], total, low);
        high = V::fma(minima[1], total, high);
      }
      V::store(to, low);
      V::store(to + V::W, high);
    }
    x += groupStride;
    panel += kPanelGroupBytes<V, D>;
  }
}

template <class V>
using QuantizedSumsFn = void (*)(const uint8_t*, int64_t, const uint8_t*, int, float*);

template <class V, DType D, int M>
constexpr QuantizedSumsFn<V> quantizedTile() {
  if constexpr (M <= V::kTileRows)
    return quantizedSums<V, D, M>;
  else
    return nullptr;
}

template <class V, DType D>
QuantizedSumsFn<V> quantizedSumsFor(int rows) {
  static constexpr QuantizedSumsFn<V> table[] = {
      nullptr,                  quantizedTile<V, D, 1>(), quantizedTile<V, D, 2>(),  quantizedTile<V, D, 3>(),
      quantizedTile<V, D, 4>(), quantizedTile<V, D, 5>(), quantizedTile<V, D, 6>(),  quantizedTile<V, D, 7>(),
      quantizedTile<V, D, 8>(), quantizedTile<V, D, 9>(), quantizedTile<V, D, 10>(), quantizedTile<V, D, 11>(),
      quantizedTile<V, D, 12>()};
  return table[rows];
}

// run(rows, firstRow, panel) for every tile, panel by panel over a block of rows that stays in the cache.
template <class V, class Run>
void forEachQuantizedTile(int k, int rowBegin, int rowEnd, int panelBegin, int panelEnd, Run run) {
  const int block = rowBlock(k);
  for (int first = rowBegin; first < rowEnd; first += block) {
    const int last = rowEnd - first < block ? rowEnd : first + block;
    for (int panel = panelBegin; panel < panelEnd; panel++)
      forEachRowTile<V>(first, last, [&](int row, int rows) { run(row, rows, panel); });
  }
}

template <class V, DType D>
void quantizedGemmOf(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const uint8_t* blocks = static_cast<const uint8_t*>(args.quantized);
  const int64_t stride = int64_t(args.quantizedRows) * kActivationBytes<V, D>;
  float tile[kMaxTileFloats];
  forEachQuantizedTile<V>(args.k, rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + int64_t(panel) * groups * kPanelGroupBytes<V, D>;
    quantizedSumsFor<V, D>(rows)(blocks + int64_t(row) * kActivationBytes<V, D>, stride, weights, groups, tile);
    const int column = panel * NR;
    const int count = args.n - column < NR ? args.n - column : NR;
    for (int m = 0; m < rows; m++) finishColumns<V>(args, row + m, column, count, tile + m * NR);
  });
}

template <class V, DType D>
void quantizedGatedGemmOf(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const int64_t panelBytes = int64_t(groups) * kPanelGroupBytes<V, D>;
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const uint8_t* blocks = static_cast<const uint8_t*>(args.quantized);
  const int64_t stride = int64_t(args.quantizedRows) * kActivationBytes<V, D>;
  float tile[2 * kMaxTileFloats];
  forEachQuantizedTile<V>(args.k, rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* gate = packed + 2 * panel * panelBytes;
    const uint8_t* x = blocks + int64_t(row) * kActivationBytes<V, D>;
    float* up = tile + rows * NR;
    quantizedSumsFor<V, D>(rows)(x, stride, gate, groups, tile);
    quantizedSumsFor<V, D>(rows)(x, stride, gate + panelBytes, groups, up);
    const int column = panel * NR;
    const int count = args.n - column < NR ? args.n - column : NR;
    for (int m = 0; m < rows; m++) finishGated<V>(args, row + m, column, count, tile + m * NR, up + m * NR);
  });
}

}  // namespace
}  // namespace skein

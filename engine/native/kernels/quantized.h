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
// Activations lie row by row, each row as its groups one after another:
//
//   int8 weights  row 0: [ scale | sum of quants | 32 quants ] [ .. ] ..                 row 1: ..
//   int4 weights  a unit for each row, then  row 0: [ multiple | multiple x sum of quants | 32 quants ] [ .. ] ..
//
// The sum over a group is an integer and exact, in whatever order and with whatever instructions it is made. The groups
// are then added in ascending order, in f32:
//
//   int8   y = fma(float(sum), weightScale * activationScale, y)
//   int4   y = fma(weightMinimum, multiple * sumOfQuants, y), y = fma(float(sum * multiple), weightScale, y); at last y * unit
//
// With int4 the scales of a row's groups are whole multiples of one unit: the instruction that adds the two halves of a
// sum then multiplies it by the scale as well.
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

// Quantised activations of `rows` rows: int4's units, then the blocks.
template <class V, DType D>
struct QuantizedRows {
  static constexpr int64_t unitBytes(int64_t rows) { return D == DType::kInt4 ? (rows * 4 + 63) / 64 * 64 : 0; }
  const uint8_t* units;
  const uint8_t* blocks;
  int64_t rowStride;

  QuantizedRows(const void* base, int32_t rows, int32_t k)
      : units(static_cast<const uint8_t*>(base)), blocks(units + unitBytes(rows)),
        rowStride(int64_t(groupsOf(k)) * kActivationBytes<V, D>) {}
  const uint8_t* block(int row, int group) const {
    return blocks + row * rowStride + group * kActivationBytes<V, D>;
  }
  float unit(int row) const { return loadFloat(units + 4 * row); }
};

// Greatest magnitude of 32 values; NaN where one is NaN or infinite.
template <class V>
inline float magnitudeOf(const float* x) {
  const typename V::F zero = V::set1(0.0f);
  typename V::F greatest = zero;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kGroup; i += V::W) greatest = V::greaterMagnitude(greatest, V::load(x + i));
  return V::anyNan(V::mul(greatest, zero)) ? __builtin_nanf("") : V::reduceMax(greatest);
}

// Quants x * inverse of one group; gives their sum.
template <class V, DType D>
inline float roundGroup(const float* x, float inverse, uint8_t* block) {
  using F = typename V::F;
  constexpr int kVectors = kGroup / V::W;
  const F factor = V::set1(inverse), round = V::set1(kRound);
  F values[kVectors], sums = V::set1(0.0f);
  SKEIN_UNROLL(4)
  for (int i = 0; i < kVectors; i++) {
    values[i] = V::add(V::mul(V::load(x + i * V::W), factor), round);
    sums = V::add(sums, V::sub(values[i], round));
  }
  if constexpr (kQuantBytes<V, D> == 2)
    V::storeWide(values, block + 8);
  else
    V::storeBytes(values, block + 8);
  return V::reduceAdd(sums);  // of whole numbers: exact
}

template <class V, DType D>
inline void emptyGroup(uint8_t* block, float scale) {
  __builtin_memset(block, 0, kActivationBytes<V, D>);
  __builtin_memcpy(block, &scale, 4);
}

// For int8 weights each group has its own scale. A group that holds NaN or infinity gets the scale NaN and so makes its
// row's outputs NaN, and nobody else's.
template <class V>
inline void quantizeGroup8(const float* x, uint8_t* block) {
  constexpr DType D = DType::kInt8;
  const float maximum = magnitudeOf<V>(x);
  if (!(maximum >= kSmallestMagnitude)) return emptyGroup<V, D>(block, maximum < kSmallestMagnitude ? 0.0f : maximum);
  const float scale = maximum / 127.0f;
  const int32_t sum = int32_t(roundGroup<V, D>(x, 127.0f / maximum, block));
  __builtin_memcpy(block, &scale, 4);
  __builtin_memcpy(block + 4, &sum, 4);
}

// For int4 weights a group's scale is a whole multiple of a unit that its row has, so that the integer sum can be
// multiplied by it: 127 * kUnits units are the row's greatest magnitude. 2 x 30480 x kUnits stays below 2^31.
constexpr float kUnits = 32767.0f;

template <class V>
inline void quantizeGroup4(const float* x, float maximum, float unitsPerValue, uint8_t* block) {
  constexpr DType D = DType::kInt4;
  if (maximum == 0.0f) return emptyGroup<V, D>(block, 0.0f);
  const float wanted = __builtin_ceilf(maximum * unitsPerValue * (1.0f / 127.0f));
  const float multiple = wanted < 1.0f ? 1.0f : wanted > kUnits ? kUnits : wanted;
  const float total = multiple * roundGroup<V, D>(x, unitsPerValue / multiple, block);
  const int32_t words = int32_t(multiple) * 0x10001;  // for both words of a sum
  __builtin_memcpy(block, &words, 4);
  __builtin_memcpy(block + 4, &total, 4);
}

// fn(values of group g, g): the last group is filled up with zeros.
template <class Fn>
inline void forEachGroup(const float* x, int32_t k, Fn fn) {
  const int whole = k / kGroup;
  for (int g = 0; g < whole; g++) fn(x + g * kGroup, g);
  if (whole * kGroup == k) return;
  float tail[kGroup] = {};
  __builtin_memcpy(tail, x + whole * kGroup, size_t(k - whole * kGroup) * 4);
  fn(tail, whole);
}

template <class V>
void quantizeRow8(const float* x, int32_t k, int32_t row, int32_t rows, uint8_t* quantized) {
  const QuantizedRows<V, DType::kInt8> to(quantized, rows, k);
  forEachGroup(x, k, [&](const float* values, int g) {
    quantizeGroup8<V>(values, quantized + (to.block(row, g) - quantized));
  });
}

// A group's greatest magnitude waits in its block for that of the row.
template <class V>
void quantizeRow4(const float* x, int32_t k, int32_t row, int32_t rows, uint8_t* quantized) {
  const QuantizedRows<V, DType::kInt4> to(quantized, rows, k);
  uint8_t* const blocks = quantized + (to.block(row, 0) - quantized);
  constexpr int kBlock = kActivationBytes<V, DType::kInt4>;
  float greatest = 0.0f;
  bool finite = true;
  forEachGroup(x, k, [&](const float* values, int g) {
    const float maximum = magnitudeOf<V>(values);
    finite = finite && maximum == maximum;
    greatest = maximum > greatest ? maximum : greatest;
    __builtin_memcpy(blocks + g * kBlock, &maximum, 4);
  });
  const bool empty = !finite || greatest < kSmallestMagnitude;
  const float unit = !finite ? __builtin_nanf("") : empty ? 0.0f : greatest / (127.0f * kUnits);
  __builtin_memcpy(quantized + 4 * row, &unit, 4);
  const float unitsPerValue = empty ? 0.0f : 127.0f * kUnits / greatest;
  forEachGroup(x, k, [&](const float* values, int g) {
    uint8_t* block = blocks + g * kBlock;
    if (empty) return emptyGroup<V, DType::kInt4>(block, 0.0f);
    quantizeGroup4<V>(values, loadFloat(block), unitsPerValue, block);
  });
}

template <class V>
void quantizeRow(DType weights, const float* x, int32_t k, int32_t row, int32_t rows, void* blocks) {
  if (weights == DType::kInt8)
    quantizeRow8<V>(x, k, row, rows, static_cast<uint8_t*>(blocks));
  else
    quantizeRow4<V>(x, k, row, rows, static_cast<uint8_t*>(blocks));
}

template <class V>
size_t quantizedBytes(DType weights, int32_t rows, int32_t k) {
  using Rows8 = QuantizedRows<V, DType::kInt8>;
  using Rows4 = QuantizedRows<V, DType::kInt4>;
  if (weights == DType::kInt8)
    return size_t(Rows8::unitBytes(rows)) + size_t(rows) * groupsOf(k) * kActivationBytes<V, DType::kInt8>;
  return size_t(Rows4::unitBytes(rows)) + size_t(rows) * groupsOf(k) * kActivationBytes<V, DType::kInt4>;
}

// Weights of one panel and group as the products take them: vectors of both halves of the panel by turns, and scales in
// f32. `Packed` takes them apart on the way; that is cheap for one tile. Where many tiles follow one another they are taken
// apart once, into memory of the first-level cache (`expandGroup`), with the same values.
template <class V, DType D>
constexpr int kParts = D == DType::kInt4 ? 2 : V::kInt8Parts;  // vectors of one packed vector
template <class V, DType D>
constexpr int kSteps = D == DType::kInt4 ? kGroup / 8 : kGroup / 4;  // packed vectors of a group, for each half

template <class V, DType D>
[[gnu::always_inline]] inline typename V::I weightsOf(const uint8_t* p, int part) {
  if constexpr (D == DType::kInt4)
    return V::weights4(p, part);
  else
    return V::weights8(p, part);
}

// Scales, then minima, of both halves.
template <class V, DType D>
constexpr int kScaleVectors = D == DType::kInt4 ? 4 : 2;

template <class V, DType D>
struct PackedGroups {
  static constexpr int kBytes = kPanelGroupBytes<V, D>;
  static constexpr int kAhead = 2048;
  static typename V::F scales(const uint8_t* group, int i) { return V::loadHalf(group + i * 2 * V::W); }
  static typename V::I weights(const uint8_t* group, int step, int part, int half) {
    return weightsOf<V, D>(group + kScaleBytes<V, D> + (2 * step + half) * 4 * V::W, part);
  }
  static void prefetch(const uint8_t* group, int step) {
    const uint8_t* p = group + kScaleBytes<V, D> + step * 8 * V::W + kAhead;
    __builtin_prefetch(p);
    if constexpr (8 * V::W > 64) __builtin_prefetch(p + 64);
  }
};

template <class V, DType D>
struct ExpandedGroups {
  static constexpr int kVector = 4 * V::W;
  static constexpr int kBytes = (kScaleVectors<V, D> + 2 * kSteps<V, D> * kParts<V, D>)*kVector;
  static typename V::F scales(const uint8_t* group, int i) {
    return V::load(reinterpret_cast<const float*>(group + i * kVector));
  }
  static constexpr int place(int step, int part, int half) {
    return (kScaleVectors<V, D> + (step * kParts<V, D> + part) * 2 + half) * kVector;
  }
  static typename V::I weights(const uint8_t* group, int step, int part, int half) {
    return V::loadI(group + place(step, part, half));
  }
  static void prefetch(const uint8_t*, int) {}
};

template <class V, DType D>
void expandGroup(const uint8_t* packed, uint8_t* expanded) {
  using From = PackedGroups<V, D>;
  using To = ExpandedGroups<V, D>;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kScaleVectors<V, D>; i++)
    V::store(reinterpret_cast<float*>(expanded + i * To::kVector), From::scales(packed, i));
  SKEIN_UNROLL(8)
  for (int step = 0; step < kSteps<V, D>; step++) {
    SKEIN_UNROLL(2)
    for (int part = 0; part < kParts<V, D>; part++) {
      V::storeI(expanded + To::place(step, part, 0), From::weights(packed, step, part, 0));
      V::storeI(expanded + To::place(step, part, 1), From::weights(packed, step, part, 1));
    }
  }
}

// Integer sums of M rows and one panel over one group.
template <class V, DType D, int M, class Groups>
[[gnu::always_inline]] inline void groupSums(const uint8_t* x, int64_t rowStride, const uint8_t* group, typename V::I (&sum)[M][2]) {
  using I = typename V::I;
SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++)
    sum[m][0] = sum[m][1] = D == DType::kInt8 ? V::start8(loadWord(x + m * rowStride + 4)) : V::set1I(0);
SKEIN_UNROLL(8)
  for (int step = 0; step < kSteps<V, D>; step++) {
    Groups::prefetch(group, step);
SKEIN_UNROLL(2)
    for (int part = 0; part < kParts<V, D>; part++) {
      const I low = Groups::weights(group, step, part, 0), high = Groups::weights(group, step, part, 1);
SKEIN_UNROLL(16)
      for (int m = 0; m < M; m++) {
        const I a = V::set1I(loadWord(x + m * rowStride + 8 + (step * kParts<V, D> + part) * 4));
        sum[m][0] = D == DType::kInt8 ? V::dot8(sum[m][0], low, a) : V::dot4(sum[m][0], low, a);
        sum[m][1] = D == DType::kInt8 ? V::dot8(sum[m][1], high, a) : V::dot4(sum[m][1], high, a);
      }
    }
  }
}

// Adds the products of M rows and `groups` groups of one panel to tile[m * NR ..]. The f32 sums stay in the first-level
// cache; the registers are the integer sums'.
template <class V, DType D, int M, class Groups>
void quantizedSums(const uint8_t* x, int64_t rowStride, const uint8_t* group, int groups, float* tile) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  for (int g = 0; g < groups; g++) {
    typename V::I sum[M][2];
    groupSums<V, D, M, Groups>(x, rowStride, group, sum);
    asm volatile("" ::: "memory");  // or the compiler loads the tile above, only to spill it
    F scales[2], minima[2];
    for (int half = 0; half < 2; half++) {
      scales[half] = Groups::scales(group, half);
      if constexpr (D == DType::kInt4) minima[half] = Groups::scales(group, 2 + half);
    }
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const uint8_t* block = x + m * rowStride;
      float* to = tile + m * NR;
      SKEIN_UNROLL(2)
      for (int half = 0; half < 2; half++) {
        F y = V::load(to + half * V::W);
        if constexpr (D == DType::kInt4) {
          y = V::fma(minima[half], V::set1(loadFloat(block + 4)), y);
          y = V::fma(V::scaled4(sum[m][half], loadWord(block)), scales[half], y);
        } else {
          y = V::fma(V::toFloat(sum[m][half]), V::mul(scales[half], V::set1(loadFloat(block))), y);
        }
        V::store(to + half * V::W, y);
      }
    }
    x += kActivationBytes<V, D>;
    group += Groups::kBytes;
  }
}

using QuantizedSumsFn = void (*)(const uint8_t*, int64_t, const uint8_t*, int, float*);

template <class V, DType D, int M, class Groups>
constexpr QuantizedSumsFn quantizedTile() {
  if constexpr (M <= V::kTileRows)
    return quantizedSums<V, D, M, Groups>;
  else
    return nullptr;
}

template <class V, DType D, class G>
QuantizedSumsFn quantizedSumsFor(int rows) {
  static constexpr QuantizedSumsFn table[] = {
      nullptr,
      quantizedTile<V, D, 1, G>(), quantizedTile<V, D, 2, G>(),  quantizedTile<V, D, 3, G>(),
      quantizedTile<V, D, 4, G>(), quantizedTile<V, D, 5, G>(),  quantizedTile<V, D, 6, G>(),
      quantizedTile<V, D, 7, G>(), quantizedTile<V, D, 8, G>(),  quantizedTile<V, D, 9, G>(),
      quantizedTile<V, D, 10, G>(), quantizedTile<V, D, 11, G>(), quantizedTile<V, D, 12, G>()};
  return table[rows];
}

// Rows whose sums and activations stay in the caches while the panels pass by.
constexpr int kQuantizedRowBlock = 96;
// What the expanded part of a panel may take of the first-level cache.
constexpr int kExpandedBytes = 12 << 10;
// Rows up to which the tiles are too few to make up for expanding.
template <class V>
constexpr int kPackedRows = 3 * V::kTileRows;

// The products of rows [row, row + rows), at most kQuantizedRowBlock, and one panel into sums[(r - row) * NR ..]. Calls
// done(first, count) for each tile of rows that is complete: its results leave for memory while the next tile computes.
template <class V, DType D, class Done>
void panelSums(const QuantizedRows<V, D>& x, int row, int rows, const uint8_t* panel, int groups, float* sums, Done done) {
  constexpr int NR = kPanelWidth<V>;
  const auto clear = [&](int first, int count) {
    for (int i = (first - row) * NR; i < (first - row + count) * NR; i += V::W) V::store(sums + i, V::set1(0.0f));
  };
  if (rows <= kPackedRows<V>) {
    return forEachRowTile<V>(row, row + rows, [&](int first, int count) {
      clear(first, count);
      quantizedSumsFor<V, D, PackedGroups<V, D>>(count)(x.block(first, 0), x.rowStride, panel, groups, sums + (first - row) * NR);
      done(first, count);
    });
  }
  using Expanded = ExpandedGroups<V, D>;
  alignas(64) uint8_t expanded[kExpandedBytes];
  constexpr int kMost = kExpandedBytes / Expanded::kBytes;
  const int parts = (groups + kMost - 1) / kMost;
  for (int part = 0, group = 0; part < parts; part++) {
    const int end = group + (groups - group + (parts - part) - 1) / (parts - part);
    for (int g = group; g < end; g++)
      expandGroup<V, D>(panel + int64_t(g) * kPanelGroupBytes<V, D>, expanded + (g - group) * Expanded::kBytes);
    // What is expanded next, of this panel or of the one behind it, comes while the tiles compute.
    const uint8_t* next = panel + int64_t(end) * kPanelGroupBytes<V, D>;
    const int nextBytes = (end - group) * kPanelGroupBytes<V, D>;
    forEachRowTile<V>(row, row + rows, [&](int first, int count) {
      const int from = int(int64_t(nextBytes) * (first - row) / rows), to = int(int64_t(nextBytes) * (first - row + count) / rows);
      for (int i = from; i < to; i += 64) __builtin_prefetch(next + i);
      if (part == 0) clear(first, count);
      quantizedSumsFor<V, D, Expanded>(count)(x.block(first, group), x.rowStride, expanded, end - group,
                                              sums + (first - row) * NR);
      if (part == parts - 1) done(first, count);
    });
    group = end;
  }
}

// run(first, rows, panel) for every block of rows and every panel.
template <class Run>
void forEachPanel(int rowBegin, int rowEnd, int panelBegin, int panelEnd, Run run) {
  for (int first = rowBegin; first < rowEnd; first += kQuantizedRowBlock) {
    const int rows = rowEnd - first < kQuantizedRowBlock ? rowEnd - first : kQuantizedRowBlock;
    for (int panel = panelBegin; panel < panelEnd; panel++) run(first, rows, panel);
  }
}

// Sums of int4 weights count in the units of their row.
template <class V, DType D>
inline void applyUnits(const QuantizedRows<V, D>& x, int row, int rows, float* sums) {
  if constexpr (D == DType::kInt4) {
    for (int m = 0; m < rows; m++, sums += kPanelWidth<V>) {
      const auto unit = V::set1(x.unit(row + m));
      V::store(sums, V::mul(V::load(sums), unit));
      V::store(sums + V::W, V::mul(V::load(sums + V::W), unit));
    }
  }
}

template <class V, DType D>
void quantizedGemmOf(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const QuantizedRows<V, D> x(args.quantized, args.quantizedRows, args.k);
  float sums[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + int64_t(panel) * groups * kPanelGroupBytes<V, D>;
    panelSums<V, D>(x, row, rows, weights, groups, sums, [&](int first, int count) {
      float* tile = sums + (first - row) * NR;
      applyUnits(x, first, count, tile);
      finishTile<V>(args, first, count, panel, tile, NR);
    });
  });
}

template <class V, DType D>
void quantizedGatedGemmOf(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const int64_t panelBytes = int64_t(groups) * kPanelGroupBytes<V, D>;
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const QuantizedRows<V, D> x(args.quantized, args.quantizedRows, args.k);
  float gate[kQuantizedRowBlock * NR], up[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + 2 * panel * panelBytes;
    const auto unitsOf = [&](float* sums) {
      return [&x, row, sums](int first, int count) { applyUnits(x, first, count, sums + (first - row) * kPanelWidth<V>); };
    };
    panelSums<V, D>(x, row, rows, weights, groups, gate, unitsOf(gate));
    panelSums<V, D>(x, row, rows, weights + panelBytes, groups, up, [&](int first, int count) {
      unitsOf(up)(first, count);
      finishGatedTile<V>(args, first, count, panel, gate + (first - row) * NR, up + (first - row) * NR, NR);
    });
  });
}

}  // namespace
}  // namespace skein

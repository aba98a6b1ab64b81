// GEMM over quantised weights (quantized_panels.h, superblock_panels.h) times activations of 8 bits (quantized_rows.h).
//
// The sum over a group of 32 is an integer and exact, in any order and with any instructions. The groups are then added in
// ascending order, in f32, by the form of the weights (formOf):
//
//   int8         y = fma(float(sum), weightScale * activationScale, y)
//   int4, q5_1   y = fma(weightMinimum, multiple * sumOfQuants, y), y = fma(float(sum * multiple), weightScale, y); at last y * unit
//   q5_0, mxfp4  the same without minima
//   q6_k         the same with the sums of both 16, each times its whole-numbered scale (below 2^24 together, so exact in f32):
//                y = fma(float(sum0 * scale0 + sum1 * scale1) * multiple, d, y)
#pragma once
#include "kernels/five_bit_panels.h"
#include "kernels/formats.h"
#include "kernels/quantized_rows.h"
#include "kernels/row_pairs.h"
#include "kernels/row_words.h"
#include "kernels/table_panels.h"

namespace skein {
namespace {

// What the sums over a group begin with.
template <class V, DType Form>
inline typename V::I startOfSum(const uint8_t* block) {
  if constexpr (Form == DType::kInt8) return V::start8(loadWord(block + 4));
  else if constexpr (kIsSixteenMore<Form>) return V::startOf(loadWord(block + 8));
  else return V::set1I(0);
}

// Rows from which on a step of wide vectors is long enough to be a loop's: unrolled steps would be no faster, and take most of the time
// to compile. Tiles of narrow vectors have half as many rows, and are faster unrolled.
template <class V>
constexpr int kRolledRows = V::W == 16 ? 4 : V::kTileRows + 1;

// Computes the integer sums of M rows and one panel over one group.
template <class V, DType Form, int M, class Groups>
[[gnu::always_inline]] inline void groupSums(const uint8_t* x, int64_t rowStride, const Groups& groups,
                                             typename V::I (&sum)[M][2]) {
  using I = typename V::I;
  constexpr bool kFromZero = Form == DType::kInt4 || (Form == DType::kInt8 && HasSquares<V>);
  SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++)
    sum[m][0] = sum[m][1] = startOfSum<V, Form>(x + m * rowStride);
  if constexpr (HasSquares<V> && M > 1)
    return addSquares<V, kParts<V, Form>, kGroup / 8, M, kFromZero>(x + kBlockHead<Form>, rowStride, groups, 0, sum);
  if constexpr (HasWords<V>)
    return addWords<V, kParts<V, Form>, kGroup / 16, M>(x + kBlockHead<Form>, rowStride, groups, 0, sum);
  const auto add = [&](int step) __attribute__((always_inline)) {
    groups.prefetch(step);
    SKEIN_UNROLL(2)
    for (int part = 0; part < kParts<V, Form>; part++) {
      const I low = groups.weights(step, part, 0), high = groups.weights(step, part, 1);
      SKEIN_UNROLL(16)
      for (int m = 0; m < M; m++) {
        const I a = V::set1I(loadWord(x + m * rowStride + kBlockHead<Form> + (step * kParts<V, Form> + part) * 4));
        sum[m][0] = Form == DType::kInt8 ? V::dot8(sum[m][0], low, a) : V::dot4(sum[m][0], low, a);
        sum[m][1] = Form == DType::kInt8 ? V::dot8(sum[m][1], high, a) : V::dot4(sum[m][1], high, a);
      }
    }
  };
  constexpr int kAlike = Groups::kAlikeAfter;
  if constexpr (M >= kRolledRows<V> && kAlike > 0) {
    SKEIN_UNROLL(1)
    for (int step = 0; step < kSteps<V, Form>; step += kAlike) {
      SKEIN_UNROLL(2)
      for (int i = 0; i < kAlike; i++) add(step + i);
    }
  } else {
    SKEIN_UNROLL(8)
    for (int step = 0; step < kSteps<V, Form>; step++) add(step);
  }
}

// Adds a row's sums over one group, in both halves of a panel, to what it has of the groups before. block: its activations.
template <class V, DType Form>
[[gnu::always_inline]] inline void addScaled(const typename V::I (&sum)[2], const uint8_t* block,
                                             const typename V::F (&scales)[2], const typename V::F (&minima)[2],
                                             typename V::F& low, typename V::F& high) {
  if constexpr (Form == DType::kQ5_0 || Form == DType::kMxfp4) {
    const auto multiples = V::multiplesOf(loadWord(block));
    low = V::fma(V::scaled4(sum[0], multiples), scales[0], low);
    high = V::fma(V::scaled4(sum[1], multiples), scales[1], high);
  } else if constexpr (Form != DType::kInt8) {
    const auto total = V::set1(loadFloat(block + 4));
    const auto multiples = V::multiplesOf(loadWord(block));
    low = V::fma(V::scaled4(sum[0], multiples), scales[0], V::fma(minima[0], total, low));
    high = V::fma(V::scaled4(sum[1], multiples), scales[1], V::fma(minima[1], total, high));
  } else {
    const auto scale = V::set1(loadFloat(block));
    low = V::fma(V::toFloat(sum[0]), V::mul(scales[0], scale), low);
    high = V::fma(V::toFloat(sum[1]), V::mul(scales[1], scale), high);
  }
}

// Tables whose scales that are powers of two are added to the exponents of multiples.
template <class V>
concept AddsExponents = requires(typename V::F a) { V::timesPower(a, V::bitsOf(a)); };

// Rows from which on that is more than what it takes to look at the scales.
constexpr int kRowsOfExponents = 4;

// addScaled() of scales that are powers of two: the product of multiple and scale is exact, so that one multiplication by it rounds as
// the one by the multiple, and an addition as the fma. Processors add while they multiply.
template <class V, int M>
[[gnu::always_inline]] inline void addByExponents(const typename V::I (&sum)[M][2], const uint8_t* x, int64_t rowStride,
                                                  const typename V::F (&scales)[2], float* tile) {
  constexpr int NR = kPanelWidth<V>;
  const typename V::I low = V::exponentOf(scales[0]), high = V::exponentOf(scales[1]);
  SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++) {
    const auto multiples = V::multiplesOf(loadWord(x + m * rowStride));
    float* to = tile + m * NR;
    const auto a = V::mul(V::toFloat(sum[m][0]), V::timesPower(multiples, low));
    const auto b = V::mul(V::toFloat(sum[m][1]), V::timesPower(multiples, high));
    const auto c = V::add(V::load(to), a), d = V::add(V::load(to + V::W), b);
    V::store(to, c);
    V::store(to + V::W, d);
  }
}

// Adds the products of M rows and `count` groups of one panel to tile[m * NR ..]. The f32 sums stay in the first-level
// cache, because the registers hold the integer sums.
template <class V, DType Form, int M, class Groups>
void quantizedSums(const uint8_t* x, int64_t rowStride, const uint8_t* panel, int group, int count, float* tile,
                   Ahead* ahead) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  Groups groups(panel, group);
  for (int g = 0; g < count; g++) {
    ahead->some();
    typename V::I sum[M][2];
    groupSums<V, Form, M, Groups>(x, rowStride, groups, sum);
    asm volatile("" ::: "memory");  // otherwise the compiler loads the tile above, only to spill it
    F scales[2], minima[2];
    for (int half = 0; half < 2; half++) {
      scales[half] = groups.scales(half);
      if constexpr (kHasMinima<Form>) minima[half] = groups.scales(2 + half);
    }
    if constexpr (Form == DType::kMxfp4 && AddsExponents<V> && M >= kRowsOfExponents) {
      if (V::areMiddlePowers(scales)) [[likely]] {
        addByExponents<V, M>(sum, x, rowStride, scales, tile);
        x += kActivationBytes<V, Form>;
        groups.next();
        continue;
      }
    }
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const uint8_t* block = x + m * rowStride;
      float* to = tile + m * NR;
      // Loads both halves before either is stored; otherwise the compiler loads and converts the row's scales twice.
      F low = V::load(to), high = V::load(to + V::W);
      addScaled<V, Form>(sum[m], block, scales, minima, low, high);
      V::store(to, low);
      V::store(to + V::W, high);
    }
    x += kActivationBytes<V, Form>;
    groups.next();
  }
}

// Computes the integer sums of M rows and one panel over 16 elements of a group.
template <class V, int M, class Groups>
[[gnu::always_inline]] inline void sumsOfSixteen(const uint8_t* x, int64_t rowStride, const Groups& groups, int sixteen,
                                                 typename V::I (&sum)[M][2]) {
  using I = typename V::I;
  SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++) sum[m][0] = sum[m][1] = V::startOf(loadWord(x + m * rowStride + 8 + 4 * sixteen));
  if constexpr (HasSquares<V> && M > 1)
    return addSquares<V, 2, 2, M, false>(x + kBlockHead<DType::kQ6K> + 16 * sixteen, rowStride, groups, 4 * sixteen, sum);
  if constexpr (HasWords<V>)
    return addWords<V, 2, 1, M>(x + kBlockHead<DType::kQ6K> + 16 * sixteen, rowStride, groups, 4 * sixteen, sum);
  SKEIN_UNROLL(2)
  for (int step = 2 * sixteen; step < 2 * sixteen + 2; step++) {
    groups.prefetch(step);
    SKEIN_UNROLL(2)
    for (int part = 0; part < 2; part++) {
      const I low = groups.weights(step, part, 0), high = groups.weights(step, part, 1);
      SKEIN_UNROLL(16)
      for (int m = 0; m < M; m++) {
        const I a = V::set1I(loadWord(x + m * rowStride + kBlockHead<DType::kQ6K> + (2 * step + part) * 4));
        sum[m][0] = V::dot6(sum[m][0], low, a);
        sum[m][1] = V::dot6(sum[m][1], high, a);
      }
    }
  }
}

// The same for scales in whole numbers, in one half of a panel: `both` is the sum of the sums times their scales.
template <class V>
[[gnu::always_inline]] inline typename V::F addBlockScaled(typename V::F both, typename V::F multiple, typename V::F total,
                                                           typename V::F ofBlock, typename V::F minimum,
                                                           typename V::F before) {
  return V::fma(V::mul(both, multiple), ofBlock, V::fma(minimum, total, before));
}

// quantizedSums for scales in whole numbers. The sums of the first 16, times their scales, wait in the first-level cache.
template <class V, int M, class Groups>
void superblockSums(const uint8_t* x, int64_t rowStride, const uint8_t* panel, int group, int count, float* tile,
                    Ahead* ahead) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  Groups groups(panel, group);
  alignas(64) uint8_t firstSixteen[M * NR * 4];
  for (int g = 0; g < count; g++) {
    ahead->some();
    typename V::I sum[M][2];
    sumsOfSixteen<V, M>(x, rowStride, groups, 0, sum);
    typename V::Scale scales[2] = {groups.scales(0, 0), groups.scales(0, 1)};
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++)
      for (int half = 0; half < 2; half++)
        V::storeScale(firstSixteen + (2 * m + half) * 4 * V::W, V::weigh(sum[m][half], scales[half]));
    asm volatile("" ::: "memory");
    sumsOfSixteen<V, M>(x, rowStride, groups, 1, sum);
    asm volatile("" ::: "memory");
    scales[0] = groups.scales(1, 0), scales[1] = groups.scales(1, 1);
    const F blocks[2] = {groups.ofBlock(0), groups.ofBlock(1)}, minima[2] = {groups.minima(0), groups.minima(1)};
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const uint8_t* block = x + m * rowStride;
      float* to = tile + m * NR;
      const F multiple = V::set1(loadFloat(block)), total = V::set1(loadFloat(block + 4));
      for (int half = 0; half < 2; half++) {
        const auto first = V::loadScale(firstSixteen + (2 * m + half) * 4 * V::W);
        const F both = V::floatOf(V::addWeighed(first, sum[m][half], scales[half]));
        V::store(to + half * V::W,
                 addBlockScaled<V>(both, multiple, total, blocks[half], minima[half], V::load(to + half * V::W)));
      }
    }
    x += kActivationBytes<V, DType::kQ6K>;
    groups.next();
  }
}

// Number of rows whose sums and activations stay in the caches while the panels pass by.
constexpr int kQuantizedRowBlock = 96;
// Bytes of the first-level cache that the expanded part of a panel may take.
constexpr int kExpandedBytes = 12 << 10;
// Most rows for which the tiles are too few to make up for expanding. For dot products of bytes expanding never pays where an
// instruction or two unpack the weights: not where quants lie in two places or in a table.
template <class V, DType D>
constexpr int kPackedRows = V::kInt8Parts == 1 && (D == DType::kInt8 || formOf(D) == DType::kInt4) ? kQuantizedRowBlock
                                                                                               : 3 * V::kTileRows;

// Rows of the tallest tile. A tile of 12 rows whose quants are bytes keeps that many instructions in flight that nothing of the next group
// begins while its sums are scaled; half as many rows are up to an eighth faster, although they load the weights twice as often.
template <class V, DType D>
constexpr int kQuantizedTileRows = V::W == 16 && V::kInt8Parts == 1 && formOf(D) == DType::kInt8 ? 6 : V::kTileRows;

// So few rows are one tile in any case: where their weights come from memory, loading them twice costs more.
template <class V, DType D>
constexpr int kMostOfOneTile = kQuantizedTileRows<V, D> < V::kTileRows ? 8 : V::kTileRows;

using QuantizedSumsFn = void (*)(const uint8_t*, int64_t, const uint8_t*, int, int, float*, Ahead*);

template <class V, DType Form, class Groups, int kLeast, int kMost>
constexpr Tiles<QuantizedSumsFn, V::kTileRows> quantizedTiles() {
  return tilesOf<QuantizedSumsFn, kLeast, kMost, V::kTileRows>([]<int M>(TileRows<M>) -> QuantizedSumsFn {
    if constexpr (Form == DType::kQ6K) return superblockSums<V, M, Groups>;
    else return quantizedSums<V, Form, M, Groups>;
  });
}

// The lowest tile where more than `few` rows, and at most a block of rows, are cut into tiles of at most `tileRows`.
constexpr int lowestTile(int few, int tileRows) {
  int lowest = tileRows;
  for (int rows = few + 1; rows <= kQuantizedRowBlock; rows++) {
    const int tiles = (rows + tileRows - 1) / tileRows;
    lowest = rows / tiles < lowest ? rows / tiles : lowest;
  }
  return lowest;
}

// What products need to know of one format of weights: the loops around the tiles are those of all formats.
template <class V>
struct QuantizedFormat {
  using SumsFns = Tiles<QuantizedSumsFn, V::kTileRows>;
  RoundedLayout rows;
  int64_t (*offsetOf)(int group);  // bytes of a panel before a group
  int mostOfOneTile;  // up to this many rows are one tile; more are cut into tiles of at most `tileRows`
  int tileRows;
  SumsFns packed;
  // Panels are expanded for more than `packedRows` rows: groups of expandedBytes bytes.
  int packedRows, expandedBytes;
  SumsFns expanded;
  void (*expand)(const uint8_t* panel, int group, int count, uint8_t* to);
  // Prefetches panels of which several tiles read the packed form. A panel of int8 is so large that prefetching costs more than it saves.
  bool callsAhead;
};

template <class V, DType D>
void expandGroups(const uint8_t* panel, int group, int count, uint8_t* to) {
  using Expanded = ExpandedGroups<V, formOf(D)>;
  PackedGroups<V, D> packed(panel, group);
  for (int g = 0; g < count; g++, packed.next()) Expanded::expand(packed, to + g * Expanded::kBytes);
}

template <class V, DType D>
constexpr QuantizedFormat<V> quantizedFormat() {
  constexpr DType kForm = formOf(D);
  constexpr int kMost = kQuantizedTileRows<V, D>;
  using Packed = PackedGroups<V, D>;
  using Expanded = ExpandedGroups<V, kForm>;
  QuantizedFormat<V> format = {};
  format.tileRows = kMost;
  format.mostOfOneTile = kMostOfOneTile<V, D>;
  format.rows = roundedLayout<V, D>();
  format.offsetOf = Packed::offsetOf;
  format.packed = quantizedTiles<V, kForm, Packed, 1, kMostOfOneTile<V, D>>();
  format.packedRows = kPackedRows<V, D>;
  if constexpr (kPackedRows<V, D> < kQuantizedRowBlock) {
    format.expandedBytes = Expanded::kBytes;
    format.expanded = quantizedTiles<V, kForm, Expanded, lowestTile(kPackedRows<V, D>, kMost), kMost>();
    format.expand = expandGroups<V, D>;
  }
  format.callsAhead = D != DType::kInt8 && V::kInt8Parts == 1;
  return format;
}

template <class V>
const QuantizedFormat<V>& quantizedFormatOf(DType dtype) {
  return *forFormat(dtype, []<DType D>(Format<D>) {
    static constexpr QuantizedFormat<V> kFormat = quantizedFormat<V, D>();
    return &kFormat;
  });
}

// Computes the products of rows [row, row + rows), at most kQuantizedRowBlock, and one panel into sums[(r - row) * NR
// ..]. Calls done(first, count) for each completed tile of rows: its results are written to memory while the next tile
// computes. aheadOf(first, count, calls) lists what the adapters of a tile's rows need next.
template <class V, class AheadOf, class Done>
void panelSums(const QuantizedFormat<V>& format, const RoundedRows& x, int row, int rows, const uint8_t* panel,
               int groups, float* sums, AheadOf aheadOf, Done done) {
  constexpr int NR = kPanelWidth<V>;
  const auto clear = [&](int first, int count) {
    for (int i = (first - row) * NR; i < (first - row + count) * NR; i += V::W) V::store(sums + i, V::set1(0.0f));
  };
  const int tileRows = rows <= format.mostOfOneTile ? rows : format.tileRows;
  if (rows <= format.packedRows) {
    // With several tiles the first would wait for all of a panel that comes from memory, so it is prefetched.
    const bool callsAhead = format.callsAhead && rows > 2 * V::kTileRows;
    const int64_t panelBytes = format.offsetOf(groups);
    return forEachRowTile(tileRows, row, row + rows, [&](int first, int count) {
      clear(first, count);
      Ahead ahead = aheadOf(first, count, groups);
      if (callsAhead) ahead.alsoWeights(panel + panelBytes, panelBytes, first - row, count, rows, groups);
      format.packed.of[count](x.block(first, 0), x.rowStride, panel, 0, groups, sums + (first - row) * NR, &ahead);
      done(first, count);
    });
  }
  alignas(64) uint8_t expanded[kExpandedBytes];
  const int most = kExpandedBytes / format.expandedBytes;
  const int parts = (groups + most - 1) / most;
  for (int part = 0, group = 0; part < parts; part++) {
    const int end = group + (groups - group + (parts - part) - 1) / (parts - part);
    format.expand(panel, group, end - group, expanded);
    // Prefetches the data to be expanded next, of this panel or of the next one, while the tiles compute.
    const uint8_t* next = panel + format.offsetOf(end);
    const int64_t nextBytes = format.offsetOf(end) - format.offsetOf(group);
    forEachRowTile(tileRows, row, row + rows, [&](int first, int count) {
      if (part == 0) clear(first, count);
      Ahead ahead = part == 0 ? aheadOf(first, count, end - group) : Ahead();
      ahead.alsoWeights(next, nextBytes, first - row, count, rows, end - group);
      format.expanded.of[count](x.block(first, group), x.rowStride, expanded, 0, end - group,
                                sums + (first - row) * NR, &ahead);
      if (part == parts - 1) done(first, count);
    });
    group = end;
  }
}

}  // namespace
}  // namespace skein

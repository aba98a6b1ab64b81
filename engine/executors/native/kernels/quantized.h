// GEMM over 8- and 4-bit weights (quantized_panels.h) times activations of 8 bits (quantized_rows.h).
//
// The sum over a group of 32 is an integer and exact, in any order and with any instructions. The groups are then added in
// ascending order, in f32:
//
//   int8   y = fma(float(sum), weightScale * activationScale, y)
//   int4   y = fma(weightMinimum, multiple * sumOfQuants, y), y = fma(float(sum * multiple), weightScale, y); at last y * unit
#pragma once
#include "kernels/quantized_panels.h"
#include "kernels/quantized_rows.h"

namespace skein {
namespace {

// Computes the integer sums of M rows and one panel over one group.
template <class V, DType D, int M, class Groups>
[[gnu::always_inline]] inline void groupSums(const uint8_t* x, int64_t rowStride, const uint8_t* group,
                                             typename V::I (&sum)[M][2]) {
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
// cache, because the registers hold the integer sums.
template <class V, DType D, int M, class Groups>
void quantizedSums(const uint8_t* x, int64_t rowStride, const uint8_t* group, int groups, float* tile, Ahead* ahead) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  for (int g = 0; g < groups; g++) {
    ahead->some();
    typename V::I sum[M][2];
    groupSums<V, D, M, Groups>(x, rowStride, group, sum);
    asm volatile("" ::: "memory");  // otherwise the compiler loads the tile above, only to spill it
    F scales[2], minima[2];
    for (int half = 0; half < 2; half++) {
      scales[half] = Groups::scales(group, half);
      if constexpr (D == DType::kInt4) minima[half] = Groups::scales(group, 2 + half);
    }
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const uint8_t* block = x + m * rowStride;
      float* to = tile + m * NR;
      // Loads both halves before either is stored; otherwise the compiler loads and converts the row's scales twice.
      F low = V::load(to), high = V::load(to + V::W);
      if constexpr (D == DType::kInt4) {
        const F total = V::set1(loadFloat(block + 4));
        const auto multiples = V::multiplesOf(loadWord(block));
        low = V::fma(V::scaled4(sum[m][0], multiples), scales[0], V::fma(minima[0], total, low));
        high = V::fma(V::scaled4(sum[m][1], multiples), scales[1], V::fma(minima[1], total, high));
      } else {
        const F scale = V::set1(loadFloat(block));
        low = V::fma(V::toFloat(sum[m][0]), V::mul(scales[0], scale), low);
        high = V::fma(V::toFloat(sum[m][1]), V::mul(scales[1], scale), high);
      }
      V::store(to, low);
      V::store(to + V::W, high);
    }
    x += kActivationBytes<V, D>;
    group += Groups::kBytes;
  }
}

using QuantizedSumsFn = void (*)(const uint8_t*, int64_t, const uint8_t*, int, float*, Ahead*);

template <class V, DType D, int M, class Groups>
constexpr QuantizedSumsFn quantizedTile() {
  if constexpr (M <= V::kTileRows) return quantizedSums<V, D, M, Groups>;
  else return nullptr;
}

template <class V, DType D, class G>
QuantizedSumsFn quantizedSumsFor(int rows) {
  static constexpr QuantizedSumsFn table[] = {nullptr,
                                              quantizedTile<V, D, 1, G>(),
                                              quantizedTile<V, D, 2, G>(),
                                              quantizedTile<V, D, 3, G>(),
                                              quantizedTile<V, D, 4, G>(),
                                              quantizedTile<V, D, 5, G>(),
                                              quantizedTile<V, D, 6, G>(),
                                              quantizedTile<V, D, 7, G>(),
                                              quantizedTile<V, D, 8, G>(),
                                              quantizedTile<V, D, 9, G>(),
                                              quantizedTile<V, D, 10, G>(),
                                              quantizedTile<V, D, 11, G>(),
                                              quantizedTile<V, D, 12, G>()};
  return table[rows];
}

// Number of rows whose sums and activations stay in the caches while the panels pass by.
constexpr int kQuantizedRowBlock = 96;
// Bytes of the first-level cache that the expanded part of a panel may take.
constexpr int kExpandedBytes = 12 << 10;
// Most rows for which the tiles are too few to make up for expanding. For dot products of bytes, whose weights hardly need
// it, expanding never pays.
template <class V>
constexpr int kPackedRows = V::kInt8Parts == 1 ? kQuantizedRowBlock : 3 * V::kTileRows;

// Prefetches a share of `bytes` of weights that are needed next; the share is that of these rows among all. So data
// streams from memory while all tiles compute, and no tile waits for it.
inline void callFor(const void* weights, size_t bytes, int row, int rows, int all) {
  const char* p = static_cast<const char*>(weights);
  for (size_t i = bytes * row / all, end = bytes * (row + rows) / all; i < end; i += 64) __builtin_prefetch(p + i);
}

// Computes the products of rows [row, row + rows), at most kQuantizedRowBlock, and one panel into sums[(r - row) * NR
// ..]. Calls done(first, count) for each completed tile of rows: its results are written to memory while the next tile
// computes. aheadOf(first, count, calls) tells what the adapters of a tile's rows need next.
template <class V, DType D, class AheadOf, class Done>
void panelSums(const QuantizedRows<V, D>& x, int row, int rows, const uint8_t* panel, int groups, float* sums,
               AheadOf aheadOf, Done done) {
  constexpr int NR = kPanelWidth<V>;
  const auto clear = [&](int first, int count) {
    for (int i = (first - row) * NR; i < (first - row + count) * NR; i += V::W) V::store(sums + i, V::set1(0.0f));
  };
  if (rows <= kPackedRows<V>) {
    // With several tiles the first would wait for all of a panel that comes from memory, so it is prefetched. A panel of
    // int8 is so large that prefetching costs more than it saves.
    const bool callsAhead = D == DType::kInt4 && V::kInt8Parts == 1 && rows > 2 * V::kTileRows;
    const int panelBytes = groups * kPanelGroupBytes<V, D>;
    return forEachRowTile<V>(row, row + rows, [&](int first, int count) {
      if (callsAhead) callFor(panel + panelBytes, panelBytes, first - row, count, rows);
      clear(first, count);
      Ahead ahead = aheadOf(first, count, groups);
      quantizedSumsFor<V, D, PackedGroups<V, D>>(count)(x.block(first, 0), x.rowStride, panel, groups,
                                                        sums + (first - row) * NR, &ahead);
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
    // Prefetches the data to be expanded next, of this panel or of the one behind it, while the tiles compute.
    const uint8_t* next = panel + int64_t(end) * kPanelGroupBytes<V, D>;
    const int nextBytes = (end - group) * kPanelGroupBytes<V, D>;
    forEachRowTile<V>(row, row + rows, [&](int first, int count) {
      callFor(next, nextBytes, first - row, count, rows);
      if (part == 0) clear(first, count);
      Ahead ahead = part == 0 ? aheadOf(first, count, end - group) : Ahead();
      quantizedSumsFor<V, D, Expanded>(count)(x.block(first, group), x.rowStride, expanded, end - group,
                                              sums + (first - row) * NR, &ahead);
      if (part == parts - 1) done(first, count);
    });
    group = end;
  }
}

// Calls run(first, rows, panel) for every block of rows and every panel.
template <class Run>
void forEachPanel(int rowBegin, int rowEnd, int panelBegin, int panelEnd, Run run) {
  for (int first = rowBegin; first < rowEnd; first += kQuantizedRowBlock) {
    const int rows = rowEnd - first < kQuantizedRowBlock ? rowEnd - first : kQuantizedRowBlock;
    for (int panel = panelBegin; panel < panelEnd; panel++) run(first, rows, panel);
  }
}

// Multiplies sums of int4 weights by the unit of their row.
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
  const QuantizedRows<V, D> x(args.rounded, args.roundedRows, args.k);
  float sums[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + int64_t(panel) * groups * kPanelGroupBytes<V, D>;
    const auto ahead = [&](int first, int count, int calls) { return aheadOf(args, first, count, panel, 1, 1, calls); };
    panelSums<V, D>(x, row, rows, weights, groups, sums, ahead, [&](int first, int count) {
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
  const QuantizedRows<V, D> x(args.rounded, args.roundedRows, args.k);
  float gate[kQuantizedRowBlock * NR], up[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + 2 * panel * panelBytes;
    const auto unitsOf = [&](float* sums) {
      return
          [&x, row, sums](int first, int count) { applyUnits(x, first, count, sums + (first - row) * kPanelWidth<V>); };
    };
    const auto aheadOfPanel = [&](int packedPanel) {
      return [&args, packedPanel](int first, int count, int calls) {
        return aheadOf(args, first, count, packedPanel, 1, 2, calls);
      };
    };
    panelSums<V, D>(x, row, rows, weights, groups, gate, aheadOfPanel(2 * panel), unitsOf(gate));
    panelSums<V, D>(
        x, row, rows, weights + panelBytes, groups, up, aheadOfPanel(2 * panel + 1), [&](int first, int count) {
          unitsOf(up)(first, count);
          finishGatedTile<V>(args, first, count, panel, gate + (first - row) * NR, up + (first - row) * NR, NR);
        });
  });
}

}  // namespace
}  // namespace skein

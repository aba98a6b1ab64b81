// The loops of a product around the sums of one panel, whatever computes these: `Format` says how panels lie and rows are rounded, and
// its panelSums() computes the products of some rows with one panel (quantized.h, tile_products.h).
#pragma once
#include "kernels/quantized.h"

namespace skein {
namespace {

// Calls run(first, rows, panel) for every block of rows and every panel.
template <class Run>
void forEachPanel(int rowBegin, int rowEnd, int panelBegin, int panelEnd, Run run) {
  for (int first = rowBegin; first < rowEnd; first += kQuantizedRowBlock) {
    const int rows = rowEnd - first < kQuantizedRowBlock ? rowEnd - first : kQuantizedRowBlock;
    for (int panel = panelBegin; panel < panelEnd; panel++) run(first, rows, panel);
  }
}

// Multiplies sums by the unit of their row, where there are units.
template <class V>
inline void applyUnits(const RoundedRows& x, int row, int rows, float* sums) {
  if (!x.layout.hasUnits) return;
  for (int m = 0; m < rows; m++, sums += kPanelWidth<V>) {
    const auto unit = V::set1(x.unit(row + m));
    V::store(sums, V::mul(V::load(sums), unit));
    V::store(sums + V::W, V::mul(V::load(sums + V::W), unit));
  }
}

template <class V, class Format>
void quantizedGemmOf(Format& format, const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const int64_t panelBytes = format.offsetOf(groups);
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const RoundedRows x(format.rows, args.rounded, args.roundedRows, args.k);
  float sums[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const auto ahead = [&](int first, int count, int calls) { return aheadOf(args, first, count, panel, 1, 1, calls); };
    panelSums<V>(format, x, row, rows, packed + panel * panelBytes, groups, sums, ahead, [&](int first, int count) {
      float* tile = sums + (first - row) * NR;
      applyUnits<V>(x, first, count, tile);
      finishTile<V>(args, first, count, panel, tile, NR);
    });
  });
}

template <class V, class Format>
void quantizedGatedGemmOf(Format& format, const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin,
                          int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int groups = groupsOf(args.k);
  const int64_t panelBytes = format.offsetOf(groups);
  const uint8_t* packed = static_cast<const uint8_t*>(args.packed);
  const RoundedRows x(format.rows, args.rounded, args.roundedRows, args.k);
  float gate[kQuantizedRowBlock * NR], up[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const uint8_t* weights = packed + 2 * panel * panelBytes;
    const auto unitsOf = [&](float* sums) {
      return [&x, row, sums](int first, int count) {
        applyUnits<V>(x, first, count, sums + (first - row) * kPanelWidth<V>);
      };
    };
    const auto aheadOfPanel = [&](int packedPanel) {
      return [&args, packedPanel](int first, int count, int calls) {
        return aheadOf(args, first, count, packedPanel, 1, 2, calls);
      };
    };
    panelSums<V>(format, x, row, rows, weights, groups, gate, aheadOfPanel(2 * panel), unitsOf(gate));
    panelSums<V>(format, x, row, rows, weights + panelBytes, groups, up, aheadOfPanel(2 * panel + 1),
                 [&](int first, int count) {
                   unitsOf(up)(first, count);
                   finishGatedTile<V>(args, first, count, panel, gate + (first - row) * NR, up + (first - row) * NR, NR);
                 });
  });
}

template <class V>
void quantizedGemm(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  quantizedGemmOf<V>(quantizedFormatOf<V>(args.dtype), args, rowBegin, rowEnd, panelBegin, panelEnd);
}

template <class V>
void quantizedGatedGemm(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  quantizedGatedGemmOf<V>(quantizedFormatOf<V>(args.dtype), args, rowBegin, rowEnd, panelBegin, panelEnd);
}

}  // namespace
}  // namespace skein

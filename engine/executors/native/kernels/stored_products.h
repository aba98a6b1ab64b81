// Products with weights as a GGUF stores them (StoredMatrix), without a packed copy: the groups of a panel are unpacked from its rows
// into memory of the first-level cache, part by part, and all tiles of rows multiply them there.
//
//   file    output 0    | block | block | ..          part of a panel      tiles of rows
//           output 1    | block | block | ..    ->    expanded       ->    sums += ..
//           ..                                        (stored_groups.h)
//
// The values are those of packed groups and the sums are built in the same order, so the bits are those of the packed matrix, on every
// instruction set and for any number of rows.
#pragma once
#include "kernels/quantized_products.h"
#include "kernels/stored_one_row.h"
#include "kernels/stored_rows.h"

namespace skein {
namespace {

// Unpacks `count` groups of a panel's rows into groups that products take.
using ExpandStoredFn = void (*)(const uint8_t* const* rows, int group, int count, uint8_t* to);
template <class V, StoredType T>
constexpr ExpandStoredFn expandStored() {
  if constexpr (formatOf(T).blockElements > kGroup) return expandStoredSuperblocks<V, T>;
  else return expandStoredGroups<V, T>;
}

// What products need to know of one stored type.
template <class V>
struct StoredProducts {
  RoundedLayout rows;
  int mostOfOneTile, tileRows;  // as in QuantizedFormat
  Tiles<QuantizedSumsFn, V::kTileRows> sums;
  ExpandStoredFn expand;
  Tiles<FewRowsFn<V>, kFewStoredRows<V>> few;  // of so few rows, without expanding
  OneRowFn<V> one;                             // null: as few
};

template <class V, StoredType T>
constexpr StoredProducts<V> storedProducts() {
  constexpr DType kFormat = formatOf(T).dtype, kForm = formOf(kFormat);
  constexpr int kTogether = formatOf(T).blockElements / kGroup;
  using Expanded = ExpandedGroups<V, kForm>;
  StoredProducts<V> products = {};
  products.rows = roundedLayout<V, kFormat>();
  products.mostOfOneTile = kMostOfOneTile<V, kFormat>;
  products.tileRows = kQuantizedTileRows<V, kFormat>;
  products.sums = quantizedTiles<V, kForm, Expanded, 1, kMostOfOneTile<V, kFormat>>();
  products.expand = expandStored<V, T>();
  products.few = tilesOf<FewRowsFn<V>, 1, kFewStoredRows<V>>([]<int M>(TileRows<M>) -> FewRowsFn<V> {
    if constexpr (kTogether > 1) return fewOfSuperblocks<V, T, M>;
    else return fewOfGroups<V, T, M>;
  });
  products.one = oneRowOf<V, T>();
  return products;
}

template <class V, StoredType T>
inline constexpr StoredProducts<V> kStoredProducts = storedProducts<V, T>();

template <StoredType T>
struct Stored {};

// Calls fn(Stored<T>()) for the type of blocks `type`.
template <class Fn>
inline auto forStored(StoredType type, Fn fn) {
  switch (type) {
    case StoredType::kQ4_0: return fn(Stored<StoredType::kQ4_0>());
    case StoredType::kQ5_0: return fn(Stored<StoredType::kQ5_0>());
    case StoredType::kQ5_1: return fn(Stored<StoredType::kQ5_1>());
    case StoredType::kQ8_0: return fn(Stored<StoredType::kQ8_0>());
    case StoredType::kQ3K: return fn(Stored<StoredType::kQ3K>());
    case StoredType::kQ4K: return fn(Stored<StoredType::kQ4K>());
    case StoredType::kQ5K: return fn(Stored<StoredType::kQ5K>());
    case StoredType::kQ6K: return fn(Stored<StoredType::kQ6K>());
    case StoredType::kIq4Nl: return fn(Stored<StoredType::kIq4Nl>());
    case StoredType::kIq4Xs: return fn(Stored<StoredType::kIq4Xs>());
    case StoredType::kMxfp4: return fn(Stored<StoredType::kMxfp4>());
    default: return fn(Stored<StoredType::kQ4_1>());
  }
}

template <class V>
const StoredProducts<V>& storedProductsOf(StoredType type) {
  return *forStored(type, []<StoredType T>(Stored<T>) { return &kStoredProducts<V, T>; });
}

// Bytes of a group in the form that takes most.
template <class V>
constexpr int kMostExpandedBytes = ExpandedGroups<V, DType::kInt8>::kBytes > ExpandedGroups<V, DType::kQ6K>::kBytes
                                       ? ExpandedGroups<V, DType::kInt8>::kBytes
                                       : ExpandedGroups<V, DType::kQ6K>::kBytes;

// The rows of one panel. Outputs beyond n have the last row's, and are never written.
template <class V>
struct PanelRows {
  const uint8_t* of[kPanelWidth<V>];
  int64_t stride;  // from each row to the next; 0: they differ

  PanelRows() = default;
  PanelRows(const StoredMatrix& matrix, int64_t rowBytes, int first, int count) {
    const StoredPiece* piece = matrix.piece;
    for (; first >= piece->rows; piece++) first -= piece->rows;
    for (int j = 0; j < kPanelWidth<V>; j++, first++) {
      if (j >= count) {
        of[j] = of[j - 1];
        continue;
      }
      if (first == piece->rows) piece++, first = 0;
      const int64_t place = piece->headRows == 0 ? first : StoredMatrix::placeOf(first, piece->headRows);
      of[j] = piece->data + place * rowBytes;
    }
    stride = of[1] - of[0];
    for (int j = 2; j < kPanelWidth<V>; j++)
      if (of[j] - of[j - 1] != stride) stride = 0;
  }
};

// Rows of activations, and the loop over the parts of panels.
template <class V>
class StoredPanels {
 public:
  static constexpr int NR = kPanelWidth<V>;
  const RoundedRows x;

  template <class Args>
  explicit StoredPanels(const Args& args)
      : x(storedProductsOf<V>(args.stored->type).rows, args.rounded, args.roundedRows, args.k),
        matrix_(*args.stored),
        products_(storedProductsOf<V>(matrix_.type)),
        rowBytes_(matrix_.rowBytes()),
        groups_(groupsOf(args.k)) {}

  PanelRows<V> rowsOf(int first, int n) const { return {matrix_, rowBytes_, first, n < NR ? n : NR}; }

  // As panelSums(). next: the rows of the panel that follows.
  template <class AheadOf, class Done>
  void sum(int row, int rows, const PanelRows<V>& panel, const PanelRows<V>& next, float* sums, AheadOf aheadOf,
           Done done) const {
    const StoredProducts<V>& products = products_;
    StoredCalls<V> calls(panel.of, next.of, rowBytes_);
    if (rows <= kFewStoredRows<V>) {
      Ahead ahead = aheadOf(row, rows, groups_);
      if (rows == 1 && products.one && panel.stride != 0) {
        products.one(x.block(row, 0), EvenRows(panel.of[0], panel.stride), groups_, sums, calls, &ahead);
        return done(row, rows);
      }
      products.few.of[rows](x.block(row, 0), x.rowStride, panel.of, groups_, sums, calls, &ahead);
      return done(row, rows);
    }
    alignas(64) uint8_t expanded[kStoredGroups * kMostExpandedBytes<V>];
    const int tileRows = rows <= products.mostOfOneTile ? rows : products.tileRows;
    for (int group = 0, end = 0; group < groups_; group = end) {
      end = groups_ - group < kStoredGroups ? groups_ : group + kStoredGroups;
      products.expand(panel.of, group, end - group, expanded);
      forEachRowTile(tileRows, row, row + rows, [&](int first, int count) {
        calls.upTo(bytesOf(group) + bytesOf(end - group) * (first + count - row) / rows);
        if (group == 0)
          for (int i = (first - row) * NR; i < (first - row + count) * NR; i += V::W) V::store(sums + i, V::set1(0.0f));
        Ahead ahead = group == 0 ? aheadOf(first, count, end - group) : Ahead();
        products.sums.of[count](x.block(first, group), x.rowStride, expanded, 0, end - group, sums + (first - row) * NR,
                                &ahead);
        if (end == groups_) done(first, count);
      });
    }
  }

 private:
  int64_t bytesOf(int groups) const {
    const StoredFormat& format = formatOf(matrix_.type);
    return int64_t(groups) * kGroup / format.blockElements * format.blockBytes;
  }

  const StoredMatrix& matrix_;
  const StoredProducts<V>& products_;
  const int64_t rowBytes_;
  const int groups_;
};

template <class V>
void storedGemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const StoredPanels<V> panels(args);
  float sums[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const int last = panel + 1 < panelEnd ? panel + 1 : panel;
    const PanelRows<V> own = panels.rowsOf(panel * NR, args.n - panel * NR);
    const PanelRows<V> next = panels.rowsOf(last * NR, args.n - last * NR);
    const auto ahead = [&](int first, int count, int calls) { return aheadOf(args, first, count, panel, 1, 1, calls); };
    panels.sum(row, rows, own, next, sums, ahead, [&](int first, int count) {
      float* tile = sums + (first - row) * NR;
      applyUnits<V>(panels.x, first, count, tile);
      finishTile<V>(args, first, count, panel, tile, NR);
    });
  });
}

template <class V>
void storedGatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin,
                     int32_t panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const StoredPanels<V> panels(args);
  float gate[kQuantizedRowBlock * NR], up[kQuantizedRowBlock * NR];
  forEachPanel(rowBegin, rowEnd, panelBegin, panelEnd, [&](int row, int rows, int panel) {
    const int column = panel * NR, left = args.n - column;
    const int after = panel + 1 < panelEnd ? column + NR : column;
    const PanelRows<V> gateRows = panels.rowsOf(column, left), upRows = panels.rowsOf(args.n + column, left);
    const PanelRows<V> next = panels.rowsOf(after, args.n - after);
    const auto unitsOf = [&](float* sums) {
      return [&, sums](int first, int count) { applyUnits<V>(panels.x, first, count, sums + (first - row) * NR); };
    };
    const auto aheadOfPanel = [&](int packedPanel) {
      return [&args, packedPanel](int first, int count, int calls) {
        return aheadOf(args, first, count, packedPanel, 1, 2, calls);
      };
    };
    panels.sum(row, rows, gateRows, upRows, gate, aheadOfPanel(2 * panel), unitsOf(gate));
    panels.sum(row, rows, upRows, next, up, aheadOfPanel(2 * panel + 1), [&](int first, int count) {
      unitsOf(up)(first, count);
      finishGatedTile<V>(args, first, count, panel, gate + (first - row) * NR, up + (first - row) * NR, NR);
    });
  });
}

}  // namespace
}  // namespace skein

// Sums of a panel over quantised weights by tiles, C += A B, with what V's dot products of bytes read: rounded rows
// (quantized_rows.h) and panels (quantized_panels.h), which are tiles B as they lie.
//
//                            outputs 0 .. 15            outputs 16 .. 31
//                     B0     k 0 .. 3   64 bytes        k 0 .. 3   64 bytes     B1     rows of B are 128 bytes apart
//                            k 4 .. 7                   k 4 .. 7
//                            ..         8 rows          ..
//                            k 28 .. 31                 k 28 .. 31
//      A
//      row 0: 32 bytes       C0  sums of 32 bits        C1
//      row 1                     of one group
//      .. up to 16 rows          16 rows x 16           rows of A are a row's blocks apart
//
// int8 is read in place. What is packed otherwise is unpacked into memory of the first-level cache once for all rows, as signed bytes:
// there the excess of the quants is subtracted that dot products of unsigned bytes have in the starts of their sums. The sums over a
// group are the same whole numbers then, and V scales them as it scales its own: the bits are those of V's dot products.
//
// A turn is two groups, or the two sixteens of one group where each has a scale of its own: four tiles C, whose sums go through memory,
// since vectors cannot read tiles. Turns alternate between two such pieces of memory:
//
//      tiles     | turn 0 | turn 1 | turn 2 | ..
//      vectors            | turn 0 | turn 1 | ..     scale sums and add them to those of the groups before
#pragma once
#include "kernels/quantized_products.h"
#include "kernels/tile_config.h"

namespace skein {
namespace {

constexpr int kTileSums = kMostTileRows * 32;         // of one part of a turn, row by row: 32 outputs
constexpr int64_t kTileSumStride = 32 * 4;            // bytes between its rows
constexpr int64_t kTileWeightStride = 2 * 64;         // bytes between rows of B
constexpr int kTilePartBytes = 20 << 10;              // of the first-level cache, for unpacked groups

// What the quants of a format are too large by, as V's dot products take them.
template <DType D>
constexpr int kExcess = formOf(D) == DType::kInt8 ? 128 : kIsSixteenMore<formOf(D)> ? 16 : D == DType::kQ6K ? 32 : 0;

// Groups as they are packed, with signed bytes as weights.
template <class V, DType D>
struct SignedGroups : PackedGroups<V, D> {
  using PackedGroups<V, D>::PackedGroups;
  typename V::I weights(int step, int part, int half) const {
    const auto bytes = PackedGroups<V, D>::weights(step, part, half);
    if constexpr (kExcess<D> == 0) return bytes;
    else return V::lessBytes(bytes, kExcess<D>);
  }
};

// Groups that tiles read: their bytes, and where the tiles B lie in them.
template <class V, DType D>
struct TileGroups : ExpandedGroups<V, formOf(D)> {
  using Expanded = ExpandedGroups<V, formOf(D)>;
  using Expanded::Expanded;
  static constexpr int kBytes = Expanded::kBytes;
  static constexpr int kWeights = Expanded::place(0, 0, 0);
};
template <class V>
struct TileGroups<V, DType::kInt8> : PackedGroups<V, DType::kInt8> {
  using PackedGroups<V, DType::kInt8>::PackedGroups;
  static constexpr int kBytes = GroupLayout<V, DType::kInt8>::kBytes;
  static constexpr int kWeights = GroupLayout<V, DType::kInt8>::kQuants;
};

// Up to two groups of up to 16 rows.
struct TileTurn {
  const uint8_t* x;  // the first row's block of the first group
  int64_t rowStride;
  const uint8_t* weights;  // the first group
  int groups;
  int row, rows;  // rows to scale: of the tile's rows, the last ones
  float* y;       // of the first row to scale
  bool closes;    // it is the last of its rows
};

// Computes the sums of a turn. sums: [2][kTileSums].
template <class V, class T, DType D>
void multiplyTurn(T& tiles, const TileTurn& turn, int32_t* sums) {
  using Groups = TileGroups<V, D>;
  constexpr bool kSixteens = D == DType::kQ6K;
  const uint8_t* a = turn.x + kBlockHead<D>;
  const uint8_t* b = turn.weights + Groups::kWeights;
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template load<4>(a, turn.rowStride);
  tiles.template load<6>(b, kTileWeightStride);
  tiles.template multiply<0, 4, 6>();
  tiles.template load<7>(b + 64, kTileWeightStride);
  tiles.template multiply<1, 4, 7>();
  const bool two = kSixteens || turn.groups == 2;
  if (two) {
    a += kSixteens ? 16 : kActivationBytes<V, D>;
    b += kSixteens ? 4 * kTileWeightStride : Groups::kBytes;
    tiles.template zero<2>();
    tiles.template zero<3>();
    tiles.template load<5>(a, turn.rowStride);
    tiles.template load<6>(b, kTileWeightStride);
    tiles.template multiply<2, 5, 6>();
    tiles.template load<7>(b + 64, kTileWeightStride);
    tiles.template multiply<3, 5, 7>();
  }
  tiles.template store<0>(sums, kTileSumStride);
  tiles.template store<1>(sums + 16, kTileSumStride);
  if (!two) return;
  tiles.template store<2>(sums + kTileSums, kTileSumStride);
  tiles.template store<3>(sums + kTileSums + 16, kTileSumStride);
}

// The scales of one group, and how they are applied to a row's sums.
template <class V, DType D>
struct TileScales {
  typename V::F scales[2], minima[2];
  explicit TileScales(const TileGroups<V, D>& groups) {
    for (int half = 0; half < 2; half++) {
      scales[half] = groups.scales(half);
      if constexpr (kHasMinima<formOf(D)>) minima[half] = groups.scales(2 + half);
    }
  }
  [[gnu::always_inline]] void add(const uint8_t* sums, const uint8_t* block, typename V::F& low, typename V::F& high) const {
    const typename V::I sum[2] = {V::loadI(sums), V::loadI(sums + 64)};
    addScaled<V, formOf(D)>(sum, block, scales, minima, low, high);
  }
};
template <class V, DType D>
  requires(formOf(D) == DType::kQ6K)
struct TileScales<V, D> {
  // With one scale for both sixteens of a group their sum is one tile's, and its product with the scale as exact as theirs.
  static constexpr int kScales = D == DType::kQ6K ? 2 : 1;
  typename V::Scale scales[kScales][2];
  typename V::F blocks[2], minima[2];
  explicit TileScales(const TileGroups<V, D>& groups) {
    for (int half = 0; half < 2; half++) {
      for (int sixteen = 0; sixteen < kScales; sixteen++) scales[sixteen][half] = groups.scales(sixteen, half);
      blocks[half] = groups.ofBlock(half), minima[half] = groups.minima(half);
    }
  }
  [[gnu::always_inline]] void add(const uint8_t* sums, const uint8_t* block, typename V::F& low, typename V::F& high) const {
    const auto multiple = V::set1(loadFloat(block)), total = V::set1(loadFloat(block + 4));
    low = addBlockScaled<V>(whole(sums, 0), multiple, total, blocks[0], minima[0], low);
    high = addBlockScaled<V>(whole(sums, 1), multiple, total, blocks[1], minima[1], high);
  }

 private:
  [[gnu::always_inline]] typename V::F whole(const uint8_t* sums, int half) const {
    auto weighed = V::weigh(V::loadI(sums + 64 * half), scales[0][half]);
    if constexpr (kScales == 2)
      weighed = V::addWeighed(weighed, V::loadI(sums + kTileSums * 4 + 64 * half), scales[1][half]);
    return V::floatOf(weighed);
  }
};

// Scales the sums of kGroups groups and adds them to y.
template <class V, DType D, int kGroups>
void scaleGroups(const TileTurn& turn, const int32_t* sums) {
  const TileScales<V, D> first(TileGroups<V, D>(turn.weights, 0)), second(TileGroups<V, D>(turn.weights, kGroups - 1));
  const uint8_t* from = reinterpret_cast<const uint8_t*>(sums) + turn.row * kTileSumStride;
  const uint8_t* block = turn.x + turn.row * turn.rowStride;
  const int64_t rowStride = turn.rowStride;
  float* y = turn.y;
  float* const end = y + turn.rows * kPanelWidth<V>;
  SKEIN_UNROLL(1)
  for (; y < end; y += kPanelWidth<V>, block += rowStride, from += kTileSumStride) {
    auto low = V::load(y), high = V::load(y + V::W);
    first.add(from, block, low, high);
    if constexpr (kGroups == 2) second.add(from + kTileSums * 4, block + kActivationBytes<V, D>, low, high);
    V::store(y, low);
    V::store(y + V::W, high);
  }
}

template <class V, DType D>
void scaleTurn(const TileTurn& turn, const int32_t* sums) {
  if constexpr (D != DType::kQ6K) {
    if (turn.groups == 2) return scaleGroups<V, D, 2>(turn, sums);
  }
  scaleGroups<V, D, 1>(turn, sums);
}

template <class V, DType D>
void expandForTiles(const uint8_t* panel, int group, int count, uint8_t* to) {
  SignedGroups<V, D> packed(panel, group);
  for (int g = 0; g < count; g++, packed.next()) ExpandedGroups<V, formOf(D)>::expand(packed, to + g * TileGroups<V, D>::kBytes);
}

// What products by tiles need to know of one format of weights.
template <class V, class T>
struct TileFormat {
  RoundedLayout rows;
  int64_t (*offsetOf)(int group);  // bytes of a panel before a group
  int length;                      // k of a tile
  int turnGroups;                  // groups of a turn
  int groupBytes;                  // of a group as tiles read it
  void (*expand)(const uint8_t* panel, int group, int count, uint8_t* to);  // null: tiles read panels
  void (*multiply)(T& tiles, const TileTurn& turn, int32_t* sums);
  void (*scale)(const TileTurn& turn, const int32_t* sums);
};

template <class V, class T>
const TileFormat<V, T>& tileFormatOf(DType dtype) {
  static_assert(V::W == 16 && V::kInt8Parts == 1);
  return *forFormat(dtype, []<DType D>(Format<D>) {
    static constexpr bool kSixteens = D == DType::kQ6K;
    static constexpr TileFormat<V, T> kFormat = {
        .rows = roundedLayout<V, D>(),
        .offsetOf = PackedGroups<V, D>::offsetOf,
        .length = kSixteens ? 16 : kGroup,
        .turnGroups = kSixteens ? 1 : 2,
        .groupBytes = TileGroups<V, D>::kBytes,
        .expand = D == DType::kInt8 ? nullptr : expandForTiles<V, D>,
        .multiply = multiplyTurn<V, T, D>,
        .scale = scaleTurn<V, D>,
    };
    return &kFormat;
  });
}

// The tiles of one call, with the shapes that they have.
template <class V, class T>
class TilePanels {
 public:
  const RoundedLayout rows;
  int64_t (*const offsetOf)(int group);

  explicit TilePanels(const TileFormat<V, T>& format) : rows(format.rows), offsetOf(format.offsetOf), format_(format) {}
  const TileFormat<V, T>& format() const { return format_; }
  void setHeight(int height) {
    if (height != height_) tiles_.configure(productTiles(height, format_.length));
    height_ = height;
  }
  // The sums of `turn` begin; then those of the turn before are scaled, if there is one. Returns that one.
  TileTurn begin(const TileTurn& turn) {
    format_.multiply(tiles_, turn, sums_[turns_ & 1]);
    return end(turn);
  }
  // Scales what has begun, and keeps `next` in its place.
  TileTurn end(const TileTurn& next = {}) {
    const TileTurn before = begun_;
    if (before.groups > 0) format_.scale(before, sums_[(turns_ & 1) ^ 1]);
    begun_ = next;
    turns_++;
    return before;
  }

 private:
  const TileFormat<V, T>& format_;
  T tiles_;
  int height_ = 0;
  uint32_t turns_ = 0;
  TileTurn begun_ = {};
  alignas(64) int32_t sums_[2][2 * kTileSums];
};

// Prefetches a share of `bytes` of weights that are needed next; the share is that of these rows among all. So data
// streams from memory while all tiles compute, and no tile waits for it.
inline void callFor(const void* weights, size_t bytes, int row, int rows, int all) {
  const char* p = static_cast<const char*>(weights);
  for (size_t i = bytes * row / all, end = bytes * (row + rows) / all; i < end; i += 64) __builtin_prefetch(p + i);
}

// As the panelSums() of quantized.h. A tile of rows that is lower than the others computes some rows of the one before again, so that all
// have one shape.
template <class V, class T, class AheadOf, class Done>
void panelSums(TilePanels<V, T>& panels, const RoundedRows& x, int row, int rows, const uint8_t* panel, int groups,
               float* sums, AheadOf aheadOf, Done done) {
  constexpr int NR = kPanelWidth<V>;
  const TileFormat<V, T>& format = panels.format();
  const int tiles = (rows + kMostTileRows - 1) / kMostTileRows, height = (rows + tiles - 1) / tiles;
  panels.setHeight(height);
  const auto close = [&](const TileTurn& turn) {
    if (turn.closes) done(row + int(turn.y - sums) / NR, turn.rows);
  };
  alignas(64) uint8_t expanded[kTilePartBytes];
  const int most = format.expand ? kTilePartBytes / format.groupBytes / format.turnGroups * format.turnGroups : groups;
  for (int group = 0, end = 0; group < groups; group = end) {
    end = groups - group < most ? groups : group + most;
    if (format.expand) format.expand(panel, group, end - group, expanded);
    const uint8_t* weights = format.expand ? expanded : panel + format.offsetOf(group);
    // The data to be unpacked next, of this panel or of the one behind it.
    const uint8_t* next = panel + format.offsetOf(end);
    const int64_t nextBytes = format.offsetOf(end) - format.offsetOf(group);
    const int turns = tiles * ((end - group + format.turnGroups - 1) / format.turnGroups);
    int turn = 0;
    forEachRowTile(kMostTileRows, row, row + rows, [&](int first, int count) {
      float* y = sums + (first - row) * NR;
      if (group == 0)
        for (int i = 0; i < count * NR; i += V::W) V::store(y + i, V::set1(0.0f));
      Ahead ahead = group == 0 ? aheadOf(first, count, end - group) : Ahead();
      for (int g = group; g < end; g += format.turnGroups) {
        const int turnGroups = end - g < format.turnGroups ? end - g : format.turnGroups;
        const uint8_t* ofTurn = weights + int64_t(g - group) * format.groupBytes;
        if (format.expand) callFor(next, nextBytes, turn++, 1, turns);
        else if (first == row) callFor(ofTurn + kPanelAhead<V>, turnGroups * format.groupBytes, 0, 1, 1);
        for (int i = 0; i < turnGroups; i++) ahead.some();
        close(panels.begin({.x = x.block(first + count - height, g),
                            .rowStride = x.rowStride,
                            .weights = ofTurn,
                            .groups = turnGroups,
                            .row = height - count,
                            .rows = count,
                            .y = y,
                            .closes = g + turnGroups == groups}));
      }
    });
    close(panels.end());
  }
}

template <class V, class T>
void tileGemm(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  TilePanels<V, T> panels(tileFormatOf<V, T>(args.dtype));
  quantizedGemmOf<V>(panels, args, rowBegin, rowEnd, panelBegin, panelEnd);
}

template <class V, class T>
void tileGatedGemm(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  TilePanels<V, T> panels(tileFormatOf<V, T>(args.dtype));
  quantizedGatedGemmOf<V>(panels, args, rowBegin, rowEnd, panelBegin, panelEnd);
}

}  // namespace
}  // namespace skein

// Quantised weights of a panel as tiles B: unpacked to bf16, group by group.
//
//                 outputs 0 .. 15            outputs 16 .. 31
//   B0            (k 0, k 1) a word          (k 0, k 1)          B1      rows are 128 bytes apart, as in a panel of bf16 (gemm.h),
//                 (k 2, k 3)                 (k 2, k 3)                  which is tiles as it lies
//                 ..  16 rows                ..
//
// A weight is that of its own quant, scale and minimum (tile_quants.h), so it is the same from a packed panel and from the rows of a file.
#pragma once
#include "kernels/quantized_panels.h"
#include "kernels/stored_products.h"
#include "kernels/tile_rows.h"

namespace skein {
namespace {

constexpr int kTileStride = 2 * kMostTileBytes;              // bytes between rows of B
constexpr int kTilePairBytes = kMostTileRows * kTileStride;  // of B0 and B1

// What the quants of a format are too large by.
template <DType D>
constexpr float kExcess = formOf(D) == DType::kInt8   ? 128.0f
                          : kIsSixteenMore<formOf(D)> ? 16.0f
                          : D == DType::kQ6K          ? 32.0f
                                                      : 0.0f;

// Bits of the quants of a format, as one of its numbers has them. Nibbles need not be taken apart.
template <DType D>
constexpr int kTileBits = formOf(D) == DType::kInt4 ? 4 : 8;
template <class Groups>
concept HasNibbles = requires(const Groups& groups) { groups.nibbles(0, 0); };

// Writes one tile of a group: half `half` of its panel. D: the format, groups: in any form that products take.
template <class V, DType D, class Groups>
[[gnu::always_inline]] inline void writeTile(const Groups& groups, int half, uint8_t* to) {
  constexpr DType kForm = formOf(D);
  constexpr int kBits = kTileBits<D>, kParts = kForm == DType::kInt8 ? 1 : 2;
  TileScales<V, kBits> scales;
  const auto put = [&](typename V::F of, typename V::F minimum)
                       __attribute__((always_inline)) { scales.set(of, minimum, kExcess<D>); };
  // Two rows of quants that lie from bit kFrom of each byte on.
  const auto two = [&]<int kFrom, bool kOdd>(typename V::I quants, int word, std::integral_constant<int, kFrom>,
                                             std::bool_constant<kOdd>) __attribute__((always_inline)) {
    V::template storeTileRows<kBits, kFrom, kOdd>(quants, scales, to + 2 * word * kTileStride, kTileStride);
  };
  constexpr std::integral_constant<int, 0> kLow;
  constexpr std::false_type kEven;
  constexpr std::true_type kOdd;
  if constexpr (kForm != DType::kQ6K) {
    if constexpr (kHasMinima<kForm>) put(groups.scales(half), groups.scales(2 + half));
    else put(groups.scales(half), V::set1(0.0f));
  }
  SKEIN_UNROLL(4)
  for (int word = 0; word < 8; word += 2) {
    if constexpr (kForm == DType::kQ6K)
      if (word % 4 == 0) put(V::mul(groups.ofBlock(half), groups.scales(word / 4, half)), groups.minima(half));
    if constexpr (kBits == 4 && HasNibbles<Groups>) {
      const auto nibbles = groups.nibbles(word / 2, half);
      two(nibbles, word, kLow, kEven);
      two(nibbles, word + 1, std::integral_constant<int, 4>(), kOdd);
    } else {
      two(groups.weights(word / kParts, word % kParts, half), word, kLow, kEven);
      two(groups.weights((word + 1) / kParts, (word + 1) % kParts, half), word + 1, kLow, kOdd);
    }
  }
}

// What tiles need to know of weights of one format, packed or in the rows of a file.
struct TileFormat {
  int64_t (*offsetOf)(int group);  // bytes of a panel before a group
  // Writes one tile of a group of a panel: half `half`. Null: tiles read panels.
  void (*write)(const uint8_t* panel, int group, int half, uint8_t* to);
  ExpandStoredFn
      expand;  // of rows of a file: kStoredGroups groups at a time, which `write` then reads as a panel. Null: weights are packed
};

template <class V, DType D>
void writePackedTile(const uint8_t* panel, int group, int half, uint8_t* to) {
  writeTile<V, D>(PackedGroups<V, D>(panel, group), half, to);
}
template <class V, DType D>
void writeExpandedTile(const uint8_t* expanded, int group, int half, uint8_t* to) {
  writeTile<V, D>(ExpandedGroups<V, formOf(D)>(expanded, group), half, to);
}

// bf16 lies in panels as tiles read it.
inline constexpr TileFormat kPlainTiles = {[](int group) { return int64_t(group) * kTilePairBytes; }, nullptr, nullptr};

template <class V>
const TileFormat& tileFormatOf(DType dtype, const StoredMatrix* stored) {
  if (stored)
    return *forStored(stored->type, []<StoredType S>(Stored<S>) {
      static constexpr TileFormat kFormat = {nullptr, writeExpandedTile<V, formatOf(S).dtype>, expandStored<V, S>()};
      return &kFormat;
    });
  if (dtype == DType::kBf16) return kPlainTiles;
  return *forFormat(dtype, []<DType D>(Format<D>) {
    static constexpr TileFormat kFormat = {PackedGroups<V, D>::offsetOf, writePackedTile<V, D>, nullptr};
    return &kFormat;
  });
}

// The tiles of a product's weights. A run of `count` groups of a panel begins with begin(); then one() writes one tile after the other, two
// for each group, and tiles() returns where the run lies. So a run is written while the one before is multiplied.
template <class V>
class TileSource {
 public:
  // stored: the weight where it is not packed, else null.
  template <class Args>
  TileSource(const Args& args, const StoredMatrix* stored)
      : format_(tileFormatOf<V>(args.dtype, stored)),
        packed_(static_cast<const uint8_t*>(args.packed)),
        stored_(stored),
        n_(args.n),
        halves_(halvesOf(args)) {
    const int groups = tilesOfK(args.k);
    rowBytes_ = stored_ ? stored_->rowBytes() : 0;
    panelBytes_ = stored_ ? 0 : format_.offsetOf(groups);
    tileBytes_ = panelBytes_ / (2 * groups);
  }
  void begin(int panel, int group, int count, uint8_t* to) {
    group_ = group, end_ = group + count, half_ = 0, to_ = begin_ = to;
    if (stored_) return beginRows(panel);
    panel_ = packed_ + panel * panelBytes_;
    const uint8_t* weights = panel_ + format_.offsetOf(group);
    if (!format_.write) to_ = begin_ = const_cast<uint8_t*>(weights);
    at_ = called_ = weights + kAhead;
  }
  void one() {
    for (at_ += tileBytes_; called_ < at_; called_ += 64) __builtin_prefetch(called_);
    if (format_.expand && half_ == 0 && group_ == expandedEnd_) expand();
    if (format_.write) format_.write(panel_, group_ - firstOfPanel_, half_, to_ + half_ * kMostTileBytes);
    if (half_ == 1) group_++, to_ += kTilePairBytes;
    half_ ^= 1;
  }
  const uint8_t* tiles() const { return begin_; }

 private:
  // Packed weights and their scales are prefetched this many bytes ahead. A group takes more instructions than the processor looks ahead,
  // so that the next group's loads would not begin while this one waits for memory.
  static constexpr int64_t kAhead = 8192;
  static constexpr int kExpandedBytes = kStoredGroups * kMostExpandedBytes<V>;
  static int halvesOf(const GemmArgs&) { return 1; }
  static int halvesOf(const GatedGemmArgs&) { return 2; }

  // Of gated products gate and up take turns.
  void beginRows(int panel) {
    const int column = panel / halves_ * kPanelWidth<V>, left = n_ - column;
    rows_ =
        PanelRows<V>(*stored_, rowBytes_, panel % halves_ * n_ + column, left < kPanelWidth<V> ? left : kPanelWidth<V>);
    expandedEnd_ = group_;
  }
  void expand() {
    const int count = end_ - group_ < kStoredGroups ? end_ - group_ : kStoredGroups;
    format_.expand(rows_.of, group_, count, expanded_);
    panel_ = expanded_, firstOfPanel_ = group_, expandedEnd_ = group_ + count;
  }

  const TileFormat& format_;
  const uint8_t* const packed_;
  const StoredMatrix* const stored_;
  const int n_, halves_;
  int64_t rowBytes_, panelBytes_, tileBytes_;
  PanelRows<V> rows_ = {};
  const uint8_t* panel_ = nullptr;
  int firstOfPanel_ = 0, expandedEnd_ = 0;  // groups
  int group_ = 0, end_ = 0, half_ = 0;      // the tile that is next
  const uint8_t *at_ = nullptr, *called_ = nullptr;
  uint8_t *to_ = nullptr, *begin_ = nullptr;
  alignas(64) uint8_t expanded_[kExpandedBytes];
};

}  // namespace
}  // namespace skein

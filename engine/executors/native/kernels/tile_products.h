// Products by tiles of bf16: rows (tile_rows.h) times panels of weights of any form (tile_weights.h), for every number of rows.
//
//                          outputs 0 .. 15   16 .. 31
//                              B0 (6)         B1 (7)         of 32 k, 16 rows of pairs of k
//   rows  0 .. 15   A (4)      C0 (0)         C1 (1)         16 rows x 16 sums in f32
//   rows 16 .. 31   A (5)      C2 (2)         C3 (3)         in parentheses: the number of the tile
//
// Tiles have one order of sums for all numbers of rows (tiles_order.h), so that all numbers of rows take them, and a row's bits are those
// that it has alone: each sum is a chain over ascending runs of 32 k, which goes through memory between two runs of groups.
//
// Vectors unpack the weights of the next run while tiles multiply this one:
//
//   tiles      | run 0        | run 1        | ..       a run: some k of one panel, unpacked in the first-level cache
//   vectors      run 1        | run 2        | ..
//
// Few rows pass over panels as they lie in memory, and their sums stay in their tiles. Many rows whose activations outgrow the second-level
// cache pass over a run of k of several panels before they pass over the next:
//
//   few     panel 0: k k k k | panel 1: k k k k | ..        many     panels 0 .. 3: k | panels 0 .. 3: k | ..
#pragma once
#include "kernels/gemm.h"
#include "kernels/tile_weights.h"

namespace skein {
namespace {

constexpr int kBlockTiles = 16;                    // tiles of rows at once
constexpr int kFewTiles = 2;                       // whose sums stay in their tiles
constexpr int kRunTiles = 32, kRunTilesOfFew = 8;  // most tiles of k of a run, which begins with a superblock
constexpr int kSumFloats = kMostTileRows * 32;     // of one tile of rows and one panel
constexpr int kSumStride = 32 * 4;                 // bytes between rows of sums
constexpr int kPanelsTogether = 4;
constexpr int64_t kRowBytesInCache = 768 << 10;  // of activations, besides the weights and sums

// What a product is cut into: rows, packed panels, k. Panels that are finished together are `atOnce`.
struct TileShare {
  int rowBegin, rowEnd, panelBegin, panelEnd, kTiles, atOnce;
};

// A walk over the runs of a share: blocks of rows, panels, k.
class TileWalk {
 public:
  int firstTile, lastTile;    // tiles of rows
  int firstPanel, lastPanel;  // panels together
  int group, panel;           // of k and of the panels, those at hand

  explicit TileWalk(const TileShare& share)
      : share_(share), tileEnd_((share.rowEnd + kMostTileRows - 1) / kMostTileRows) {
    const int64_t rowBytes = int64_t(share.rowEnd - share.rowBegin) * share.kTiles * kMostTileBytes;
    panelsFirst_ = rowBytes > kRowBytesInCache;
    together_ = panelsFirst_ ? kPanelsTogether : share.atOnce;
    blockAt(share.rowBegin / kMostTileRows);
  }
  int groups() const { return share_.kTiles - group < run_ ? share_.kTiles - group : run_; }
  bool beginsK() const { return group == 0; }
  bool endsK() const { return group + run_ >= share_.kTiles; }
  bool sumsStay() const { return !panelsFirst_ && lastTile - firstTile <= kFewTiles; }
  // Moves on; false at the end.
  bool next() {
    if (panelsFirst_ ? panelOn() || groupOn() : groupOn() || panelOn()) return true;
    if (lastPanel < share_.panelEnd) return panelsAt(lastPanel), true;
    if (lastTile == tileEnd_) return false;
    return blockAt(lastTile), true;
  }

 private:
  // Begin again where they do not move on.
  bool panelOn() { return ++panel < lastPanel || (panel = firstPanel, false); }
  bool groupOn() { return (group += run_) < share_.kTiles || (group = 0, false); }
  void panelsAt(int first) {
    firstPanel = panel = first;
    lastPanel = first + together_ < share_.panelEnd ? first + together_ : share_.panelEnd;
    group = 0;
  }
  // Blocks of nearly equal numbers of tiles.
  void blockAt(int first) {
    const int left = tileEnd_ - first, blocks = (left + kBlockTiles - 1) / kBlockTiles;
    firstTile = first, lastTile = first + (left + blocks - 1) / blocks;
    run_ = runOf(lastTile - firstTile <= kFewTiles ? kRunTilesOfFew : kRunTiles);
    panelsAt(share_.panelBegin);
  }
  // Tiles of runs of nearly equal length, at most `most`.
  int runOf(int most) const {
    constexpr int kSuperblockTiles = kSuperblock / kTileK;
    const int runs = (share_.kTiles + most - 1) / most, tiles = (share_.kTiles + runs - 1) / runs;
    return (tiles + kSuperblockTiles - 1) / kSuperblockTiles * kSuperblockTiles;
  }
  TileShare share_;
  int tileEnd_, together_, run_ = 0;
  bool panelsFirst_;
};

// Spreads the tiles that a source has to write over the steps of a run.
template <class V>
class Pace {
 public:
  Pace(TileSource<V>& source, int tiles, int steps) : source_(source), tiles_(tiles), steps_(steps) {}
  [[gnu::always_inline]] void step() {
    for (due_ += tiles_; due_ >= steps_; due_ -= steps_) source_.one();
  }

 private:
  TileSource<V>& source_;
  const int tiles_, steps_;
  int due_ = 0;
};

// Where the sums of a run come from and go to: memory, or their tiles.
struct SumsPlace {
  bool zeros, loads, stores;
  explicit SumsPlace(const TileWalk& run)
      : zeros(run.beginsK()), loads(!zeros && !run.sumsStay()), stores(run.endsK() || !run.sumsStay()) {}
};

// Adds the products of one or two tiles of rows and a run of `steps` tiles of k to their sums.
template <class V, class T, bool kTwo>
void tileSums(T& tiles, const TiledRows& x, int tile, int group, int steps, const uint8_t* weights, float* sums,
              SumsPlace place, Pace<V>& pace) {
  const int64_t stride = x.stride(tile), nextStride = kTwo ? x.stride(tile + 1) : 0;
  const uint8_t* a = x.first(tile) + group * stride;
  const uint8_t* next = kTwo ? x.first(tile + 1) + group * nextStride : nullptr;
  if (place.zeros) {
    tiles.template zero<0>();
    tiles.template zero<1>();
    if constexpr (kTwo) tiles.template zero<2>(), tiles.template zero<3>();
  } else if (place.loads) {
    tiles.template load<0>(sums, kSumStride);
    tiles.template load<1>(sums + 16, kSumStride);
    if constexpr (kTwo)
      tiles.template load<2>(sums + kSumFloats, kSumStride), tiles.template load<3>(sums + kSumFloats + 16, kSumStride);
  }
  for (int step = 0; step < steps; step++, a += stride, next += nextStride, weights += kTilePairBytes) {
    tiles.template load<4>(a, kMostTileBytes);
    tiles.template load<6>(weights, kTileStride);
    tiles.template multiplyBf16<0, 4, 6>();
    tiles.template load<7>(weights + kMostTileBytes, kTileStride);
    tiles.template multiplyBf16<1, 4, 7>();
    if constexpr (kTwo) {
      tiles.template load<5>(next, kMostTileBytes);
      tiles.template multiplyBf16<2, 5, 6>();
      tiles.template multiplyBf16<3, 5, 7>();
    }
    pace.step();
  }
  if (!place.stores) return;
  tiles.template store<0>(sums, kSumStride);
  tiles.template store<1>(sums + 16, kSumStride);
  if constexpr (kTwo)
    tiles.template store<2>(sums + kSumFloats, kSumStride), tiles.template store<3>(sums + kSumFloats + 16, kSumStride);
}

// The runs of one share. `output` has two functions: prepare(row, rows, panel) calls for what finish(row, rows, panel, sums) will write
// once all k are summed. Sums lie in rows of 32; of panels that are finished together those of one lie kPanelSums after those before.
constexpr int kPanelSums = kBlockTiles * kSumFloats;

// What a thread unpacks weights into and sums in: more than the stack of a thread need hold (musl's have 128 KiB).
struct TileMemory {
  alignas(64) uint8_t weights[2][kRunTiles * kTilePairBytes];
  alignas(64) float sums[kPanelsTogether * kPanelSums];
};
inline TileMemory& tileMemory() {
  static thread_local TileMemory memory;
  return memory;
}

template <class V, class T, class Output>
class TileProduct {
 public:
  TileProduct(TileSource<V>& source, const TiledRows& x, const TileShare& share, Output output)
      : source_(source), x_(x), share_(share), output_(output) {}

  void run() {
    TileWalk run(share_);
    tiles_.configure(tilesOfRows(share_.rowEnd - run.firstTile * kMostTileRows));
    source_.begin(run.panel, run.group, run.groups(), memory_.weights[0]);
    for (int i = 0; i < 2 * run.groups(); i++) source_.one();
    for (int at = 0;; at ^= 1) {
      const uint8_t* weights = source_.tiles();
      TileWalk ahead = run;
      const bool goesOn = ahead.next();
      if (goesOn) source_.begin(ahead.panel, ahead.group, ahead.groups(), memory_.weights[at ^ 1]);
      multiply(run, weights, goesOn ? 2 * ahead.groups() : 0);
      if (!goesOn) return;
      run = ahead;
    }
  }

 private:
  // Multiplies all tiles of rows by one run of weights, while the source writes `ahead` tiles of the next. Rows are finished one pair of
  // tiles later: vectors would wait for sums that tiles have just stored.
  void multiply(const TileWalk& run, const uint8_t* weights, int ahead) {
    const int count = run.lastTile - run.firstTile;
    Pace<V> pace(source_, ahead, run.groups() * ((count + 1) / 2));
    const SumsPlace place(run);
    for (int tile = 0; tile < count; tile += 2) {
      const int both = count - tile < 2 ? 1 : 2;
      if (run.endsK())
        eachRow(run, tile, both, [&](int row, int rows, float*) { output_.prepare(row, rows, run.panel); });
      const auto sum = both == 2 ? tileSums<V, T, true> : tileSums<V, T, false>;
      sum(tiles_, x_, run.firstTile + tile, run.group, run.groups(), weights, sumsOf(run, tile), place, pace);
      if (run.endsK() && tile > 0) finish(run, tile - 2, 2);
    }
    if (run.endsK()) finish(run, (count - 1) / 2 * 2, count % 2 == 0 ? 2 : 1);
  }
  void finish(const TileWalk& run, int tile, int count) {
    eachRow(run, tile, count, [&](int row, int rows, float* sums) { output_.finish(row, rows, run.panel, sums); });
  }
  float* sumsOf(const TileWalk& run, int tile) {
    return memory_.sums + (run.panel - run.firstPanel) * kPanelSums + tile * kSumFloats;
  }
  // The share's rows of some tiles, and their sums.
  template <class Run>
  void eachRow(const TileWalk& run, int tile, int count, Run each) {
    const int first = (run.firstTile + tile) * kMostTileRows, last = first + count * kMostTileRows;
    const int begin = first < share_.rowBegin ? share_.rowBegin : first,
              end = last < share_.rowEnd ? last : share_.rowEnd;
    each(begin, end - begin, sumsOf(run, tile) + (begin - first) * 32);
  }

  TileSource<V>& source_;
  const TiledRows x_;
  const TileShare share_;
  Output output_;
  T tiles_;
  TileMemory& memory_ = tileMemory();
};

template <class V>
struct TileOutput {
  const GemmArgs& args;
  void prepare(int row, int rows, int panel) const { prefetchOutputs<V>(args, row, rows, panel * kPanelWidth<V>); }
  void finish(int row, int rows, int panel, float* sums) const { finishTile<V>(args, row, rows, panel, sums, 32); }
};

// Gate and up take turns.
template <class V>
struct GatedTileOutput {
  const GatedGemmArgs& args;
  void prepare(int row, int rows, int panel) const {
    if (panel % 2 == 0) return;
    const float* y = args.y + row * args.ldy + panel / 2 * kPanelWidth<V>;
    for (int m = 0; m < rows; m++, y += args.ldy)
      for (int i = 0; i < kPanelWidth<V>; i += 16) __builtin_prefetch(y + i, 1);
  }
  void finish(int row, int rows, int panel, float* up) const {
    if (panel % 2 == 1) finishGatedTile<V>(args, row, rows, panel / 2, up - kPanelSums, up, 32);
  }
};

template <class V, class T, bool kStored>
void tileGemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (rowBegin == rowEnd || panelBegin == panelEnd) return;
  TileSource<V> source(args, kStored ? args.stored : nullptr);
  const TiledRows x(args.rounded, args.roundedRows, args.k);
  TileProduct<V, T, TileOutput<V>>(source, x, {rowBegin, rowEnd, panelBegin, panelEnd, x.kTiles, 1}, {args}).run();
}

template <class V, class T, bool kStored>
void tileGatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (rowBegin == rowEnd || panelBegin == panelEnd) return;
  TileSource<V> source(args, kStored ? args.stored : nullptr);
  const TiledRows x(args.rounded, args.roundedRows, args.k);
  TileProduct<V, T, GatedTileOutput<V>>(source, x, {rowBegin, rowEnd, 2 * panelBegin, 2 * panelEnd, x.kTiles, 2},
                                        {args})
      .run();
}

}  // namespace
}  // namespace skein

// Attention over a bf16 cache by products of AMX's tiles, for any number of (row, head) pairs: one pair has the bits that it has among
// others, because the rows of a tile do not meet. The walk over the cache is that of attention.h in longer steps, of kTileStep absolute
// positions: what a step costs besides its scores, an update of each pair's maximum and of its sums, is as much for one of 32.
//
// A pair's own arithmetic, with sums of 32 numbers as tiles make them (tiles_order.h):
//
//   s = sums of q . k, by 32 dimensions ascending, each of them (0 .. 15 ascending) + (16 .. 31 ascending), from 0
//   softmax of the step                                                     attention_tile_softmax.h
//   o = sums of p . v, by 32 tokens ascending, each of them (even tokens ascending) + (odd tokens ascending), from 0
//   acc = acc * c + o, with one rounding
//
// Tokens of a step that no pair of a block sees are left out by groups of 32: their probabilities are 0, which changes no sum.
#pragma once
#include "kernels/attention.h"
#include "kernels/attention_tiles_in_place.h"

namespace skein {
namespace {

// The tiles, by number: sums C of two row tiles by two tiles of the cache, the row tiles A and the cache's B.
//
//          B 6   B 7
//   A 4    C 0   C 1
//   A 5    C 2   C 3

template <int kRowTiles, class T>
inline void zeroSums(T& tiles) {
  tiles.template zero<0>();
  tiles.template zero<1>();
  if constexpr (kRowTiles == 2) {
    tiles.template zero<2>();
    tiles.template zero<3>();
  }
}

// Adds the products of one line: rows of A lie `stride` words apart.
template <int kRowTiles, class T>
inline void addLine(T& tiles, const Paired* a, int64_t stride, const Paired* b) {
  tiles.template load<4>(a, stride * 4);
  tiles.template load<6>(b, kMostTileBytes);
  tiles.template load<7>(b + kTileWords, kMostTileBytes);
  tiles.template multiplyBf16<0, 4, 6>();
  tiles.template multiplyBf16<1, 4, 7>();
  if constexpr (kRowTiles == 2) {
    tiles.template load<5>(a + kMostTileRows * stride, stride * 4);
    tiles.template multiplyBf16<2, 5, 6>();
    tiles.template multiplyBf16<3, 5, 7>();
  }
}

template <int kRowTiles, class T>
inline void storeSums(T& tiles, float* to, int64_t stride) {
  tiles.template store<0>(to, stride * 4);
  tiles.template store<1>(to + 16, stride * 4);
  if constexpr (kRowTiles == 2) {
    tiles.template store<2>(to + kMostTileRows * stride, stride * 4);
    tiles.template store<3>(to + kMostTileRows * stride + 16, stride * 4);
  }
}

// The scores of a block over one group, whose keys are in scratch.
template <int kRowTiles, class T>
void scoreGroup(T& tiles, const Paired* queries, const TileScratch& scratch, float* scores) {
  zeroSums<kRowTiles>(tiles);
  for (int line = 0; line < scratch.lines; line++)
    addLine<kRowTiles>(tiles, queries + line * 16, int64_t(scratch.queryWords()), scratch.keys + line * 2 * kTileWords);
  storeSums<kRowTiles>(tiles, scores, kTileStep);
}

// The products of a block's probabilities with one line of the values, which is in scratch.
template <int kRowTiles, class T>
void weighValues(T& tiles, const PairBlock& block, const TileScratch& scratch) {
  zeroSums<kRowTiles>(tiles);
  for (int group = block.first; group < block.end; group++)
    addLine<kRowTiles>(tiles, block.probabilities() + group * 16, kTileStep, scratch.values + group * 2 * kTileWords);
  storeSums<kRowTiles>(tiles, scratch.products, kTileLine);
}

// The blocks that go through a step together.
struct PairBlocks {
  PairBlock of[kTileBlocks];
  int count;
};

// Brings the keys group by group into tiles, and lets all blocks that see the group multiply them.
template <class V, class T>
void scoreBlocks(T& tiles, const Rows& rows, const TileStep& step, const PairBlocks& blocks, const Paired* queries,
                 const TileScratch& scratch, float* scores) {
  for (int group = step.first; group < step.end; group++) {
    keyTiles<V>(rows, step.position + group * kTileLine, step.valid - group * kTileLine, scratch);
    for (int i = 0; i < blocks.count; i++) {
      const PairBlock& block = blocks.of[i];
      if (group < block.first || group >= block.end) continue;
      const auto run = block.count > kMostTileRows ? scoreGroup<2, T> : scoreGroup<1, T>;
      run(tiles, queries + block.pair * scratch.queryWords(), scratch,
          scores + i * kTileBlock * kTileStep + group * kTileLine);
    }
  }
}

// Likewise the values, line by line.
template <class V, class T>
void weighBlockValues(T& tiles, const Rows& rows, const TileStep& step, const PairBlocks& blocks,
                      const TileScratch& scratch, float* partial) {
  for (int line = 0; line < scratch.lines; line++) {
    for (int group = step.first; group < step.end; group++)
      valueTilesOf<V>(rows.args, rows.kvHead, step.position + group * kTileLine, step.valid - group * kTileLine, line,
                      scratch.values + group * 2 * kTileWords);
    for (int i = 0; i < blocks.count; i++) {
      const auto run = blocks.of[i].count > kMostTileRows ? weighValues<2, T> : weighValues<1, T>;
      run(tiles, blocks.of[i], scratch);
      addProducts<V>(scratch.products, blocks.of[i], rows.headDim(), line, partial);
    }
  }
}

// Runs a step for up to kStepPairs pairs.
template <class V, class T>
void attendBlocks(T& tiles, const Rows& rows, const TileStep& step, int pair, int count, const TileScratch& scratch,
                  float* partial) {
  PairBlocks blocks;
  blocks.count = 0;
  for (int done = 0; done < count; done += kTileBlock) {
    const int rest = count - done;
    blocks.of[blocks.count++] =
        blockOfPairs(rows, step, pair + done, rest < kTileBlock ? rest : kTileBlock, scratch.scores + done * kTileStep);
  }
  scoreBlocks<V>(tiles, rows, step, blocks, scratch.queries, scratch, scratch.scores);
  if (hasSinkScores(rows, step))
    scoreBlocks<V>(tiles, rows, step, blocks, scratch.sinkQueries, scratch, scratch.ofSinks);
  for (int i = 0; i < blocks.count; i++)
    weighStep<V>(rows, step, scratch.ofSinks + i * kTileBlock * kTileStep, scratch, blocks.of[i]);
  weighBlockValues<V>(tiles, rows, step, blocks, scratch, partial);
}

// Runs a step for the pairs [pair, pairs), each of which sees a token of it.
template <class V, class T>
void attendTileStep(T& tiles, const Rows& rows, int pair, int pairs, int position, const TileScratch& scratch,
                    float* partial) {
  const AttentionArgs& args = rows.args;
  if (pair >= pairs) return;
  const int left = rows.seenBy(pairs - 1) - position, valid = left < kTileStep ? left : kTileStep;
  TileStep step{.position = position, .first = 0, .end = (valid + kTileLine - 1) / kTileLine, .valid = valid};
  const int begin = (args.window.on() ? rows.windowOf(pair) : args.begin) - position;
  if (begin > 0 && position >= args.window.sinks) step.first = begin / kTileLine;
  if (readsTilesInPlace(rows, pairs - pair))
    return attendInPlaceByTiles<V>(tiles, rows, step, pair, pairs - pair, scratch, partial);
  for (; pair < pairs; pair += kStepPairs)
    attendBlocks<V>(tiles, rows, step, pair, pairs - pair < kStepPairs ? pairs - pair : kStepPairs, scratch, partial);
}

// As splitOf, in steps of kTileStep.
template <class V, class T>
void walkByTiles(T& tiles, const Rows& rows, int split, const TileScratch& scratch, float* partial) {
  const AttentionArgs& args = rows.args;
  const AttentionWindow& window = args.window;
  const int heads = rows.heads(), end = rows.seen();
  const int splitBegin = split * kSplitTokens, splitEnd = splitBegin + kSplitTokens;
  int first = args.from > splitBegin ? args.from : splitBegin;
  if (args.begin > first) first = args.begin / kTileStep * kTileStep;
  for (int step = first; step < splitEnd && step < end; step += kTileStep) {
    int pairs = (rows.end - rows.begin) * heads;
    if (window.on()) {
      const int begin = args.firstPosition + rows.begin - window.recent + 1;
      if (step >= window.sinks && begin > step) step = begin / kTileStep * kTileStep;
      if (step >= splitEnd) return;
      // For rows from here on the window begins after the step.
      const int unseen = step + kTileStep - 1 + window.recent - args.firstPosition;
      if (step >= window.sinks && unseen < rows.end) pairs = (unseen - rows.begin) * heads;
    }
    // Rows before this one end before the step begins.
    const int firstSeeing = args.bothWays == 0                ? step - args.firstPosition
                            : window.on() && !args.wholeAhead ? step - args.firstPosition - window.recent + 1
                                                              : rows.begin;
    const int firstRow = firstSeeing > rows.begin ? firstSeeing : rows.begin;
    attendTileStep<V>(tiles, rows, (firstRow - rows.begin) * heads, pairs, step, scratch, partial);
  }
}

// The numbers that a partial result has after its accumulators, side by side while the split is computed.
inline void takeSums(const TileScratch& scratch, int pairs, int headDim, bool goesOn, float* partial) {
  for (int p = 0; p < pairs; p++) {
    float* acc = partial + size_t(p) * (headDim + 2);
    if (!goesOn) {
      for (int d = 0; d < headDim; d++) acc[d] = 0.0f;
      acc[headDim] = kMinusInfinity;
      acc[headDim + 1] = 0.0f;
    }
    scratch.maxima[p] = acc[headDim];
    scratch.sums[p] = acc[headDim + 1];
  }
}
inline void giveSums(const TileScratch& scratch, int pairs, int headDim, float* partial) {
  for (int p = 0; p < pairs; p++) {
    float* acc = partial + size_t(p) * (headDim + 2);
    acc[headDim] = scratch.maxima[p];
    acc[headDim + 1] = scratch.sums[p];
  }
}

// For a table that is `others` over caches of other types.
inline size_t tileAttentionScratchFloats(int32_t headDim, int32_t pairs, const KernelTable& others) {
  const size_t ofOthers = others.attentionScratchFloats(headDim, pairs), own = tileScratchFloats(headDim, pairs);
  return own > ofOthers ? own : ofOthers;
}

// Over a bf16 cache, without scores that depend on distances. args.from is a multiple of kTileStep.
template <class V, class T>
void attentionSplitByTiles(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                           float* memory, float* partial) {
  static_assert(V::W == 16);
  const int headDim = args.kv->headDim;
  const Rows rows{args, kvHead, rowBegin, rowEnd, {}};
  const int pairs = (rowEnd - rowBegin) * rows.heads();
  const TileScratch scratch = tileScratch(headDim, pairs, memory);
  takeSums(scratch, pairs, headDim, args.from > split * kSplitTokens, partial);
  roundQueriesForTiles<V>(rows, scratch);
  T tiles;
  tiles.configure(wholeTiles());
  walkByTiles<V>(tiles, rows, split, scratch, partial);
  giveSums(scratch, pairs, headDim, partial);
}

}  // namespace
}  // namespace skein

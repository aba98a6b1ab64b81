// What a block of (row, head) pairs does with the sums that tiles give it, wherever these have read the cache: masks, the softmax of the
// step, and the accumulators.
#pragma once
#include "kernels/attention_tile_softmax.h"
#include "kernels/tiles.h"

namespace skein {
namespace {

// A step of the cache, of which groups [first, end) are seen, with `valid` tokens.
struct TileStep {
  int position;
  int first, end, valid;
};

// Pairs [pair, pair + count) of a step, over those of its groups that any of them sees.
struct PairBlock {
  int pair, count;
  int first, end;
  float* scores;  // [count][kTileStep]; then probabilities
  float corrections[kTileBlock];

  Paired* probabilities() const {
    return reinterpret_cast<Paired*>(scores);
  }  // [count][kTileStep], of which half is used
};

inline PairBlock blockOfPairs(const Rows& rows, const TileStep& step, int pair, int count, float* scores) {
  const AttentionArgs& args = rows.args;
  const int seen = (rows.seenBy(pair + count - 1) - step.position + kTileLine - 1) / kTileLine;
  const bool windowed = args.window.on() && step.position >= args.window.sinks;
  const int unseen = windowed ? (rows.windowOf(pair) - step.position) / kTileLine : 0;
  PairBlock block;
  block.pair = pair, block.count = count;
  block.first = unseen > step.first ? unseen : step.first;
  block.end = seen < step.end ? seen : step.end;
  block.scores = scores;
  return block;
}

// acc = acc * correction + products, in one line of the pairs of a block.
template <class V>
void addProducts(const float* products, const PairBlock& block, int headDim, int line, float* partial) {
  const int d = line * kTileLine, left = headDim - d;
  float* acc = partial + size_t(block.pair) * (headDim + 2) + d;
  for (int p = 0; p < block.count; p++, acc += headDim + 2, products += kTileLine) {
    const auto correction = V::set1(block.corrections[p]);
    typename V::F sums[2];
    V::zip(V::load(products), V::load(products + 16), sums[0], sums[1]);
    SKEIN_UNROLL(2)
    for (int i = 0; i < 2; i++) {
      const int lanes = left - i * V::W;
      if (lanes > 0)
        storeHead<V>(acc + i * V::W, lanes, V::fma(loadHead<V>(acc + i * V::W, lanes, 0.0f), correction, sums[i]));
    }
  }
}

template <class V>
void hideUnseen(const Rows& rows, const TileStep& step, const PairBlock& block) {
  const AttentionArgs& args = rows.args;
  const int begin = block.first * kTileLine, last = block.end * kTileLine;
  const auto seenBy = [&](int pair) {
    return SeenTokens{.begin = (args.window.on() ? rows.windowOf(pair) : args.begin) - step.position,
                      .end = rows.seenBy(pair) - step.position,
                      .sinks = args.window.sinks - step.position};
  };
  // Later pairs end later and begin later.
  if (seenBy(block.pair).end >= last && seenBy(block.pair + block.count - 1).begin <= begin) return;
  for (int p = 0; p < block.count; p++) {
    const SeenTokens seen = seenBy(block.pair + p);
    if (!seen.whole(begin, last)) hideScores<V>(block.scores + p * kTileStep, begin, last, seen);
  }
}

inline bool hasSinkScores(const Rows& rows, const TileStep& step) {
  return rows.args.sinkQ && step.position < rows.args.window.sinks;
}

// Makes probabilities of the block's scores. ofSinks: those of the queries for sinks, where there are any.
template <class V>
void weighStep(const Rows& rows, const TileStep& step, const float* ofSinks, const TileScratch& scratch,
               PairBlock& block) {
  const AttentionArgs& args = rows.args;
  float scale = args.scale;
  const int begin = block.first * kTileLine, last = block.end * kTileLine;
  if (hasSinkScores(rows, step))
    for (int p = 0; p < block.count; p++)
      takeSinkScores<V>(block.scores + p * kTileStep, ofSinks + p * kTileStep, begin, last,
                        args.window.sinks - step.position);
  if (args.softCap > 0.0f) {
    for (int p = 0; p < block.count; p++)
      capTileScores<V>(block.scores + p * kTileStep, begin, last, scale, args.softCap);
    scale = 1.0f;
  }
  hideUnseen<V>(rows, step, block);
  using WeighFn = void (*)(float*, int, float, float*, float*, float*, Paired*);
  static constexpr auto kWeigh =
      tilesOf<WeighFn, 1, kTileGroups>([]<int N>(TileRows<N>) -> WeighFn { return weighBlock<V, N>; });
  kWeigh.of[block.end - block.first](block.scores + begin, block.count, scale, scratch.maxima + block.pair,
                                     scratch.sums + block.pair, block.corrections,
                                     block.probabilities() + block.first * 16);
}

}  // namespace
}  // namespace skein

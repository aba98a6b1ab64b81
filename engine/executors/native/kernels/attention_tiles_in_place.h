// Up to eight (row, head) pairs over a step of the cache as it lies, with the bits that attention_by_tiles.h gives them. To bring a step
// into the form of tiles costs as much as many pairs' products, and few share it.
//
// A line of the cache is a row of a tile too: 16 words of two neighbours, which are not two numbers of k but two tokens, or two
// dimensions. Rows of A that hold zeros in one half of their words keep them apart:
//
//   rows 0 .. 7    (q[0] 0) (q[1] 0) ..      times   (k[0][0] k[0][1]) (k[0][2] k[0][3]) ..     scores of even tokens
//   rows 8 .. 15   (0 q[0]) (0 q[1]) ..              (k[1][0] k[1][1]) (k[1][2] k[1][3]) ..     scores of odd tokens
//
// One product takes 16 numbers of k so, of which one chain is 0: the dimensions 0 .. 15 and then 16 .. 31 of a line, or the even tokens and
// then the odd ones of 32. Those are the two chains that a product of pairs adds to each other; two products from 0 do the same:
//
//   0 + (first + second)  ==  (0 + (first + 0)) + (0 + second)
//
// The sums of lines, and of groups of tokens, are then added in their order by vectors.
#pragma once
#include "kernels/attention_tile_block.h"

namespace skein {
namespace {

constexpr int kSpreadPairs = kMostTileRows / 2;

// True if a step's lines are whole and lie in one block each. All pairs see the same tokens up to the last: what only some of them see would
// meet the others as a product with 0, which infinities and NaN do not pass unseen.
inline bool readsTilesInPlace(const Rows& rows, int pairs) {
  const KvLayer& kv = *rows.args.kv;
  return pairs <= kSpreadPairs && kv.tokensPerBlock >= kTileLine && kv.headDim % kTileLine == 0 &&
         rows.endOf(rows.begin) == rows.seen();
}

// Writes a row's words (low, high) into row `row` of the two tiles of A that multiply first the low numbers, then the high ones.
template <class V>
inline void spreadWords(const Paired* words, int row, Paired* tiles) {
  const auto both = V::loadI(reinterpret_cast<const uint8_t*>(words));
  const auto low = V::set1I(0xffff), high = V::set1I(int32_t(0xffff0000u));
  const auto store = [&](Paired* to, typename V::I a) { V::storeI(reinterpret_cast<uint8_t*>(to), a); };
  Paired* first = tiles + row * 16;
  Paired* second = first + kTileWords;
  store(first, V::both(both, low));
  store(first + kSpreadPairs * 16, V::upBits(both, 16));
  store(second, V::downBits(both, 16));
  store(second + kSpreadPairs * 16, V::both(both, high));
}

// The tiles of the queries of a block.
template <class V>
void spreadQueries(const Paired* queries, const PairBlock& block, const TileScratch& scratch, Paired* to) {
  for (int p = 0; p < block.count; p++)
    for (int line = 0; line < scratch.lines; line++)
      spreadWords<V>(queries + (block.pair + p) * scratch.queryWords() + line * 16, p, to + line * 2 * kTileWords);
}

// Two products from 0 by rows of B that lie `stride` bytes apart, the second of them `apart` bytes after the first. kC: 0 or 1.
template <int kC, class T>
inline void spreadLine(T& tiles, const Paired* a, const uint16_t* b, int64_t stride, int64_t apart, float* to) {
  tiles.template zero<kC>();
  tiles.template load<4>(a, kMostTileBytes);
  tiles.template load<6>(b, stride);
  tiles.template multiplyBf16<kC, 4, 6>();
  tiles.template load<5>(a + kTileWords, kMostTileBytes);
  tiles.template load<7>(reinterpret_cast<const char*>(b) + apart, stride);
  tiles.template multiplyBf16<kC, 5, 7>();
  tiles.template store<kC>(to, kMostTileBytes);
}

// Adds `count` tiles of sums in their order; to: [pairs][stride], numbers of the low halves and 16 after them those of the high ones.
template <class V>
inline void joinParts(const float* parts, int count, int pairs, float* to, int stride) {
  for (int p = 0; p < pairs; p++)
    for (int half = 0; half < 2; half++) {
      const float* from = parts + (p + half * kSpreadPairs) * 16;
      auto sum = V::load(from);
      for (int i = 1; i < count; i++) sum = V::add(sum, V::load(from + i * kTileWords));
      V::store(to + p * stride + half * 16, sum);
    }
}

// Brings 32 lines that are needed soon nearer, `stride` numbers apart.
inline void prefetchLines(const uint16_t* lines, int64_t stride) {
  for (int i = 0; i < kTileLine; i++) __builtin_prefetch(lines + i * stride, 0, 2);
}

// The keys of a group of the next step, or at its beginning of what is attended to after the split. Null: there are none.
inline const uint16_t* keysAhead(const Rows& rows, const TileStep& step, int group) {
  const int position = step.position + kTileStep + group * kTileLine;
  if (position < rows.seen()) return keysAt(rows, position);
  return group == 0 ? static_cast<const uint16_t*>(rows.args.next) : nullptr;
}

// Values are prefetched while keys are multiplied, and the next step's keys with the values: half a step lies between lines and their use, more
// than the nearest cache holds. (A step that lies near already takes a fifth longer so, one from memory a fifth less.)
template <class V, class T>
void scoresInPlace(T& tiles, const Rows& rows, const TileStep& step, int pairs, const Paired* queries,
                   const TileScratch& scratch, float* scores) {
  constexpr int64_t kBytes = kTileLine * 2;
  for (int group = step.first; group < step.end; group++) {
    const int position = step.position + group * kTileLine;
    const uint16_t *keys = keysAt(rows, position), *values = valuesAt(rows, position);
    for (int line = 0; line < scratch.lines; line++) {
      prefetchLines(values + line * kTileLine, rows.headDim());
      const auto run = line % 2 ? spreadLine<1, T> : spreadLine<0, T>;
      run(tiles, queries + line * 2 * kTileWords, keys + line * kTileLine * kTileLine, kBytes, 16 * kBytes,
          scratch.parts + line * kTileWords);
    }
    joinParts<V>(scratch.parts, scratch.lines, pairs, scores + group * kTileLine, kTileStep);
  }
}

template <class V, class T>
void valuesInPlace(T& tiles, const Rows& rows, const TileStep& step, const PairBlock& block, const TileScratch& scratch,
                   float* partial) {
  const int64_t row = rows.headDim() * 2;
  const uint16_t *values[kTileGroups], *ahead[kTileGroups];
  for (int group = step.first; group < step.end; group++) {
    values[group] = valuesAt(rows, step.position + group * kTileLine);
    ahead[group] = keysAhead(rows, step, group);
    for (int p = 0; p < block.count; p++)
      spreadWords<V>(block.probabilities() + p * kTileStep + group * 16, p,
                     scratch.spreadProbabilities + group * 2 * kTileWords);
  }
  for (int line = 0; line < scratch.lines; line++) {
    for (int group = step.first; group < step.end; group++) {
      if (ahead[group]) prefetchLines(ahead[group] + line * kTileLine * kTileLine, kTileLine);
      const auto run = group % 2 ? spreadLine<1, T> : spreadLine<0, T>;
      run(tiles, scratch.spreadProbabilities + group * 2 * kTileWords, values[group] + line * kTileLine, 2 * row, row,
          scratch.parts + (group - step.first) * kTileWords);
    }
    joinParts<V>(scratch.parts, step.end - step.first, block.count, scratch.products, kTileLine);
    addProducts<V>(scratch.products, block, rows.headDim(), line, partial);
  }
}

template <class V, class T>
void attendInPlaceByTiles(T& tiles, const Rows& rows, const TileStep& step, int pair, int count,
                          const TileScratch& scratch, float* partial) {
  PairBlock block = blockOfPairs(rows, step, pair, count, scratch.scores);
  spreadQueries<V>(scratch.queries, block, scratch, scratch.spreadQueries);
  scoresInPlace<V>(tiles, rows, step, count, scratch.spreadQueries, scratch, block.scores);
  if (hasSinkScores(rows, step)) {
    spreadQueries<V>(scratch.sinkQueries, block, scratch, scratch.spreadSinkQueries);
    scoresInPlace<V>(tiles, rows, step, count, scratch.spreadSinkQueries, scratch, scratch.ofSinks);
  }
  weighStep<V>(rows, step, scratch.ofSinks, scratch, block);
  valuesInPlace<V>(tiles, rows, step, block, scratch, partial);
}

}  // namespace
}  // namespace skein

// Brings a step of a bf16 cache into the form of AMX's tiles, and keeps a split's scratch. Rows of a tile are 16 words of two bf16, and
// one product takes 32 numbers of k: word i holds k = i and k = i + 16 of 32 dimensions, or tokens 2 i and 2 i + 1.
//
//   K as stored   [headDim][32 tokens]        V as stored   [32 tokens][headDim]
//   row d         k[d][0] k[d][1] k[d][2] ..  row 2 t       v[2t][0] v[2t][1] v[2t][2] ..
//   row d + 16    k[d+16][0] ..               row 2 t + 1   v[2t+1][0] ..
//
//   two tiles of 32 dimensions x 32 tokens     row d  (k[d][0] k[d+16][0]) (k[d][2] k[d+16][2]) ..       even tokens
//                                              row d  (k[d][1] k[d+16][1]) (k[d][3] k[d+16][3]) ..       odd tokens
//   two tiles of 32 tokens x 32 dimensions     row t  (v[2t][0] v[2t+1][0]) (v[2t][2] v[2t+1][2]) ..     even dimensions
//                                              row t  (v[2t][1] v[2t+1][1]) (v[2t][3] v[2t+1][3]) ..     odd dimensions
//
// So halves of words are put together where they lie, and no number moves across a vector. A row of scores has the even tokens of each 32
// and then the odd ones; a word of probabilities is made of two of its numbers that lie 16 apart.
#pragma once
#include "kernels/attention_products.h"
#include "kernels/tile_config.h"

namespace skein {
namespace {

constexpr int kTileLine = 32;                       // dimensions or tokens of one product of tiles
constexpr int kTileWords = 16 * kMostTileRows;      // of a tile
constexpr int kTileStep = 128;                      // tokens of a step: one update of a row's maximum
constexpr int kTileGroups = kTileStep / kTileLine;  // of a step
constexpr int kTileBlock = 2 * kMostTileRows;       // (row, head) pairs whose tiles share those of the cache
constexpr int kTileBlocks = 2;                      // that go through a step together
constexpr int kStepPairs = kTileBlock * kTileBlocks;
static_assert(kSplitTokens % kTileStep == 0 && kTileLine == kStepTokens);

// Memory of a split. Words are pairs of bf16. All that is used again and again, scores and tiles of the cache, fits into the nearest cache
// together: tiles of a whole step would not, and to write them there and back costs as much as the products.
struct TileScratch {
  int lines;           // of headDim, filled up with zeros
  Paired* keys;        // of one group: [lines][even tokens, odd tokens] tiles
  Paired* values;      // of one line: [kTileGroups][even dimensions, odd dimensions] tiles
  float* scores;       // [scoreRows][kTileStep]; the words of probabilities take the place of the first half of a row
  float* ofSinks;      // likewise, by the queries for sinks
  float* products;     // [kTileBlock][even dimensions, odd dimensions] of one line
  uint16_t* gathered;  // [lines * 32][32 tokens]: keys of 32 tokens in several blocks
  float* maxima;       // by pair
  float* sums;
  Paired* queries;  // [pairs][lines * 16]
  Paired* sinkQueries;
  // Where few pairs read the cache in place: see attention_tiles_in_place.h.
  Paired* spreadQueries;  // [lines][2] tiles
  Paired* spreadSinkQueries;
  Paired* spreadProbabilities;  // [kTileGroups][2] tiles
  float* parts;                 // tiles of sums, as many as there are lines, and at least kTileGroups

  size_t queryWords() const { return size_t(lines) * 16; }
};

constexpr int linesOf(int headDim) { return (headDim + kTileLine - 1) / kTileLine; }

// Rows of scores that this number of pairs needs at once.
constexpr size_t scoreRows(int pairs) { return size_t(pairs < kStepPairs ? padTo(pairs, kMostTileRows) : kStepPairs); }
// Tiles reach past the last pair.
constexpr size_t paddedPairs(int pairs) { return size_t(padTo(pairs, 16)) + kTileBlock; }

inline size_t tileScratchFloats(int32_t headDim, int32_t pairs) {
  const size_t lines = size_t(linesOf(headDim)), rows = paddedPairs(pairs);
  const size_t step = 2 * (lines + kTileGroups) * kTileWords + lines * kTileLine * 16;
  const size_t block = scoreRows(pairs) * 2 * kTileStep + kTileBlock * kTileLine;
  const size_t inPlace = (2 * 2 * lines + 2 * kTileGroups + lines + kTileGroups) * kTileWords;
  return step + block + 2 * rows + 2 * rows * lines * 16 + inPlace + 16;
}

// Lays the scratch out, in lines of the processor's cache.
inline TileScratch tileScratch(int headDim, int pairs, float* memory) {
  const size_t lines = size_t(linesOf(headDim)), rows = paddedPairs(pairs);
  float* at = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory) + 63) / 64 * 64);
  const auto take = [&](size_t floats) {
    float* taken = at;
    at += floats;
    return taken;
  };
  const auto words = [&](size_t count) { return reinterpret_cast<Paired*>(take(count)); };
  TileScratch s{};
  s.lines = int(lines);
  s.keys = words(lines * 2 * kTileWords);
  s.values = words(size_t(kTileGroups) * 2 * kTileWords);
  s.scores = take(scoreRows(pairs) * kTileStep);
  s.ofSinks = take(scoreRows(pairs) * kTileStep);
  s.products = take(size_t(kTileBlock) * kTileLine);
  s.gathered = reinterpret_cast<uint16_t*>(take(lines * kTileLine * 16));
  s.maxima = take(rows);
  s.sums = take(rows);
  s.queries = words(rows * s.queryWords());
  s.sinkQueries = words(rows * s.queryWords());
  s.spreadQueries = words(lines * 2 * kTileWords);
  s.spreadSinkQueries = words(lines * 2 * kTileWords);
  s.spreadProbabilities = words(size_t(kTileGroups) * 2 * kTileWords);
  s.parts = take((lines + kTileGroups) * kTileWords);
  return s;
}

// Rounds a query to bf16, with the words of its tiles.
template <class V>
void roundForTiles(const float* q, int headDim, int lines, Paired* to) {
  for (int line = 0; line < lines; line++) {
    uint16_t rounded[kTileLine];
    for (int i = 0; i < kTileLine; i += V::W) {
      const int left = headDim - line * kTileLine - i;
      V::storeBf16(rounded + i, left >= V::W ? V::load(q + line * kTileLine + i)
                                : left > 0   ? loadHead<V>(q + line * kTileLine + i, left, 0.0f)
                                             : V::set1(0.0f));
    }
    const auto low = V::downBits(V::bitsOf(V::loadBf16(rounded)), 16), high = V::bitsOf(V::loadBf16(rounded + 16));
    V::storeI(reinterpret_cast<uint8_t*>(to + line * 16), V::either(low, high));
  }
}

template <class V>
void roundQueriesForTiles(const Rows& rows, const TileScratch& scratch) {
  const int pairs = (rows.end - rows.begin) * rows.heads();
  for (int pair = 0; pair < pairs; pair++) {
    const size_t at = pair * scratch.queryWords();
    roundForTiles<V>(rows.query(pair, false), rows.headDim(), scratch.lines, scratch.queries + at);
    if (rows.args.sinkQ)
      roundForTiles<V>(rows.query(pair, true), rows.headDim(), scratch.lines, scratch.sinkQueries + at);
  }
}

// Writes the words of two lines of 32 numbers into a row of two tiles.
template <class V>
inline void pairLines(const uint16_t* a, const uint16_t* b, Paired* to) {
  typename V::I even, odd;
  V::pairHalves(a, b, even, odd);
  V::storeI(reinterpret_cast<uint8_t*>(to), even);
  V::storeI(reinterpret_cast<uint8_t*>(to + kTileWords), odd);
}

alignas(64) constexpr uint16_t kZeroLine[kTileLine] = {};

// Keys of 32 tokens that lie in several blocks, as one block would have them. Blocks past `valid` tokens are not read: the table may
// end there.
inline const uint16_t* gatherKeys(const AttentionArgs& args, int kvHead, int position, int valid, uint16_t* to) {
  const int tokens = args.kv->tokensPerBlock, headDim = args.kv->headDim;
  for (int t = 0; t < kTileLine; t += tokens) {
    const uint16_t* k = t < valid ? blockOf<uint16_t>(args, kvHead, position + t) : nullptr;
    for (int d = 0; d < headDim; d++) {
      uint16_t* line = to + d * kTileLine + t;
      if (k) __builtin_memcpy(line, k + size_t(d) * tokens, size_t(tokens) * 2);
      else __builtin_memset(line, 0, size_t(tokens) * 2);
    }
  }
  return to;
}

// The keys and the values of the group at `position`, where it lies in one block.
inline const uint16_t* keysAt(const Rows& rows, int position) {
  const KvLayer& kv = *rows.args.kv;
  return blockOf<uint16_t>(rows.args, rows.kvHead, position) + size_t(position % kv.tokensPerBlock) * kv.headDim;
}
inline const uint16_t* valuesAt(const Rows& rows, int position) {
  const KvLayer& kv = *rows.args.kv;
  return keysAt(rows, position) + size_t(kv.tokensPerBlock) * kv.headDim;
}

// Brings the keys of a group into tiles; `valid`: its tokens that any row sees.
template <class V>
void keyTiles(const Rows& rows, int position, int valid, const TileScratch& scratch) {
  const KvLayer& kv = *rows.args.kv;
  const uint16_t* k = kv.tokensPerBlock < kTileLine
                          ? gatherKeys(rows.args, rows.kvHead, position, valid, scratch.gathered)
                          : keysAt(rows, position);
  Paired* to = scratch.keys;
  for (int line = 0; line < scratch.lines; line++, to += 2 * kTileWords) {
    const uint16_t* first = k + size_t(line) * kTileLine * kTileLine;
    const int left = kv.headDim - line * kTileLine;
    if (left >= kTileLine) {
      for (int i = 0; i < 16; i++) pairLines<V>(first + i * kTileLine, first + (16 + i) * kTileLine, to + i * 16);
      continue;
    }
    for (int i = 0; i < 16; i++)
      pairLines<V>(i < left ? first + i * kTileLine : kZeroLine,
                   i + 16 < left ? first + (16 + i) * kTileLine : kZeroLine, to + i * 16);
  }
}

// Two rows of V in one line. What lies past their last number is other rows of the block, which give columns that nothing reads; the
// block's last rows are copied, because memory may end after them.
template <class V>
inline void valueRows(const uint16_t* even, const uint16_t* odd, const uint16_t* blockEnd, int left, Paired* to) {
  if (odd + kTileLine <= blockEnd) return pairLines<V>(even, odd, to);
  uint16_t copies[2][kTileLine] = {};
  for (int i = 0; i < kTileLine && i < left; i++) copies[0][i] = even[i], copies[1][i] = odd[i];
  pairLines<V>(copies[0], copies[1], to);
}

// Brings a line of a group's values into tiles.
template <class V>
void valueTilesOf(const AttentionArgs& args, int kvHead, int position, int valid, int line, Paired* to) {
  const KvLayer& kv = *args.kv;
  const int tokens = kv.tokensPerBlock, headDim = kv.headDim;
  const int together = tokens < kTileLine ? tokens : kTileLine;
  for (int t = 0; t < kTileLine; t += together) {
    if (t >= valid) {
      for (int i = t / 2; i < (t + together) / 2; i++) pairLines<V>(kZeroLine, kZeroLine, to + i * 16);
      continue;
    }
    const uint16_t* block = blockOf<uint16_t>(args, kvHead, position + t);
    const uint16_t* v = block + size_t(tokens + (position + t) % tokens) * headDim + line * kTileLine;
    const uint16_t* end = block + size_t(2 * tokens) * headDim;
    for (int i = 0; i < together; i += 2)
      valueRows<V>(v + size_t(i) * headDim, v + size_t(i + 1) * headDim, end, headDim - line * kTileLine,
                   to + (t + i) / 2 * 16);
  }
}

}  // namespace
}  // namespace skein

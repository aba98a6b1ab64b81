// Products of queries and probabilities with a step, by the type of its elements: one interface to the tiles of
// attention_tiles.h, attention_pairs.h or attention_quantized.h.
//
//   scores<N>()   q . k of N (row, head) pairs with the step's 32 tokens
//   values<N>()   acc = acc * correction + probabilities . v
//   kPairs        pairs whose sums fill the registers
//   kCoarse       probabilities are rounded to fewer bits than f32
#pragma once
#include "kernels/attention_step.h"

namespace skein {
namespace {

// The rows [begin, end) of one KV head, whose (row, head) pairs are counted from `begin` on.
struct Rows {
  const AttentionArgs& args;
  int kvHead;
  int begin, end;
  RoundedQueries rounded;

  int heads() const { return args.numHeads / args.kv->kvHeads; }
  int rowOf(int pair) const { return begin + pair / heads(); }
  // The first position after those that a row attends to.
  int endOf(int row) const {
    const int own = args.firstPosition + row + 1;
    if (args.bothWays == 0) return own;
    if (args.wholeAhead || !args.window.on() || args.window.recent > args.bothWays - own) return args.bothWays;
    return own + args.window.recent - 1;
  }
  int seenBy(int pair) const { return endOf(rowOf(pair)); }
  // The first position after those that any row attends to.
  int seen() const { return endOf(end - 1); }
  // The first position of a window that a pair attends to, besides the sinks; it may be below 0.
  int windowOf(int pair) const { return args.firstPosition + rowOf(pair) + 1 - args.window.recent; }
  int headOf(int pair) const { return kvHead * heads() + pair % heads(); }
  int headDim() const { return args.kv->headDim; }
  // The f32 query of a pair, or its query for the sinks.
  const float* query(int pair, bool ofSinks) const {
    if (ofSinks) return args.sinkQ + (int64_t(rowOf(pair)) * args.numHeads + headOf(pair)) * headDim();
    return args.q + rowOf(pair) * args.ldq + int64_t(headOf(pair)) * headDim();
  }
  const uint16_t* roundedQuery(int pair, bool ofSinks) const {
    return RoundedQueries::of(ofSinks ? rounded.sinkRows : rounded.rows, pair, headDim());
  }
};

template <class V>
struct FloatProducts {
  static constexpr int kPairs = V::kAttentionPairs;
  static constexpr bool kCoarse = false;

  template <int N, bool kPrefetch, class T>
  static void scores(const Rows& rows, int pair, bool ofSinks, const Step<T>& step, float* scores) {
    const float* q[N];
    for (int p = 0; p < N; p++) q[p] = rows.query(pair + p, ofSinks);
    scoreTile<V, N, kPrefetch>(q, step.k, step.nextK, rows.headDim(), scores);
  }
  template <int N, bool kPrefetch, class T>
  static void values(const float* probabilities, const float* corrections, const Step<T>& step, int headDim,
                     float* const* acc) {
    valueTiles<V, N, kPrefetch>(probabilities, corrections, step.v, step.nextV, headDim, acc);
  }
};

template <class V>
struct PairedProducts {
  static constexpr int kPairs = kPairedTile<V>;
  static constexpr bool kCoarse = true;

  template <int N, bool kPrefetch, class T>
  static void scores(const Rows& rows, int pair, bool ofSinks, const Step<T>& step, float* scores) {
    const uint16_t* q[N];
    for (int p = 0; p < N; p++) q[p] = rows.roundedQuery(pair + p, ofSinks);
    pairedScoreTile<V, N, kPrefetch>(q, step.k, step.nextK, rows.headDim(), scores);
  }
  template <int N, bool kPrefetch, class T>
  static void values(const float* probabilities, const float* corrections, const Step<T>& step, int headDim,
                     float* const* acc) {
    pairedValueTiles<V, N, kPrefetch>(probabilities, corrections, step.v, step.nextV, valueStride<V>(headDim), headDim,
                                      acc);
  }
};

template <class V>
struct QuantizedProducts {
  static constexpr int kPairs = kQuantizedTile<V>;
  static constexpr bool kCoarse = true;

  template <int N, bool kPrefetch>
  static void scores(const Rows& rows, int pair, bool ofSinks, const Step<int8_t>& step, float* scores) {
    const uint16_t* q[N];
    for (int p = 0; p < N; p++) q[p] = rows.roundedQuery(pair + p, ofSinks);
    const float* scales = (ofSinks ? rows.rounded.sinkScales : rows.rounded.scales) + pair;
    quantizedScoreTile<V, N, kPrefetch>(q, scales, step.k, step.kScales, step.nextK, rows.headDim(), scores);
  }
  template <int N, bool kPrefetch>
  static void values(const float* probabilities, const float* corrections, const Step<int8_t>& step, int headDim,
                     float* const* acc) {
    quantizedValueTiles<V, N, kPrefetch>(probabilities, corrections, step.v, step.vScales, step.nextV, step.stride,
                                         headDim, acc);
  }
};

template <class V, class T>
using Products = std::conditional_t<std::is_same_v<T, int8_t>, QuantizedProducts<V>,
                                    std::conditional_t<kStepInPairs<V, T>, PairedProducts<V>, FloatProducts<V>>>;

}  // namespace
}  // namespace skein

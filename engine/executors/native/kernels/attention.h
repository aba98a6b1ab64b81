// Paged attention of one KV head over one split of a sequence's cache, for context and generation rows alike.
//
// The cache is walked in steps of 32 absolute positions. A step's K and V are brought to f32 once and serve every row and head
// that reads them, or are read in place (readsInPlace); the numbers are the same:
//
//   positions   0 ........ 31 | 32 ....... 63 | 64 ...      steps (never moved by chunk, block or split)
//   blocks      [ 7 ][ 2 ][ 9 ][ 4 ] | [ 1 ] ...            tokensPerBlock 8: four blocks a step
//   K scratch   [headDim][32]   transposed: 32 scores grow side by side, one fma a dimension
//   V scratch   [32][padded headDim]
//
// If the processor multiplies pairs of bf16 and the cache is bf16, both scratches hold words of two rows each, and queries and
// probabilities are rounded (attention_pairs.h); the walk is the same. It is also the same over quants, which are multiplied
// without widening them to f32 (attention_quantized.h).
//
// A row's own arithmetic: s = q . k (ascending d; attention_relative.h says what distances add) * scale, capped if there is a cap, masked beyond its position; m' = max(m, s);
// c = exp(m - m'); p = exp(s - m'); sum = sum * c + p; acc = acc * c, then + p[t] * v[t] in ascending t. No other row takes part
// in it.
//
// With a window a row takes part only in steps of which it sees a token; inside them the mask has a lower edge too. The steps do
// not move, so a row that sees all positions before it gets the same bits as without a window. If rows attend both ways, all rows
// see all positions of the sequence, and only the last step has a mask; with a window steps after the row have one too,
// and where they see a segment of the sequence alone, the first step. Rows of a picture see all positions up to its
// end, and of those before their window none.
#pragma once
#include "kernels/attention_relative.h"
#include "kernels/tiles.h"

namespace skein {
namespace {

// Most pairs for which widening bf16 in each tile is cheaper than widening the step first: generation rows.
constexpr int kPairsInPlace = 6;

// Most pairs at once over a step of T.
template <class V, class T>
constexpr int kPairsAtOnce =
    sizeof(T) == 2 && Products<V, T>::kPairs > kPairsInPlace ? kPairsInPlace : Products<V, T>::kPairs;

// Replaces the scores of the step's sinks, which q gave, by those of the queries for sinks.
template <class V, int N, class T>
[[gnu::noinline]] void scoreSinks(const Rows& rows, int pair, int stepStart, const Step<T>& step, float* scores) {
  float ofSinks[N * kStepTokens];
  Products<V, T>::template scores<N, false>(rows, pair, true, step, ofSinks);
  const int left = rows.args.window.sinks - stepStart;
  const int sinks = left < kStepTokens ? left : kStepTokens;
  for (int p = 0; p < N; p++)
    for (int t = 0; t < sinks; t++) scores[p * kStepTokens + t] = ofSinks[p * kStepTokens + t];
}

// Scales and caps the scores, so that softmaxStep takes them with a scale of 1.
template <class V>
void capScores(float* scores, int count, float scale, float cap) {
  for (int i = 0; i < count; i += V::W)
    V::store(scores + i, softCapped<V>(V::mul(V::load(scores + i), V::set1(scale)), cap));
}

// Makes probabilities of the scores of N pairs that start at `pair`.
template <class V, int N, bool kCoarse>
void weighScores(const Rows& rows, int pair, int stepStart, float* scores, float* const* acc, float* corrections) {
  const AttentionArgs& args = rows.args;
  const AttentionWindow& window = args.window;
  float scale = args.scale;
  if (args.softCap > 0.0f) {
    capScores<V>(scores, N * kStepTokens, scale, args.softCap);
    scale = 1.0f;
  }
  if (args.relative && args.relative->biases) {
    addBiases<V, N>(rows, pair, stepStart, scale, scores);
    scale = 1.0f;
  }
  Visible visible[N];
  bool whole = true;
  for (int p = 0; p < N; p++) {
    visible[p].end = rows.seenBy(pair + p) - stepStart;
    visible[p].begin = (window.on() ? rows.windowOf(pair + p) : args.begin) - stepStart;
    visible[p].sinks = window.sinks - stepStart;
    whole = whole && visible[p].whole();
  }
  if (!whole) {
    maskScores<V, N>(scores, scale, visible);
    scale = 1.0f;
  }
  softmaxStep<V, N, kCoarse>(scores, scale, acc, args.kv->headDim, corrections);
}

// Runs one step for N pairs that start at `pair`.
template <class V, int N, bool kPrefetch, class T>
void attendPairs(const Rows& rows, int pair, int stepStart, const Step<T>& step, float* partial) {
  using P = Products<V, T>;
  const AttentionArgs& args = rows.args;
  const int headDim = args.kv->headDim;
  float* acc[N];
  float corrections[N];
  float scores[N * kStepTokens];
  for (int p = 0; p < N; p++) acc[p] = partial + size_t(pair + p) * (headDim + 2);
  if constexpr (std::is_same_v<T, float>) {
    if (args.relative && args.relative->keys) relativeScores<V, N>(rows, pair, stepStart, step.k, scores);
    else P::template scores<N, kPrefetch>(rows, pair, false, step, scores);
  } else {
    P::template scores<N, kPrefetch>(rows, pair, false, step, scores);
  }
  if (args.sinkQ && stepStart < args.window.sinks) scoreSinks<V, N>(rows, pair, stepStart, step, scores);
  weighScores<V, N, P::kCoarse>(rows, pair, stepStart, scores, acc, corrections);
  P::template values<N, kPrefetch>(scores, corrections, step, headDim, acc);
}

template <class T>
using AttendFn = void (*)(const Rows&, int, int, const Step<T>&, float*);

// The function for `count` pairs at once. kPrefetch: it prefetches the next step.
template <class V, class T, bool kPrefetch>
AttendFn<T> attendFor(int count) {
  static constexpr auto kTiles = tilesOf<AttendFn<T>, 1, kPairsAtOnce<V, T>>(
      []<int N>(TileRows<N>) -> AttendFn<T> { return attendPairs<V, N, kPrefetch, T>; });
  return kTiles.of[count];
}

// Runs one step for the pairs from `pair` on, as many at once as fit, then the rest. The first of them prefetch the next step, which
// no step in scratch has whose rows are paired up.
template <class V, class T>
void attendStep(const Rows& rows, int pair, int pairs, int stepStart, const Step<T>& step, float* partial) {
  const auto atOnce = [&] { return pairs - pair < kPairsAtOnce<V, T> ? pairs - pair : kPairsAtOnce<V, T>; };
  if constexpr (!std::is_same_v<T, Paired>) {
    if (step.nextK && pair < pairs) {
      const int count = atOnce();
      attendFor<V, T, true>(count)(rows, pair, stepStart, step, partial);
      pair += count;
    }
  }
  for (int count; pair < pairs; pair += count) {
    count = atOnce();
    attendFor<V, T, false>(count)(rows, pair, stepStart, step, partial);
  }
}

// True if a step can be read in place: it lies in one block, with rows of whole vectors.
template <class V, class T>
bool readsInPlace(const KvLayer& kv, int pairs) {
  const int columns = kStepInPairs<V, T> ? 2 * V::W : V::W;
  return kv.tokensPerBlock >= kStepTokens && kv.headDim % columns == 0 && (sizeof(T) != 2 || pairs <= kPairsInPlace);
}

// The first step of the split from `step` on of which a row sees a token: the rows from rowBegin on see the sinks, and
// nothing else before the window of the first of these rows.
inline int skipUnseen(const AttentionArgs& args, int rowBegin, int step) {
  if (step < args.window.sinks) return step;
  const int first = args.firstPosition + rowBegin - args.window.recent + 1;
  return first > step ? first / kStepTokens * kStepTokens : step;
}

// Brings the step at `position` into scratch and runs it for the pairs [pair, pairs).
template <class V, class T>
void attendWide(const Rows& rows, int pair, int pairs, int position, float* scratch, float* partial) {
  const AttentionArgs& args = rows.args;
  const int left = rows.seen() - position;
  const int valid = left < kStepTokens ? left : kStepTokens;
  if constexpr (std::is_same_v<T, int8_t>) {
    const Step<int8_t> step = quantStep<V>(args, rows.kvHead, position, valid, scratch);
    return attendStep<V, int8_t>(rows, pair, pairs, position, step, partial);
  } else {
    using Wide = std::conditional_t<kStepInPairs<V, T>, Paired, float>;
    Wide* k = reinterpret_cast<Wide*>(scratch);
    Wide* v = k + size_t(args.kv->headDim) * kStepTokens;
    if constexpr (kStepInPairs<V, T>) pairStep<V>(args, rows.kvHead, position, valid, k, v);
    else loadStep<V, T>(args, rows.kvHead, position, valid, k, v);
    attendStep<V, Wide>(rows, pair, pairs, position, {.k = k, .v = v}, partial);
  }
}

// Like attendWide, but reads the step in place. The first pairs prefetch the step that follows, or what is attended to
// after the split.
template <class V, class T>
void attendInPlace(const Rows& rows, int pair, int pairs, int position, float* partial) {
  const AttentionArgs& args = rows.args;
  const KvLayer& kv = *args.kv;
  const auto keysAt = [&](int at) {
    return blockOf<T>(args, rows.kvHead, at) + size_t(at % kv.tokensPerBlock) * kv.headDim;
  };
  const size_t toValues = size_t(kv.tokensPerBlock) * kv.headDim;
  Step<T> step{.k = keysAt(position), .v = nullptr, .stride = kv.headDim};
  step.v = step.k + toValues;
  const int next = position + kStepTokens;
  step.nextK = next < rows.seen() ? keysAt(next) : static_cast<const T*>(args.next);
  step.nextV = step.nextK + (step.nextK ? toValues : 0);
  if constexpr (std::is_same_v<T, int8_t>) {
    const int8_t* block = blockOf<T>(args, rows.kvHead, position);
    step.kScales = reinterpret_cast<const float*>(block + kv.quantBytes()) + position % kv.tokensPerBlock;
    step.vScales = step.kScales + kv.tokensPerBlock;
  }
  attendStep<V, T>(rows, pair, pairs, position, step, partial);
}

template <class V, class T>
void splitOf(const Rows& rows, int split, float* scratch, float* partial) {
  const AttentionArgs& args = rows.args;
  const int heads = rows.heads();
  const int end = rows.seen();
  const int splitBegin = split * kSplitTokens, splitEnd = splitBegin + kSplitTokens;
  int first = args.from > splitBegin ? args.from : splitBegin;
  if (args.begin > first) first = args.begin / kStepTokens * kStepTokens;
  for (int step = first; step < splitEnd && step < end; step += kStepTokens) {
    int pairs = (rows.end - rows.begin) * heads;
    if (args.window.on()) {
      step = skipUnseen(args, rows.begin, step);
      if (step >= splitEnd) return;
      // For rows from here on the window begins after the step.
      const int unseen = step + kStepTokens - 1 + args.window.recent - args.firstPosition;
      if (step >= args.window.sinks && unseen < rows.end) pairs = (unseen - rows.begin) * heads;
    }
    // Rows before this one end before the step begins.
    const int firstSeeing = args.bothWays == 0                    ? step - args.firstPosition
                            : args.window.on() && !args.wholeAhead ? step - args.firstPosition - args.window.recent + 1
                                                                   : rows.begin;
    const int firstRow = firstSeeing > rows.begin ? firstSeeing : rows.begin;
    const int pair = (firstRow - rows.begin) * heads;
    if (readsInPlace<V, T>(*args.kv, pairs - pair)) attendInPlace<V, T>(rows, pair, pairs, step, partial);
    else attendWide<V, T>(rows, pair, pairs, step, scratch, partial);
  }
}

// T: element type of the cache.
template <class V, class T>
void attentionSplitOf(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                      float* scratch, float* partial) {
  const int headDim = args.kv->headDim;
  const int pairs = (rowEnd - rowBegin) * (args.numHeads / args.kv->kvHeads);
  const bool goesOn = args.from > split * kSplitTokens;
  for (int p = 0; p < pairs && !goesOn; p++) {
    float* acc = partial + size_t(p) * (headDim + 2);
    for (int d = 0; d < headDim; d++) acc[d] = 0.0f;
    acc[headDim] = kMinusInfinity;
    acc[headDim + 1] = 0.0f;
  }
  Rows rows{args, kvHead, rowBegin, rowEnd, {}};
  if constexpr (std::is_same_v<T, int8_t> || kStepInPairs<V, T>)
    rows.rounded = roundQueries<V, T>(args, kvHead, rowBegin, rowEnd, scratch + stepScratchFloats<V>(headDim));
  splitOf<V, T>(rows, split, scratch, partial);
}

template <class V>
void attentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                    float* scratch, float* partial) {
  const DType dtype = args.kv->dtype;
  const auto run = dtype == DType::kF32    ? attentionSplitOf<V, float>
                   : dtype == DType::kBf16 ? attentionSplitOf<V, uint16_t>
                                           : attentionSplitOf<V, int8_t>;
  run(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
}

// Merges splits in ascending position. A split in which the row sees nothing has maximum -inf and is left out.
template <class V>
void attentionMerge(const float* partials, int64_t stride, int32_t splits, int32_t headDim, float* y) {
  // What follows for one split, whose weight is 1.
  if (splits == 1 && partials[headDim] - partials[headDim] == 0.0f) {
    const auto inverse = V::set1(1.0f / partials[headDim + 1]);
    for (int d = 0; d < headDim; d += V::W) {
      const int left = headDim - d < V::W ? headDim - d : V::W;
      storeHead<V>(y + d, left, V::mul(V::add(loadHead<V>(partials + d, left, 0.0f), V::set1(0.0f)), inverse));
    }
    return;
  }
  float maximum = kMinusInfinity;
  for (int s = 0; s < splits; s++) {
    const float m = partials[s * stride + headDim];
    maximum = m > maximum ? m : maximum;
  }
  float sum = 0.0f;
  for (int d = 0; d < headDim; d++) y[d] = 0.0f;
  for (int s = 0; s < splits; s++) {
    const float* part = partials + s * stride;
    if (part[headDim] == kMinusInfinity) continue;
    float lanes[V::W];
    V::store(lanes, vexp<V>(V::set1(part[headDim] - maximum)));
    const auto weight = V::set1(lanes[0]);
    sum = sum + lanes[0] * part[headDim + 1];
    for (int d = 0; d < headDim; d += V::W) {
      const int left = headDim - d < V::W ? headDim - d : V::W;
      storeHead<V>(y + d, left, V::fma(weight, loadHead<V>(part + d, left, 0.0f), loadHead<V>(y + d, left, 0.0f)));
    }
  }
  const float inverse = 1.0f / sum;
  for (int d = 0; d < headDim; d++) y[d] = y[d] * inverse;
}

}  // namespace
}  // namespace skein

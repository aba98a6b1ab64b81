// Paged attention of one KV head over one split of a sequence's cache, for context and generation rows alike.
//
// The cache is walked in steps of 32 absolute positions. A step's K and V are brought to f32 once and serve every row and
// head that looks at it, or are read where they lie (readsInPlace); the numbers are the same:
//
//   positions   0 ........ 31 | 32 ....... 63 | 64 ...      steps (never moved by chunk, block or split)
//   blocks      [ 7 ][ 2 ][ 9 ][ 4 ] | [ 1 ] ...            tokensPerBlock 8: four blocks a step
//   K scratch   [headDim][32]   transposed: 32 scores grow side by side, one fma a dimension
//   V scratch   [32][padded headDim]
//
// A row's own arithmetic: s = q . k (ascending d) * scale, masked beyond its position; m' = max(m, s); c = exp(m - m');
// p = exp(s - m'); sum = sum * c + p; acc = acc * c, then + p[t] * v[t] in ascending t. No other row takes part in it.
//
// With a window a row takes part only in steps of which it sees a token; inside them the mask has a lower edge too. The
// steps stay where they are, so a row that sees all positions before it gets the bits that it has without a window.
// Functions come in two kinds, kWindowed or not, so that the common one pays nothing for the other.
#pragma once
#include "kernels/math.h"

namespace skein {
namespace {

constexpr int padTo(int n, int width) { return (n + width - 1) / width * width; }

template <class V>
size_t attentionScratchFloats(int32_t headDim, int32_t) {
  return size_t(headDim) * kStepTokens + size_t(kStepTokens) * padTo(headDim, V::W);
}

template <class T>
inline float cacheValue(T x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else
    return fromBf16(x);
}

template <class V>
inline typename V::F loadCache(const float* p) {
  return V::load(p);
}
template <class V>
inline typename V::F loadCache(const uint16_t* p) {
  return V::loadBf16(p);
}

// `count` cache values to f32.
template <class V, class T>
inline void widen(const T* from, int count, float* to) {
  int i = 0;
  for (; i + V::W <= count; i += V::W) V::store(to + i, loadCache<V>(from + i));
  for (; i < count; i++) to[i] = cacheValue(from[i]);
}

// Where the block of a position begins, in the part of one KV head.
template <class T, bool kWindowed>
inline const T* blockOf(const AttentionArgs& args, int kvHead, int position) {
  const KvLayer& kv = *args.kv;
  const size_t ofHead = size_t(kvHead) * 2 * kv.tokensPerBlock * kv.headDim;
  const int index = position / kv.tokensPerBlock;
  if constexpr (kWindowed) {
    if (args.fresh && index >= args.freshBlock)
      return static_cast<const T*>(args.fresh) + size_t(index - args.freshBlock) * kv.elementsPerBlock() + ofHead;
    return static_cast<const T*>(kv.base) + size_t(args.blockTable[args.window.entryOf(index)]) * kv.elementsPerBlock() + ofHead;
  } else {
    return static_cast<const T*>(kv.base) + size_t(args.blockTable[index]) * kv.elementsPerBlock() + ofHead;
  }
}

// Fills the scratch with the step's first `valid` tokens, rounded up to a group; the rest is zero. Blocks behind `valid`
// are not looked at: the table may end there.
template <class V, class T, bool kWindowed>
void loadStep(const AttentionArgs& args, int kvHead, int stepStart, int valid, float* kStep, float* vStep) {
  const KvLayer& kv = *args.kv;
  const int tokens = kv.tokensPerBlock;
  const int headDim = kv.headDim;
  const int group = tokens < kStepTokens ? tokens : kStepTokens;
  const int padded = padTo(headDim, V::W);
  for (int t = 0; t < kStepTokens; t += group) {
    if (t >= valid) {
      for (int d = 0; d < headDim; d++)
        for (int i = 0; i < group; i++) kStep[d * kStepTokens + t + i] = 0.0f;
      for (int i = 0; i < group * padded; i++) vStep[size_t(t) * padded + i] = 0.0f;
      continue;
    }
    const int position = stepStart + t;
    const int offset = position % tokens;
    const T* block = blockOf<T, kWindowed>(args, kvHead, position);
    const T* k = block + size_t(offset / group) * headDim * group;
    const T* v = block + size_t(tokens + offset) * headDim;
    for (int d = 0; d < headDim; d++) widen<V>(k + size_t(d) * group, group, kStep + d * kStepTokens + t);
    for (int i = 0; i < group; i++) {
      float* row = vStep + size_t(t + i) * padded;
      widen<V>(v + size_t(i) * headDim, headDim, row);
      for (int d = headDim; d < padded; d++) row[d] = 0.0f;
    }
  }
}

// What the next step reads comes while this one computes: a cache line or two of K for each dimension, of V for each token.
template <class T, int kElements>
inline void prefetch(const T* p) {
  constexpr int kBytes = kElements * int(sizeof(T));
#pragma GCC unroll 4
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + i);
}

// scores[p * 32 ..] = q[p] . K for N (row, head) pairs.
template <class V, int N, bool kPrefetch, class T>
void scoreTile(const float* const* q, const T* kStep, const T* next, int headDim, float* scores) {
  constexpr int kVectors = kStepTokens / V::W;
  typename V::F acc[N][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < N; p++)
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) acc[p][i] = V::set1(0.0f);
  for (int d = 0; d < headDim; d++) {
    if constexpr (kPrefetch) prefetch<T, kStepTokens>(next + d * kStepTokens);
    typename V::F a[N];
#pragma GCC unroll 4
    for (int p = 0; p < N; p++) a[p] = V::set1(q[p][d]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      const auto keys = loadCache<V>(kStep + d * kStepTokens + i * V::W);
#pragma GCC unroll 4
      for (int p = 0; p < N; p++) acc[p][i] = V::fma(a[p], keys, acc[p][i]);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < N; p++)
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) V::store(scores + p * kStepTokens + i * V::W, acc[p][i]);
}

// The tokens of a step that a pair attends to: those before `end` and, with a window, of these the ones from `begin` on
// and the ones before `sinks`.
template <bool kWindowed>
struct Visible {
  int end;
};
template <>
struct Visible<true> {
  int end, begin, sinks;
};

// Scores of N pairs -> probabilities against each pair's new maximum, and the corrections of what came before: one
// exponential for all of them. acc[p] is followed by the pair's maximum and sum. Each pair sees a token of the step.
template <class V, int N, bool kWindowed>
void softmaxStep(float* scores, float scale, const Visible<kWindowed>* visible, float* const* acc, int headDim,
                 float* corrections) {
  constexpr int kVectors = kStepTokens / V::W;
  static_assert(N <= V::W);
  float gaps[V::W] = {};
  // Where every pair sees the whole step, nothing needs a mask.
  bool whole = !kWindowed;
  for (int p = 0; p < N; p++) whole = whole && visible[p].end >= kStepTokens;
#pragma GCC unroll 4
  for (int p = 0; p < N; p++) {
    const auto bound = V::set1(float(visible[p].end));
    auto top = V::set1(kMinusInfinity);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      float* at = scores + p * kStepTokens + i * V::W;
      auto s = V::mul(V::load(at), V::set1(scale));
      const auto lanes = V::add(V::iota(), V::set1(float(i * V::W)));
      if (!whole) s = V::selectLess(lanes, bound, s, V::set1(kMinusInfinity));
      if constexpr (kWindowed) {
        const auto ofSinks = V::selectLess(lanes, V::set1(float(visible[p].sinks)), s, V::set1(kMinusInfinity));
        s = V::selectLess(lanes, V::set1(float(visible[p].begin)), ofSinks, s);
      }
      top = V::max(top, s);
      V::store(at, s);
    }
    const float stepMaximum = V::reduceMax(top);
    float& maximum = acc[p][headDim];
    const float m = stepMaximum > maximum ? stepMaximum : maximum;
    gaps[p] = maximum - m;
    maximum = m;
  }
  float lanes[V::W];
  V::store(lanes, vexpBelow<V>(V::load(gaps)));
#pragma GCC unroll 4
  for (int p = 0; p < N; p++) {
    const auto m = V::set1(acc[p][headDim]);
    auto total = V::set1(0.0f);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      float* at = scores + p * kStepTokens + i * V::W;
      const auto e = vexpBelow<V>(V::sub(V::load(at), m));
      V::store(at, e);
      total = V::add(total, e);
    }
    corrections[p] = lanes[p];
    float& sum = acc[p][headDim + 1];
    sum = sum * lanes[p] + V::reduceAdd(total);
  }
}

// acc[p] = acc[p] * correction[p] + sum over t of scores[p][t] * V[t], for N pairs and kVectors vectors of dimensions.
template <class V, int N, int kVectors, bool kPrefetch, class T>
void valueTile(const float* scores, const float* corrections, const T* vStep, const T* next, int padded, float* const* acc,
               int lanes) {
  typename V::F sum[N][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < N; p++)
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      const int left = lanes - i * V::W;
      sum[p][i] = V::mul(loadHead<V>(acc[p] + i * V::W, left < V::W ? left : V::W, 0.0f), V::set1(corrections[p]));
    }
  for (int t = 0; t < kStepTokens; t++) {
    if constexpr (kPrefetch) prefetch<T, kVectors * V::W>(next + size_t(t) * padded);
    typename V::F a[N];
#pragma GCC unroll 4
    for (int p = 0; p < N; p++) a[p] = V::set1(scores[p * kStepTokens + t]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      const auto values = loadCache<V>(vStep + size_t(t) * padded + i * V::W);
#pragma GCC unroll 4
      for (int p = 0; p < N; p++) sum[p][i] = V::fma(a[p], values, sum[p][i]);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < N; p++)
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      const int left = lanes - i * V::W;
      storeHead<V>(acc[p] + i * V::W, left < V::W ? left : V::W, sum[p][i]);
    }
}

template <class V, int N, bool kPrefetch, class T>
void valueTiles(const float* scores, const float* corrections, const T* vStep, const T* next, int headDim, float* const* acc) {
  constexpr int kVectors = 4;
  const int padded = padTo(headDim, V::W);
  float* at[N];
  int d = 0;
  for (; d + kVectors * V::W <= headDim; d += kVectors * V::W) {
    for (int p = 0; p < N; p++) at[p] = acc[p] + d;
    valueTile<V, N, kVectors, kPrefetch>(scores, corrections, vStep + d, next + d, padded, at, kVectors * V::W);
  }
  for (; d < headDim; d += V::W) {
    for (int p = 0; p < N; p++) at[p] = acc[p] + d;
    valueTile<V, N, 1, kPrefetch>(scores, corrections, vStep + d, next + d, padded, at, headDim - d);
  }
}

// Scores of the step's sinks, in place of what q gave for them.
template <class V, int N, class T>
void scoreSinks(const AttentionArgs& args, int kvHead, int rowBegin, int pair, int stepStart, const T* kStep, float* scores) {
  const int headDim = args.kv->headDim;
  const int heads = args.numHeads / args.kv->kvHeads;
  const float* q[N];
  float ofSinks[N * kStepTokens];
  for (int p = 0; p < N; p++) {
    const int row = rowBegin + (pair + p) / heads;
    const int head = kvHead * heads + (pair + p) % heads;
    q[p] = args.sinkQ + (int64_t(row) * args.numHeads + head) * headDim;
  }
  scoreTile<V, N, false>(q, kStep, kStep, headDim, ofSinks);
  const int left = args.window.sinks - stepStart;
  const int sinks = left < kStepTokens ? left : kStepTokens;
  for (int p = 0; p < N; p++)
    for (int t = 0; t < sinks; t++) scores[p * kStepTokens + t] = ofSinks[p * kStepTokens + t];
}

// Where a step's K and V lie, and those of the step that follows.
template <class T>
struct Step {
  const T* k;
  const T* v;
  const T* nextK;
  const T* nextV;
};

// One step for N pairs that start at `pair` (pair = row * heads per KV head + head).
template <class V, int N, bool kWindowed, bool kPrefetch, class T>
void attendPairs(const AttentionArgs& args, int kvHead, int rowBegin, int pair, int stepStart, const Step<T>& keysAndValues,
                 float* partial) {
  const auto& [kStep, vStep, kNext, vNext] = keysAndValues;
  const int headDim = args.kv->headDim;
  const int heads = args.numHeads / args.kv->kvHeads;
  const float* q[N];
  float* acc[N];
  Visible<kWindowed> visible[N];
  float corrections[N];
  float scores[N * kStepTokens];
  for (int p = 0; p < N; p++) {
    const int row = rowBegin + (pair + p) / heads;
    const int head = kvHead * heads + (pair + p) % heads;
    q[p] = args.q + row * args.ldq + int64_t(head) * headDim;
    acc[p] = partial + size_t(pair + p) * (headDim + 2);
    visible[p].end = args.firstPosition + row - stepStart + 1;
    if constexpr (kWindowed) {
      visible[p].begin = visible[p].end - args.window.recent;
      visible[p].sinks = args.window.sinks - stepStart;
    }
  }
  scoreTile<V, N, kPrefetch>(q, kStep, kNext, headDim, scores);
  if constexpr (kWindowed) {
    if (args.sinkQ && stepStart < args.window.sinks)
      scoreSinks<V, N>(args, kvHead, rowBegin, pair, stepStart, kStep, scores);
  }
  softmaxStep<V, N, kWindowed>(scores, args.scale, visible, acc, headDim, corrections);
  valueTiles<V, N, kPrefetch>(scores, corrections, vStep, vNext, headDim, acc);
}

// One step for the pairs from `pair` on, N at once, then what is left. The first of them call for the next step.
template <class V, int N, bool kWindowed, class T>
void attendStep(const AttentionArgs& args, int kvHead, int rowBegin, int pair, int pairs, int stepStart, const Step<T>& step,
                float* partial) {
  if (pair + N <= pairs && step.nextK) {
    attendPairs<V, N, kWindowed, true>(args, kvHead, rowBegin, pair, stepStart, step, partial);
    pair += N;
  }
  for (; pair + N <= pairs; pair += N)
    attendPairs<V, N, kWindowed, false>(args, kvHead, rowBegin, pair, stepStart, step, partial);
  if constexpr (N > 1)
    if (pair < pairs) attendStep<V, N - 1, kWindowed>(args, kvHead, rowBegin, pair, pairs, stepStart, step, partial);
}

// Pairs up to which widening bf16 in each tile is cheaper than widening the step first: generation rows.
constexpr int kPairsInPlace = 6;

// A step that lies in one block, with rows of whole vectors, can be read where it is.
template <class V, class T>
bool readsInPlace(const KvLayer& kv, int pairs) {
  return kv.tokensPerBlock >= kStepTokens && kv.headDim % V::W == 0 && (sizeof(T) == 4 || pairs <= kPairsInPlace);
}

// The first step of the split from `step` on of which a row sees a token: the rows from rowBegin on see the sinks, and
// nothing else before the window of the first of them.
inline int skipUnseen(const AttentionArgs& args, int rowBegin, int step) {
  if (step < args.window.sinks) return step;
  const int first = args.firstPosition + rowBegin - args.window.recent + 1;
  return first > step ? first / kStepTokens * kStepTokens : step;
}

template <class V, class T, bool kWindowed>
void splitOf(const AttentionArgs& args, int kvHead, int rowBegin, int rowEnd, int split, float* scratch, float* partial) {
  const KvLayer& kv = *args.kv;
  const int heads = args.numHeads / kv.kvHeads;
  float* kWide = scratch;
  float* vWide = scratch + size_t(kv.headDim) * kStepTokens;
  const int lastPosition = args.firstPosition + rowEnd - 1;
  const int splitEnd = (split + 1) * kSplitTokens;
  for (int step = split * kSplitTokens; step < splitEnd && step <= lastPosition; step += kStepTokens) {
    int pairs = (rowEnd - rowBegin) * heads;
    if constexpr (kWindowed) {
      step = skipUnseen(args, rowBegin, step);
      if (step >= splitEnd) return;
      // The window of the rows from this one on begins behind the step.
      const int unseen = step + kStepTokens - 1 + args.window.recent - args.firstPosition;
      if (step >= args.window.sinks && unseen < rowEnd) pairs = (unseen - rowBegin) * heads;
    }
    // Rows before this one end before the step begins.
    const int firstRow = step - args.firstPosition > rowBegin ? step - args.firstPosition : rowBegin;
    const int pair = (firstRow - rowBegin) * heads;
    if (readsInPlace<V, T>(kv, pairs - pair)) {
      const int offset = step % kv.tokensPerBlock;
      const size_t toValues = size_t(kv.tokensPerBlock) * kv.headDim;
      const T* k = blockOf<T, kWindowed>(args, kvHead, step) + size_t(offset) * kv.headDim;
      const int next = step + kStepTokens;
      const T* nextK = next <= lastPosition ? blockOf<T, kWindowed>(args, kvHead, next) + size_t(next % kv.tokensPerBlock) * kv.headDim
                                            : static_cast<const T*>(args.next);
      attendStep<V, V::kAttentionPairs, kWindowed, T>(args, kvHead, rowBegin, pair, pairs, step,
                                                      {k, k + toValues, nextK, nextK + (nextK ? toValues : 0)}, partial);
      continue;
    }
    const int valid = lastPosition + 1 - step < kStepTokens ? lastPosition + 1 - step : kStepTokens;
    loadStep<V, T, kWindowed>(args, kvHead, step, valid, kWide, vWide);
    attendStep<V, V::kAttentionPairs, kWindowed, float>(args, kvHead, rowBegin, pair, pairs, step,
                                                        {kWide, vWide, nullptr, nullptr}, partial);
  }
}

template <class V, class T>
void splitOfType(const AttentionArgs& args, int kvHead, int rowBegin, int rowEnd, int split, float* scratch, float* partial) {
  if (args.window.on())
    splitOf<V, T, true>(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
  else
    splitOf<V, T, false>(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
}

template <class V>
void attentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                    float* scratch, float* partial) {
  const int headDim = args.kv->headDim;
  const int pairs = (rowEnd - rowBegin) * (args.numHeads / args.kv->kvHeads);
  for (int p = 0; p < pairs; p++) {
    float* acc = partial + size_t(p) * (headDim + 2);
    for (int d = 0; d < headDim; d++) acc[d] = 0.0f;
    acc[headDim] = kMinusInfinity;
    acc[headDim + 1] = 0.0f;
  }
  if (args.kv->dtype == DType::kF32)
    splitOfType<V, float>(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
  else
    splitOfType<V, uint16_t>(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
}

// Splits in ascending position. A split in which the row sees nothing has maximum -inf and is left out.
template <class V>
void attentionMerge(const float* partials, int64_t stride, int32_t splits, int32_t headDim, float* y) {
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

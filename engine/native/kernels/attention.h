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
#include "kernels/attention_tiles.h"

namespace skein {
namespace {

template <class V>
size_t attentionScratchFloats(int32_t headDim, int32_t) {
  return size_t(headDim) * kStepTokens + size_t(kStepTokens) * padTo(headDim, V::W);
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

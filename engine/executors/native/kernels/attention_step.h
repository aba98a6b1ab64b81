// Brings a step of the cache, and the queries of a split, into scratch.
#pragma once
#include <type_traits>

#include "kernels/attention_quantized.h"

namespace skein {
namespace {

// True if steps of T are multiplied as pairs of bf16: T is the bf16 of a cache, or the words that pairStep makes of it.
template <class V, class T>
constexpr bool kStepInPairs = V::kBf16Pairs && !std::is_same_v<T, float> && !std::is_same_v<T, int8_t>;

// Number of columns in a row of V in scratch.
template <class V>
constexpr int valueStride(int headDim) {
  return padTo(headDim, V::kBf16Pairs ? 2 * V::W : V::W);
}

// Floats for a step's K and V. Quants, which take less, have room for their scales too.
template <class V>
size_t stepScratchFloats(int32_t headDim) {
  return size_t(headDim) * kStepTokens + size_t(kStepTokens) * valueStride<V>(headDim);
}

// Floats for a step, the rounded queries of a number of (row, head) pairs with their scales, and the queries for the
// sinks.
template <class V>
size_t attentionScratchFloats(int32_t headDim, int32_t pairs) {
  return stepScratchFloats<V>(headDim) + 2 * size_t(pairs) * (pairsOf(headDim) + 1);
}

// Converts `count` cache values to f32.
template <class V, class T>
inline void widen(const T* from, int count, float* to) {
  int i = 0;
  for (; i + V::W <= count; i += V::W) V::store(to + i, loadCache<V>(from + i));
  for (; i < count; i++) to[i] = cacheValue(from[i]);
}

// Begin of the block of a position, in the part of one KV head.
template <class T>
inline const T* blockOf(const AttentionArgs& args, int kvHead, int position) {
  const KvLayer& kv = *args.kv;
  const int index = position / kv.tokensPerBlock;
  if (args.fresh && index >= args.freshBlock) {
    const size_t at = size_t(index - args.freshBlock) * kv.bytesPerBlock() + size_t(kvHead) * kv.headBytes();
    return reinterpret_cast<const T*>(static_cast<const char*>(args.fresh) + at);
  }
  const int entry = args.window.on() ? args.window.entryOf(index) : index;
  return reinterpret_cast<const T*>(kv.head(args.blockTable[entry], kvHead));
}

// Pointers to a step's K and V, and to those of the step that follows, which are prefetched.
template <class T>
struct Step {
  const T* k;
  const T* v;
  const T* nextK = nullptr;
  const T* nextV = nullptr;
  int stride = 0;  // columns of a row of V, if rows are paired up
  // Scales of quantized keys and values, by token of the step.
  const float* kScales = nullptr;
  const float* vScales = nullptr;
};

// Fills the scratch with the step's first `valid` tokens, rounded up to a group; the rest is zero. Blocks after `valid`
// are not read: the table may end there.
template <class V, class T>
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
    const T* block = blockOf<T>(args, kvHead, position);
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

// Like loadStep, in words of two rows each: K [pairsOf(headDim)][32], V [16][valueStride].
template <class V>
void pairStep(const AttentionArgs& args, int kvHead, int stepStart, int valid, Paired* kStep, Paired* vStep) {
  const KvLayer& kv = *args.kv;
  const int tokens = kv.tokensPerBlock;
  const int headDim = kv.headDim;
  const int group = tokens < kStepTokens ? tokens : kStepTokens;
  const int stride = valueStride<V>(headDim);
  for (int t = 0; t < kStepTokens; t += group) {
    Paired* vRows = vStep + t / 2 * stride;
    if (t >= valid) {
      for (int s = 0; s < pairsOf(headDim); s++)
        for (int i = 0; i < group; i++) kStep[s * kStepTokens + t + i] = 0;
      for (int i = 0; i < group / 2 * stride; i++) vRows[i] = 0;
      continue;
    }
    const int position = stepStart + t;
    const int offset = position % tokens;
    const uint16_t* block = blockOf<uint16_t>(args, kvHead, position);
    const uint16_t* k = block + size_t(offset / group) * headDim * group;
    const uint16_t* v = block + size_t(tokens + offset) * headDim;
    for (int s = 0; s < pairsOf(headDim); s++) {
      const uint16_t* even = k + size_t(2 * s) * group;
      pairUp<V>(even, 2 * s + 1 < headDim ? even + group : nullptr, group, kStep + s * kStepTokens + t);
    }
    for (int i = 0; i < group; i += 2) {
      Paired* row = vRows + i / 2 * stride;
      pairUp<V>(v + size_t(i) * headDim, v + size_t(i + 1) * headDim, headDim, row);
      for (int d = headDim; d < stride; d++) row[d] = 0;
    }
  }
}

// Like loadStep, with unchanged quants: K [ceil(headDim / 2)][32][2], V [16][padded headDim][2], then the scales of
// both.
template <class V>
Step<int8_t> quantStep(const AttentionArgs& args, int kvHead, int stepStart, int valid, float* scratch) {
  const KvLayer& kv = *args.kv;
  const int tokens = kv.tokensPerBlock;
  const int headDim = kv.headDim;
  const int group = tokens < kStepTokens ? tokens : kStepTokens;
  const int stride = padTo(headDim, V::W);
  float* kScales = scratch;
  float* vScales = kScales + kStepTokens;
  int8_t* kStep = reinterpret_cast<int8_t*>(vScales + kStepTokens);
  int8_t* vStep = kStep + kv.keyBytes() * kStepTokens;
  // Everything that is not filled in is zero, the scales too.
  __builtin_memset(scratch, 0, size_t(vStep + stride * kStepTokens - reinterpret_cast<int8_t*>(scratch)));
  for (int t = 0; t < valid; t += group) {
    const int position = stepStart + t;
    const int offset = position % tokens;
    const int8_t* block = blockOf<int8_t>(args, kvHead, position);
    const int8_t* k = block + offset * kv.keyBytes();
    const int8_t* v = block + tokens * kv.keyBytes() + size_t(offset) * headDim;
    const float* scales = reinterpret_cast<const float*>(block + kv.quantBytes());
    for (int s = 0; s < pairsOf(headDim); s++)
      __builtin_memcpy(kStep + 2 * (s * kStepTokens + t), k + size_t(2 * s) * group, size_t(2 * group));
    for (int i = 0; i < group; i += 2)
      __builtin_memcpy(vStep + size_t(t + i) * stride, v + size_t(i) * headDim, size_t(2 * headDim));
    __builtin_memcpy(kScales + t, scales + offset, size_t(group) * 4);
    __builtin_memcpy(vScales + t, scales + tokens + offset, size_t(group) * 4);
  }
  return {.k = kStep, .v = vStep, .stride = stride, .kScales = kScales, .vScales = vScales};
}

// The queries of rows [rowBegin, rowEnd) as pairs of dimensions; none if the tiles take the f32 rows.
struct RoundedQueries {
  const uint16_t* rows;  // [pair][2 * pairsOf(headDim)], pair = (row - rowBegin) * heads per KV head + head
  const uint16_t* sinkRows;
  const float* scales;  // by pair, if the rows are whole numbers
  const float* sinkScales;

  static const uint16_t* of(const uint16_t* rows, int pair, int headDim) {
    return rows + size_t(pair) * 2 * pairsOf(headDim);
  }
};

// T: element type of the cache.
template <class V, class T>
RoundedQueries roundQueries(const AttentionArgs& args, int kvHead, int rowBegin, int rowEnd, float* scratch) {
  const int headDim = args.kv->headDim;
  const int heads = args.numHeads / args.kv->kvHeads;
  const int pairs = (rowEnd - rowBegin) * heads;
  float* scales = scratch;
  float* sinkScales = scales + pairs;
  uint16_t* rows = reinterpret_cast<uint16_t*>(sinkScales + pairs);
  uint16_t* sinkRows = rows + size_t(pairs) * 2 * pairsOf(headDim);
  const auto round = [&](const float* q, int pair, uint16_t* to, float* scale) {
    if constexpr (std::is_same_v<T, int8_t>) {
      const RotatedHead query(q, headDim);
      const float most = queryQuants(headDim);
      scale[pair] = quantizeRow16<V>(query.numbers(), headDim, most,
                                     reinterpret_cast<int16_t*>(to) + size_t(pair) * 2 * pairsOf(headDim)) /
                    float(rotatedTogether(headDim));
    } else {
      roundRow<V>(q, headDim, pair, to);
    }
  };
  for (int pair = 0; pair < pairs; pair++) {
    const int64_t row = rowBegin + pair / heads;
    const int64_t head = kvHead * heads + pair % heads;
    round(args.q + row * args.ldq + head * headDim, pair, rows, scales);
    if (args.sinkQ) round(args.sinkQ + (row * args.numHeads + head) * headDim, pair, sinkRows, sinkScales);
  }
  return {rows, sinkRows, scales, sinkScales};
}

}  // namespace
}  // namespace skein

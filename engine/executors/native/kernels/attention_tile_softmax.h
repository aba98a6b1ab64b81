// The softmax of a step for a block of (row, head) pairs whose scores tiles have written: see attention_tile_step.h for the order of their
// numbers. Exponents are to base 2, so that a score takes one fused multiply-add on its way to its probability:
//
//   m' = max(m, greatest score * scale)     y = score * (scale * log2 e) - m' * log2 e     p = 2^y     sum = sum * c + p
//
// and the maximum that a merge sees is m', as everywhere.
#pragma once
#include "kernels/attention_tile_step.h"

namespace skein {
namespace {

constexpr float kLog2E = 1.44269504088896341f;

// 2^y for y up to 126, within 3e-6 of itself (vexpCoarse's polynomial), exactly 1 for 0, exactly 0 up to -127; NaN stays NaN. Adding and
// subtracting 1.5 * 2^23 rounds to whole numbers, whose bits are then an exponent where they are added: fewer instructions than
// roundNearest and timesPow2 take. At y = -127 the bits of 1 become 0, so that a bound is enough for what lies below.
template <class V>
inline typename V::F vexp2Coarse(typename V::F y) {
  const auto shifter = V::set1(12582912.0f), bounded = V::max(V::set1(-127.0f), y);
  const auto shifted = V::add(bounded, shifter);
  const auto f = V::sub(bounded, V::sub(shifted, shifter));
  auto p = V::fma(V::set1(9.582852944731712e-3f), f, V::set1(5.5906426161527634e-2f));
  p = V::fma(p, f, V::set1(2.4024099111557007e-1f));
  p = V::fma(p, f, V::set1(6.931241750717163e-1f));
  p = V::fma(p, f, V::set1(1.0f));
  return V::floatsOf(V::plus(V::bitsOf(p), V::upBits(V::bitsOf(shifted), 23)));
}

// What a pair attends to, in tokens of the step.
struct SeenTokens {
  int begin, end, sinks;
  bool whole(int first, int last) const { return begin <= first && end >= last; }
};

// Tokens of the scores of one vector, which begins at `at` of a row.
template <class V>
inline typename V::F tokensOfLanes(int at) {
  const int odd = at % kTileLine >= 16, lane = at % 16;
  return V::fma(V::iota(), V::set1(2.0f), V::set1(float(at / kTileLine * kTileLine + 2 * lane + odd)));
}

// Makes -infinity of the scores of one pair that it does not attend to. A function of its own, because few steps need it.
template <class V>
[[gnu::noinline]] void hideScores(float* scores, int first, int last, const SeenTokens& seen) {
  const auto hidden = V::set1(kMinusInfinity);
  const auto begin = V::set1(float(seen.begin)), end = V::set1(float(seen.end)), sinks = V::set1(float(seen.sinks));
  for (int at = first; at < last; at += V::W) {
    const auto token = tokensOfLanes<V>(at);
    const auto s = V::load(scores + at);
    const auto ofWindow = V::selectLess(token, begin, V::selectLess(token, sinks, s, hidden), s);
    V::store(scores + at, V::selectLess(token, end, ofWindow, hidden));
  }
}

// Replaces the scores of the step's sinks by those of the queries for sinks.
template <class V>
[[gnu::noinline]] void takeSinkScores(float* scores, const float* ofSinks, int first, int last, int count) {
  const auto sinks = V::set1(float(count));
  for (int at = first; at < last; at += V::W) {
    const auto token = tokensOfLanes<V>(at);
    V::store(scores + at, V::selectLess(token, sinks, V::load(ofSinks + at), V::load(scores + at)));
  }
}

template <class V>
[[gnu::noinline]] void capTileScores(float* scores, int first, int last, float scale, float cap) {
  for (int at = first; at < last; at += V::W)
    V::store(scores + at, softCapped<V>(V::mul(V::load(scores + at), V::set1(scale)), cap));
}

// The greatest scores of a pair in kGroups groups, by lane.
template <class V, int kGroups>
inline typename V::F greatestScores(const float* scores) {
  auto top = V::load(scores);
  SKEIN_UNROLL(16)
  for (int i = V::W; i < kGroups * kTileLine; i += V::W) top = V::max(top, V::load(scores + i));
  return top;
}

// Makes the words of probabilities of a pair's scores, and returns their sums, by lane. Words may take the place of scores that are read
// already.
template <class V, int kGroups>
inline typename V::F weighPair(const float* scores, float scale, float top, Paired* words) {
  const auto factor = V::set1(scale), minusTop = V::set1(-top);
  auto even = V::set1(0.0f), odd = even;
  SKEIN_UNROLL(8)
  for (int g = 0; g < kGroups; g++) {
    const float* at = scores + g * kTileLine;
    const auto a = vexp2Coarse<V>(V::fma(V::load(at), factor, minusTop));
    const auto b = vexp2Coarse<V>(V::fma(V::load(at + 16), factor, minusTop));
    even = V::add(even, a);
    odd = V::add(odd, b);
    V::storeI(reinterpret_cast<uint8_t*>(words + g * 16), V::halvesOfPairs(a, b));
  }
  return V::add(even, odd);
}

// The softmax of up to 16 pairs over kGroups groups. maxima, sums: those of the pairs, which are brought forward. corrections: what the
// earlier sums are multiplied by.
template <class V, int kGroups>
void weighPairs(float* scores, int count, float scale, float* maxima, float* sums, float* corrections, Paired* words) {
  constexpr int kFew = 4;  // pairs whose lanes are added one by one
  typename V::F rows[16];
  float lanes[16] = {}, powers[16];
  for (int p = 0; p < count; p++) rows[p] = greatestScores<V, kGroups>(scores + p * kTileStep);
  if (count > kFew)
    for (int p = count; p < 16; p++) rows[p] = V::set1(0.0f);
  if (count > kFew) V::store(lanes, V::maxRows(rows));
  else
    for (int p = 0; p < count; p++) lanes[p] = V::reduceMax(rows[p]);

  const auto log2e = V::set1(kLog2E), old = loadHead<V>(maxima, count, 0.0f);
  const auto top = V::max(V::mul(V::load(lanes), V::set1(scale)), old), power = V::mul(top, log2e);
  const auto correction = vexpBelow<V>(V::sub(old, top));  // exact, because it meets all earlier tokens
  storeHead<V>(maxima, count, top);
  storeHead<V>(corrections, count, correction);
  V::store(powers, power);

  for (int p = 0; p < count; p++)
    rows[p] = weighPair<V, kGroups>(scores + p * kTileStep, scale * kLog2E, powers[p], words + p * kTileStep);
  if (count > kFew) V::store(lanes, V::addRows(rows));
  else
    for (int p = 0; p < count; p++) lanes[p] = V::reduceAdd(rows[p]);
  storeHead<V>(sums, count, V::fma(loadHead<V>(sums, count, 0.0f), correction, V::load(lanes)));
}

template <class V, int kGroups>
void weighBlock(float* scores, int count, float scale, float* maxima, float* sums, float* corrections, Paired* words) {
  for (int p = 0; p < count; p += 16)
    weighPairs<V, kGroups>(scores + p * kTileStep, count - p < 16 ? count - p : 16, scale, maxima + p, sums + p,
                           corrections + p, words + p * kTileStep);
}

}  // namespace
}  // namespace skein

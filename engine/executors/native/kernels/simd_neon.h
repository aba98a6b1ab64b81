// Eight lanes of NEON, each vector in two registers, so that panels, tiles and bits are those of AVX2 and of the scalar twin.
#pragma once
#include <arm_neon.h>

#include <cstdint>

#include "kernels/scales.h"

namespace skein {
namespace {

struct NeonVectors {
  static constexpr int W = 8;
  // Rows of a tile: 6 rows x 2 vectors = 24 accumulators of the 32 registers
  static constexpr int kTileRows = 6;
  static constexpr int kAttentionPairs = 3;
  static constexpr bool kBf16Pairs = false;
  struct F {
    float32x4_t low, high;
  };

  static F set1(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static F load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static void store(float* p, F a) {
    vst1q_f32(p, a.low);
    vst1q_f32(p + 4, a.high);
  }
  static F add(F a, F b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  static F sub(F a, F b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
  static F mul(F a, F b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  static F div(F a, F b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
  static F fma(F a, F b, F c) { return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)}; }
  // The greater of a and |x|, a not negative, in the order of their bits: infinity and then NaN are the greatest.
  static F greaterMagnitude(F a, F x) { return {greaterBits(a.low, x.low), greaterBits(a.high, x.high)}; }
  // The second operand if either is NaN, as on x86; NEON's own maximum would give NaN.
  static F max(F a, F b) { return {greater(a.low, b.low), greater(a.high, b.high)}; }
  static F roundNearest(F a) { return {vrndnq_f32(a.low), vrndnq_f32(a.high)}; }
  static F pow2(F n) { return {pow2Of(n.low), pow2Of(n.high)}; }
  static F timesPow2(F p, F n) { return {timesPow2Of(p.low, n.low), timesPow2Of(p.high, n.high)}; }
  static F selectLess(F a, F b, F x, F y) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), x.low, y.low), vbslq_f32(vcltq_f32(a.high, b.high), x.high, y.high)};
  }
  // One bit per lane, the first lane lowest: a >= b.
  static uint32_t atLeast(F a, F b) {
    return bitsOf(vcgeq_f32(a.low, b.low)) | bitsOf(vcgeq_f32(a.high, b.high)) << 4;
  }
  static F iota() { return {float32x4_t{0, 1, 2, 3}, float32x4_t{4, 5, 6, 7}}; }
  static bool anyNan(F a) {
    const uint32x4_t numbers = vandq_u32(vceqq_f32(a.low, a.low), vceqq_f32(a.high, a.high));
    return vminvq_u32(numbers) == 0;
  }
  static float reduceAdd(F a) {
    const float32x4_t four = vaddq_f32(a.low, a.high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static float reduceMax(F a) {
    const float32x4_t four = greater(a.low, a.high);
    const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
    const float first = vget_lane_f32(two, 0), second = vget_lane_f32(two, 1);
    return first > second ? first : second;
  }
  static F loadBf16(const uint16_t* p) {
    const uint16x8_t half = vld1q_u16(p);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(half), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(half, 16))};
  }
  static void loadBf16Pair(const uint16_t* p, F& low, F& high) {
    const uint32x4_t first = vreinterpretq_u32_u16(vld1q_u16(p)), second = vreinterpretq_u32_u16(vld1q_u16(p + 8));
    const uint32x4_t upper = vdupq_n_u32(0xffff0000u);
    low = {vreinterpretq_f32_u32(vshlq_n_u32(first, 16)), vreinterpretq_f32_u32(vshlq_n_u32(second, 16))};
    high = {vreinterpretq_f32_u32(vandq_u32(first, upper)), vreinterpretq_f32_u32(vandq_u32(second, upper))};
  }

  // Integers for quantised weights: W sums of 32 bits.
  struct I {
    int32x4_t low, high;
  };
  static I loadI(const uint8_t* p) { return {words(vld1q_u8(p)), words(vld1q_u8(p + 16))}; }
  static void storeI(uint8_t* p, I a) {
    vst1q_u8(p, bytes(a.low));
    vst1q_u8(p + 16, bytes(a.high));
  }
  static I set1I(int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
  // Words of W rows from `offset` bytes on: lane j of vector i has word i of row j.
  static void wordsOfRows(const uint8_t* const* rows, int64_t offset, I (&words)[4]) {
    int32x4_t low[4], high[4];
    wordsOfFour(rows, offset, low);
    wordsOfFour(rows + 4, offset, high);
    for (int i = 0; i < 4; i++) words[i] = {low[i], high[i]};
  }
  // One word of each row, and f16 of each row.
  static I wordOfRows(const uint8_t* const* rows, int64_t offset) {
    int32_t words[W];
    for (int j = 0; j < W; j++) __builtin_memcpy(words + j, rows[j] + offset, 4);
    return {vld1q_s32(words), vld1q_s32(words + 4)};
  }
  static F halfOfRows(const uint8_t* const* rows, int64_t offset) {
    uint8_t halves[2 * W];
    for (int j = 0; j < W; j++) __builtin_memcpy(halves + 2 * j, rows[j] + offset, 2);
    return loadHalf(halves);
  }
  static I both(I a, I b) { return {vandq_s32(a.low, b.low), vandq_s32(a.high, b.high)}; }
  static I either(I a, I b) { return {vorrq_s32(a.low, b.low), vorrq_s32(a.high, b.high)}; }
  static I plus(I a, I b) { return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)}; }
  static I times(I a, I b) { return {vmulq_s32(a.low, b.low), vmulq_s32(a.high, b.high)}; }
  static I upBits(I a, int count) {
    return {vshlq_s32(a.low, vdupq_n_s32(count)), vshlq_s32(a.high, vdupq_n_s32(count))};
  }
  static I downBits(I a, int count) { return {downBitsOf(a.low, count), downBitsOf(a.high, count)}; }
  static I downSigned(I a, int count) {
    return {vshlq_s32(a.low, vdupq_n_s32(-count)), vshlq_s32(a.high, vdupq_n_s32(-count))};
  }
  static I bitsOf(F a) { return {vreinterpretq_s32_f32(a.low), vreinterpretq_s32_f32(a.high)}; }
  static F floatsOf(I bits) { return {vreinterpretq_f32_s32(bits.low), vreinterpretq_f32_s32(bits.high)}; }
  // Converts the f16 in the lower half of each word, whose upper half is zero.
  static F halvesOf(I words) {
    return {vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(words.low))),
            vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(words.high)))};
  }
  static F toFloat(I a) { return {vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)}; }
  static F loadHalf(const uint8_t* p) { return {halves(p), halves(p + 8)}; }
  static int32_t startWord(int32_t) { return 0; }
  static I start8(int32_t) { return set1I(0); }
  static I part8(I all, int) { return all; }
  static I weights4(const uint8_t* p, int part) {
    return {words(nibbles(vld1q_u8(p), part)), words(nibbles(vld1q_u8(p + 16), part))};
  }
  // The values of a table at bytes of 0 .. 15.
  static I valuesAt(const int8_t (&table)[16], I places) {
    const uint8x16_t values = vreinterpretq_u8_s8(vld1q_s8(table));
    return {words(vqtbl1q_u8(values, bytes(places.low))), words(vqtbl1q_u8(values, bytes(places.high)))};
  }
  // Adds the products of four signed bytes to each sum. Two products fit into 16 bits, since activations are never -128.
  static I dot8(I sum, I w, I a) { return kept({byteFours(sum.low, w.low, a.low), byteFours(sum.high, w.high, a.high)}); }
  static I dot4(I sum, I w, I a) { return dot8(sum, w, a); }
  static I dot6(I sum, I w, I a) { return dot8(sum, w, a); }
  static I weights5(const uint8_t* p, int part, const uint8_t* upper, int step) {
    return withUpper(weights4(p, part), upper, 4 - step, 0x10);
  }
  static I weights6(const uint8_t* p, int part, const uint8_t* upper, int step) {
    return withUpper(weights4(p, part), upper, 4 - 2 * step, 0x30);
  }
  static F floatBytes(const uint8_t* p) {
    const int16x8_t numbers = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(numbers))), vcvtq_f32_s32(vmovl_high_s16(numbers))};
  }
  // Widens W pairs of signed bytes to 16 bits: the first of each pair in `low`, the second in `high`.
  static I widenPairs(const int8_t* p) {
    const int16x8_t pairs = vreinterpretq_s16_s8(vld1q_s8(p));
    return {vreinterpretq_s32_s16(vshrq_n_s16(vshlq_n_s16(pairs, 8), 8)), vreinterpretq_s32_s16(vshrq_n_s16(pairs, 8))};
  }
  // Adds the products of such pairs and of a pair of 16-bit words that all lanes of `a` hold.
  static I dotWords(I sum, I w, I a) {
    const int16x8_t first = vreinterpretq_s16_s32(w.low), second = vreinterpretq_s16_s32(w.high);
    const int16x4_t pair = vget_low_s16(vreinterpretq_s16_s32(a.low));
    const int32x4_t low = vmlal_lane_s16(sum.low, vget_low_s16(first), pair, 0);
    const int32x4_t high = vmlal_high_lane_s16(sum.high, first, pair, 0);
    return kept({vmlal_lane_s16(low, vget_low_s16(second), pair, 1), vmlal_high_lane_s16(high, second, pair, 1)});
  }
  // Stores W values rounded to whole numbers of 16 bits, ties to even. NaN and values out of range become any number.
  static void storeWords(int16_t* p, F a) {
    vst1q_s16(p, vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.low)), vqmovn_s32(vcvtnq_s32_f32(a.high))));
  }
  // Stores the low bytes of 32 whole numbers that were rounded by an addition, which left them in the lowest bits.
  static void storeBytes(const F (&rounded)[4], uint8_t* to) {
    for (int i = 0; i < 4; i++) vst1_s8(reinterpret_cast<int8_t*>(to) + 8 * i, vmovn_s16(lowWords(rounded[i])));
  }
  // Stops the compiler from turning a chain of integer sums into a tree, for which it would run out of registers.
  static I kept(I a) {
    asm("" : "+w"(a.low), "+w"(a.high));
    return a;
  }

 protected:
  static void wordsOfFour(const uint8_t* const* rows, int64_t offset, int32x4_t (&out)[4]) {
    const auto row = [&](int j) { return vreinterpretq_s32_u8(vld1q_u8(rows[j] + offset)); };
    const int32x4x2_t ab = vtrnq_s32(row(0), row(1)), cd = vtrnq_s32(row(2), row(3));
    out[0] = vcombine_s32(vget_low_s32(ab.val[0]), vget_low_s32(cd.val[0]));
    out[1] = vcombine_s32(vget_low_s32(ab.val[1]), vget_low_s32(cd.val[1]));
    out[2] = vcombine_s32(vget_high_s32(ab.val[0]), vget_high_s32(cd.val[0]));
    out[3] = vcombine_s32(vget_high_s32(ab.val[1]), vget_high_s32(cd.val[1]));
  }
  static int32x4_t downBitsOf(int32x4_t a, int count) {
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-count)));
  }
  static int32x4_t words(uint8x16_t a) { return vreinterpretq_s32_u8(a); }
  static uint8x16_t bytes(int32x4_t a) { return vreinterpretq_u8_s32(a); }
  static float32x4_t greater(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static float32x4_t greaterBits(float32x4_t a, float32x4_t x) {
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(vabsq_f32(x))));
  }
  static float32x4_t pow2Of(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static float32x4_t timesPow2Of(float32x4_t p, float32x4_t n) {
    const int32x4_t product = vaddq_s32(vreinterpretq_s32_f32(p), vshlq_n_s32(vcvtq_s32_f32(n), 23));
    const uint32x4_t isTiny = vcltq_f32(n, vdupq_n_f32(-125.0f));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_s32(product), isTiny));
  }
  static uint32_t bitsOf(uint32x4_t lanes) { return vaddvq_u32(vandq_u32(lanes, uint32x4_t{1, 2, 4, 8})); }
  static float32x4_t halves(const uint8_t* p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
  static uint8x16_t nibbles(uint8x16_t a, int part) {
    return part == 0 ? vandq_u8(a, vdupq_n_u8(15)) : vshrq_n_u8(a, 4);
  }
  // The masked bits of `upper`, shifted to the left (a negative shift: to the right), above the nibbles of `low`.
  static I withUpper(I low, const uint8_t* upper, int shift, uint8_t mask) {
    const int8x16_t left = vdupq_n_s8(int8_t(shift));
    const uint8x16_t kept = vdupq_n_u8(mask);
    return {words(vorrq_u8(bytes(low.low), vandq_u8(vshlq_u8(vld1q_u8(upper), left), kept))),
            words(vorrq_u8(bytes(low.high), vandq_u8(vshlq_u8(vld1q_u8(upper + 16), left), kept)))};
  }
  static int32x4_t byteFours(int32x4_t sum, int32x4_t w, int32x4_t a) {
    const int8x16_t left = vreinterpretq_s8_s32(w), right = vreinterpretq_s8_s32(a);
    const int16x8_t first = vmull_s8(vget_low_s8(left), vget_low_s8(right)), second = vmull_high_s8(left, right);
    return vpadalq_s16(sum, vpaddq_s16(first, second));
  }
  // The low 16 bits of numbers that were rounded by an addition.
  static int16x8_t lowWords(F rounded) {
    return vcombine_s16(vmovn_s32(vreinterpretq_s32_f32(rounded.low)), vmovn_s32(vreinterpretq_s32_f32(rounded.high)));
  }
};

using NeonSimd = FloatScales<NeonVectors>;

}  // namespace
}  // namespace skein

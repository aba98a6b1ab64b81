// Eight lanes of NEON, each vector in two registers, so that panels, tiles and bits are those of AVX2 and of the scalar twin.
#pragma once
#include <arm_neon.h>

#include <cstdint>

namespace skein {
namespace {

struct NeonSimd {
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

  // Integers for quantised weights, as in simd_avx2.h: W sums of 32 bits, or twice as many of 16.
  struct I {
    int32x4_t low, high;
  };
  static constexpr int kInt8Parts = 2;
  static I loadI(const uint8_t* p) { return {words(vld1q_u8(p)), words(vld1q_u8(p + 16))}; }
  static void storeI(uint8_t* p, I a) {
    vst1q_u8(p, bytes(a.low));
    vst1q_u8(p + 16, bytes(a.high));
  }
  static I set1I(int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
  static F toFloat(I a) { return {vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)}; }
  static F loadHalf(const uint8_t* p) { return {halves(p), halves(p + 8)}; }
  static int32_t startWord(int32_t) { return 0; }
  static I start8(int32_t) { return set1I(0); }
  static I part8(I all, int part) { return {widened(bytes(all.low), part), widened(bytes(all.high), part)}; }
  static I dot8(I sum, I w, I a) { return dotWords(sum, w, a); }
  static I weights4(const uint8_t* p, int part) {
    return {words(nibbles(vld1q_u8(p), part)), words(nibbles(vld1q_u8(p + 16), part))};
  }
  // The values of a table at bytes of 0 .. 15.
  static I valuesAt(const int8_t (&table)[16], I places) {
    const uint8x16_t values = vreinterpretq_u8_s8(vld1q_s8(table));
    return {words(vqtbl1q_u8(values, bytes(places.low))), words(vqtbl1q_u8(values, bytes(places.high)))};
  }
  // 16-bit sums over a whole group, with the bounds of simd_avx2.h: they may pass 2^15 on the way and come back.
  static I dot4(I sum, I w, I a) {
    return kept({bytePairs(sum.low, w.low, a.low), bytePairs(sum.high, w.high, a.high)});
  }
  static F scaled4(I sum, I multiples) { return toFloat(weigh(sum, multiples)); }
  static int32_t multipleWord(int32_t multiple) { return multiple * 0x10001; }
  static I multiplesOf(int32_t word) { return set1I(word); }
  static I weights5(const uint8_t* p, int part, const uint8_t* upper, int step) {
    return withUpper(weights4(p, part), upper, 4 - step, 0x10);
  }
  static I weights6(const uint8_t* p, int part, const uint8_t* upper, int step) {
    return withUpper(weights4(p, part), upper, 4 - 2 * step, 0x30);
  }
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
  static int32_t startWords(int32_t low, int32_t high) {
    return int32_t(uint32_t(uint16_t(low)) | uint32_t(uint16_t(high)) << 16);
  }
  static I startOf(int32_t word) { return set1I(word); }
  using Scale = I;
  static Scale byteScales(const uint8_t* p) {
    const int16x8_t scales = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    return {vreinterpretq_s32_s16(vzip1q_s16(scales, scales)), vreinterpretq_s32_s16(vzip2q_s16(scales, scales))};
  }
  static Scale loadScale(const uint8_t* p) { return loadI(p); }
  static void storeScale(uint8_t* p, Scale a) { storeI(p, a); }
  static Scale weigh(I sum, Scale scale) { return {wordPairs(sum.low, scale.low), wordPairs(sum.high, scale.high)}; }
  static Scale addWeighed(Scale total, I sum, Scale scale) { return dotWords(total, sum, scale); }
  static F floatOf(Scale total) { return toFloat(total); }
  static F floatBytes(const uint8_t* p) {
    const int16x8_t numbers = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(numbers))), vcvtq_f32_s32(vmovl_high_s16(numbers))};
  }
  // Adds the products of two 16-bit words to each sum.
  static I dotWords(I sum, I w, I a) {
    return kept({vaddq_s32(sum.low, wordPairs(w.low, a.low)), vaddq_s32(sum.high, wordPairs(w.high, a.high))});
  }
  // Widens 2 W signed bytes to such words.
  static I widenPairs(const int8_t* p) {
    const int8x16_t all = vld1q_s8(p);
    return {vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(all))), vreinterpretq_s32_s16(vmovl_high_s8(all))};
  }
  // Stores W values rounded to whole numbers of 16 bits, ties to even. NaN and values out of range become any number.
  static void storeWords(int16_t* p, F a) {
    vst1q_s16(p, vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.low)), vqmovn_s32(vcvtnq_s32_f32(a.high))));
  }
  // Stores the low bytes of 32 whole numbers that were rounded by an addition, which left them in the lowest bits.
  static void storeBytes(const F (&rounded)[4], uint8_t* to) {
    for (int i = 0; i < 4; i++) vst1_s8(reinterpret_cast<int8_t*>(to) + 8 * i, vmovn_s16(lowWords(rounded[i])));
  }
  // Stores the same as words of 16 bits, the even ones of each four first, in the order that dot8 multiplies.
  static void storeWide(const F (&rounded)[4], uint8_t* to) {
    const uint8x16_t evenFirst = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
    for (int i = 0; i < 4; i++)
      vst1q_u8(to + 16 * i, vqtbl1q_u8(vreinterpretq_u8_s16(lowWords(rounded[i])), evenFirst));
  }
  // Stops the compiler from turning a chain of integer sums into a tree, for which it would run out of registers.
  static I kept(I a) {
    asm("" : "+w"(a.low), "+w"(a.high));
    return a;
  }

 protected:
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
  static int32x4_t widened(uint8x16_t a, int part) {
    const int16x8_t pairs = vreinterpretq_s16_u8(a);
    return vreinterpretq_s32_s16(vshrq_n_s16(part == 0 ? vshlq_n_s16(pairs, 8) : pairs, 8));
  }
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
  // sum + the products of two bytes each, in words of 16 bits.
  static int32x4_t bytePairs(int32x4_t sum, int32x4_t w, int32x4_t a) {
    const int8x16_t left = vreinterpretq_s8_s32(w), right = vreinterpretq_s8_s32(a);
    const int16x8_t first = vmull_s8(vget_low_s8(left), vget_low_s8(right)), second = vmull_high_s8(left, right);
    return vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(sum), vpaddq_s16(first, second)));
  }
  // The products of two words of 16 bits each.
  static int32x4_t wordPairs(int32x4_t w, int32x4_t a) {
    const int16x8_t left = vreinterpretq_s16_s32(w), right = vreinterpretq_s16_s32(a);
    return vpaddq_s32(vmull_s16(vget_low_s16(left), vget_low_s16(right)), vmull_high_s16(left, right));
  }
  // The low 16 bits of numbers that were rounded by an addition.
  static int16x8_t lowWords(F rounded) {
    return vcombine_s16(vmovn_s32(vreinterpretq_s32_f32(rounded.low)), vmovn_s32(vreinterpretq_s32_f32(rounded.high)));
  }
};

}  // namespace
}  // namespace skein

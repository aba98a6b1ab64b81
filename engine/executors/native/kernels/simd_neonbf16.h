// NEON with dot products of pairs of bf16 (FEAT_BF16), for bf16 weights and for a bf16 cache.
//
// y = y + (x[2 s] * w[2 s] + x[2 s + 1] * w[2 s + 1]): the products are exact, and each of the two sums is rounded to odd. Inputs
// and results below the normal numbers are zero. The instructions do this whatever FPCR says.
#pragma once
#include "kernels/simd_neon.h"

namespace skein {
namespace {

struct NeonBf16Simd : NeonSimd {
  static constexpr bool kBf16Pairs = true;
  static F dotPairs(F sum, I a, I w) { return {dotTwo(sum.low, a.low, w.low), dotTwo(sum.high, a.high, w.high)}; }
  // Stores W values, to nearest even.
  static void storeBf16(uint16_t* p, F a) {
    vst1q_u16(p, vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(a.low), a.high)));
  }
  // Pairs up two rows in low, then high: word i holds value i of `even` (low half) and of `odd`.
  static void pairRows(const uint16_t* even, const uint16_t* odd, I& low, I& high) {
    low = paired(vld1q_u16(even), vld1q_u16(odd));
    high = paired(vld1q_u16(even + W), vld1q_u16(odd + W));
  }

  // Two rows of 4 k, one after the other.
  using Bf16RowPair = bfloat16x8_t;
  static Bf16RowPair bf16RowPair(const int32_t* even, const int32_t* odd) {
    return vreinterpretq_bf16_s32(vcombine_s32(vld1_s32(even), vld1_s32(odd)));
  }
  using NeonSimd::kept;
  static Bf16RowPair kept(Bf16RowPair a) {
    asm("" : "+w"(a));
    return a;
  }
  // Sums of two rows and W outputs, as in simd_neoni8mm.h.
  static constexpr int kSquares = W / 2;
  struct FloatSquares {
    float32x4_t of[kSquares];
  };
  static FloatSquares emptySquares() { return {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}}; }
  // Adds to square i the products of 4 k, which two steps of 2 k hold.
  static void addSquare(FloatSquares& sum, Bf16RowPair rows, I first, I second, int i) {
    const int32x4_t a = i < 2 ? first.low : first.high, b = i < 2 ? second.low : second.high;
    const int32x4_t weights = i % 2 == 0 ? vzip1q_s32(a, b) : vzip2q_s32(a, b);
    sum.of[i] = vbfmmlaq_f32(sum.of[i], rows, vreinterpretq_bf16_s32(weights));
  }
  static F rowOf(const FloatSquares& a, int row) {
    if (row == 0) return {joined(a.of[0], a.of[1]), joined(a.of[2], a.of[3])};
    return {joinedHigh(a.of[0], a.of[1]), joinedHigh(a.of[2], a.of[3])};
  }

 private:
  static float32x4_t joined(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
  }
  static float32x4_t joinedHigh(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
  }
  static float32x4_t dotTwo(float32x4_t sum, int32x4_t a, int32x4_t w) {
    return vbfdotq_f32(sum, vreinterpretq_bf16_s32(a), vreinterpretq_bf16_s32(w));
  }
  static I paired(uint16x8_t even, uint16x8_t odd) {
    return {vreinterpretq_s32_u16(vzip1q_u16(even, odd)), vreinterpretq_s32_u16(vzip2q_u16(even, odd))};
  }
};

}  // namespace
}  // namespace skein

// NEON with dot products of pairs of bf16 (FEAT_BF16), for bf16 weights and for a bf16 cache.
//
// y = y + (x[2 s] * w[2 s] + x[2 s + 1] * w[2 s + 1]): the products are exact, and each of the two sums is rounded to odd. Inputs
// and results below the normal numbers are zero. The instruction does this whatever FPCR says.
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

 private:
  static float32x4_t dotTwo(float32x4_t sum, int32x4_t a, int32x4_t w) {
    return vbfdotq_f32(sum, vreinterpretq_bf16_s32(a), vreinterpretq_bf16_s32(w));
  }
  static I paired(uint16x8_t even, uint16x8_t odd) {
    return {vreinterpretq_s32_u16(vzip1q_u16(even, odd)), vreinterpretq_s32_u16(vzip2q_u16(even, odd))};
  }
};

}  // namespace
}  // namespace skein

// NEON with dot products of four signed bytes (FEAT_DotProd), for quantised weights.
#pragma once
#include "kernels/simd_neon.h"

namespace skein {
namespace {

struct NeonDotSimd : NeonSimd {
  static I dot8(I sum, I w, I a) { return kept({byteFours(sum.low, w.low, a.low), byteFours(sum.high, w.high, a.high)}); }
  static I dot4(I sum, I w, I a) { return dot8(sum, w, a); }
  static I dot6(I sum, I w, I a) { return dot8(sum, w, a); }

  // Sixteen bytes of a row; dotWord multiplies four of them by four of each output.
  using Words = int8x16_t;
  static Words words(const uint8_t* x) { return vld1q_s8(reinterpret_cast<const int8_t*>(x)); }
  [[gnu::always_inline]] static I dotWord(I sum, I w, Words x, int word) {
    switch (word) {
      case 0: return dotWord<0>(sum, w, x);
      case 1: return dotWord<1>(sum, w, x);
      case 2: return dotWord<2>(sum, w, x);
      default: return dotWord<3>(sum, w, x);
    }
  }

 private:
  template <int kWord>
  static I dotWord(I sum, I w, Words x) {
    return kept({vdotq_laneq_s32(sum.low, vreinterpretq_s8_s32(w.low), x, kWord),
                 vdotq_laneq_s32(sum.high, vreinterpretq_s8_s32(w.high), x, kWord)});
  }
  static int32x4_t byteFours(int32x4_t sum, int32x4_t w, int32x4_t a) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(a));
  }
};

}  // namespace
}  // namespace skein

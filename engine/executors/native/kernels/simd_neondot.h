// NEON with dot products of four signed bytes (FEAT_DotProd), for quantised weights.
#pragma once
#include "kernels/simd_neon.h"

namespace skein {
namespace {

struct NeonDotSimd : NeonSimd {
  static I dot8(I sum, I w, I a) { return kept({byteFours(sum.low, w.low, a.low), byteFours(sum.high, w.high, a.high)}); }
  static I dot4(I sum, I w, I a) { return dot8(sum, w, a); }
  static I dot6(I sum, I w, I a) { return dot8(sum, w, a); }

 private:
  static int32x4_t byteFours(int32x4_t sum, int32x4_t w, int32x4_t a) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(a));
  }
};

}  // namespace
}  // namespace skein

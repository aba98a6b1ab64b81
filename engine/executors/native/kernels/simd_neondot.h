// NEON with dot products of four signed bytes (FEAT_DotProd), for quantised weights.
#pragma once
#include "kernels/simd_neon.h"

namespace skein {
namespace {

// Sums of 32 bits and scales in f32: all products and sums are whole numbers below 2^24, and so exact, as with VNNI.
struct NeonDotSimd : NeonSimd {
  static constexpr int kInt8Parts = 1;
  static I part8(I bytes, int) { return bytes; }
  static I dot8(I sum, I w, I a) { return dotBytes(sum, w, a); }
  static I dot4(I sum, I w, I a) { return dotBytes(sum, w, a); }
  static I dot6(I sum, I w, I a) { return dotBytes(sum, w, a); }
  static int32_t startWords(int32_t low, int32_t high) { return low + high; }
  using Scale = F;
  static Scale byteScales(const uint8_t* p) { return floatBytes(p); }
  static Scale loadScale(const uint8_t* p) { return load(reinterpret_cast<const float*>(p)); }
  static void storeScale(uint8_t* p, Scale a) { store(reinterpret_cast<float*>(p), a); }
  static Scale weigh(I sum, Scale scale) { return mul(toFloat(sum), scale); }
  static Scale addWeighed(Scale total, I sum, Scale scale) { return fma(toFloat(sum), scale, total); }
  static F floatOf(Scale total) { return total; }
  // Both factors are exact in f32, so one multiplication rounds like a conversion of their whole product.
  static F scaled4(I sum, F multiples) { return mul(toFloat(sum), multiples); }
  static int32_t multipleWord(int32_t multiple) {
    const float value = float(multiple);
    int32_t word;
    __builtin_memcpy(&word, &value, 4);
    return word;
  }
  static F multiplesOf(int32_t word) {
    const float32x4_t four = vreinterpretq_f32_s32(vdupq_n_s32(word));
    return {four, four};
  }

 private:
  static I dotBytes(I sum, I w, I a) { return kept({dotFour(sum.low, w.low, a.low), dotFour(sum.high, w.high, a.high)}); }
  static int32x4_t dotFour(int32x4_t sum, int32x4_t w, int32x4_t a) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(a));
  }
};

}  // namespace
}  // namespace skein

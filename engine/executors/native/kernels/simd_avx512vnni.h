// AVX-512 with VNNI: dot products of four unsigned and four signed bytes, for quantised weights, and of two words, for a
// quantised cache.
#pragma once
#include "kernels/simd_avx512.h"

namespace skein {
namespace {

// Signed weights become unsigned by adding 128, which flips their highest bit; the sum then begins with a value that
// cancels this.
struct Avx512VnniSimd : Avx512Simd {
  static constexpr int kInt8Parts = 1;
  static int32_t startWord(int32_t sumOfQuants) { return -128 * sumOfQuants; }
  static I start8(int32_t word) { return set1I(word); }
  static I part8(I bytes, int) { return _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)); }
  static I dot8(I sum, I w, I a) { return kept(_mm512_dpbusd_epi32(sum, w, a)); }
  static I dotWords(I sum, I w, I a) { return kept(_mm512_dpwssd_epi32(sum, w, a)); }
  static I dot4(I sum, I w, I a) { return kept(_mm512_dpbusd_epi32(sum, w, a)); }
  // Sums of 32 bits and scales in f32: all products and sums are whole numbers below 2^24, and so exact.
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
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
  static F multiplesOf(int32_t word) { return _mm512_castsi512_ps(set1I(word)); }
};

}  // namespace
}  // namespace skein

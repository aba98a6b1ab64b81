// AVX-512 with VNNI: dot products of four unsigned and four signed bytes, for quantised weights, and of two words, for a
// quantised cache.
#pragma once
#include "kernels/simd_avx512.h"

namespace skein {
namespace {

// Signed weights become unsigned by adding 128, which flips their highest bit; the sum then begins with a value that
// cancels this.
struct Avx512VnniSimd : FloatScales<Avx512Simd> {
  typedef int32_t Word __attribute__((may_alias, aligned(1)));
  static int32_t startWord(int32_t sumOfQuants) { return -128 * sumOfQuants; }
  static I start8(int32_t word) { return set1I(word); }
  static I part8(I bytes, int) { return _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)); }
  static I dot8(I sum, I w, I a) { return kept(_mm512_dpbusd_epi32(sum, w, a)); }
  static I dotWords(I sum, I w, I a) { return kept(_mm512_dpwssd_epi32(sum, w, a)); }
  static I dot4(I sum, I w, I a) { return kept(_mm512_dpbusd_epi32(sum, w, a)); }
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
  // The dot products of dot4, dot6 and dot8 with a word of memory, for all lanes: GCC would load it in an instruction of its own.
  static I dotWordAt(I sum, I w, const uint8_t* word) {
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const Word*>(word)));
    return sum;
  }
  // Of scales that are powers of two, 2^n, what is added to the bits of a number for its product with one.
  static I exponentOf(F scale) { return _mm512_sub_epi32(bitsOf(scale), set1I(127 << 23)); }
  static F timesPower(F a, I exponent) { return floatsOf(_mm512_add_epi32(bitsOf(a), exponent)); }
  // True if all n lie in -126 .. 95: products of a multiple, below 2^15, and a sum, below 2^16, with such scales are numbers, and no product
  // but 0 is below the normal ones.
  static bool areMiddlePowers(const F (&scales)[2]) {
    const I least = set1I(1 << 23);
    const I greatest = _mm512_max_epu32(_mm512_sub_epi32(bitsOf(scales[0]), least), _mm512_sub_epi32(bitsOf(scales[1]), least));
    return _mm512_cmpgt_epu32_mask(greatest, set1I(221 << 23)) == 0;
  }
};

}  // namespace
}  // namespace skein

// AVX-512 with VNNI and BF16: dot products of pairs of bf16, for bf16 weights and for a bf16 cache.
#pragma once
#include "kernels/simd_avx512vnni.h"

namespace skein {
namespace {

struct Avx512Bf16Simd : Avx512VnniSimd {
  static constexpr bool kBf16Pairs = true;
  static F dotPairs(F sum, I a, I w) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(w));
  }
  // Stores W values, to nearest even; values below the normal numbers become zero.
  static void storeBf16(uint16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a)));
  }
  // Pairs up two rows in low, then high: word i holds value i of `even` (low half) and of `odd`.
  static void pairRows(const uint16_t* even, const uint16_t* odd, I& low, I& high) {
    const __m512i a = _mm512_loadu_si512(even), b = _mm512_loadu_si512(odd);
    low = _mm512_permutex2var_epi16(a, wordsFrom(0), b);
    high = _mm512_permutex2var_epi16(a, wordsFrom(16), b);
  }

 private:
  // Index i of a, then index i of b (b's begin at 32), for 16 successive i.
  static I wordsFrom(int32_t i) {
    const I lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_mullo_epi32(lanes, set1I(0x10001)), set1I(i * 0x10001 + (32 << 16)));
  }
};

}  // namespace
}  // namespace skein

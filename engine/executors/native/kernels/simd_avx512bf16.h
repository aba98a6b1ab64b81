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
  // Pairs up two lines of 32 numbers: word i holds numbers 2 i of both in `low`, 2 i + 1 in `high`; that of a is the low half.
  static void pairHalves(const uint16_t* a, const uint16_t* b, I& low, I& high) {
    const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    low = _mm512_mask_blend_epi16(0xaaaaaaaa, x, _mm512_slli_epi32(y, 16));
    high = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(x, 16), y);
  }
  // Rounds to bf16, to nearest and ties away from zero, in words of a and of b: an addition each, where the instruction that rounds
  // ties to even is several.
  static I halvesOfPairs(F a, F b) {
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i x = _mm512_add_epi32(_mm512_castps_si512(a), half), y = _mm512_add_epi32(_mm512_castps_si512(b), half);
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(x, 16), y);
  }
  // a[0] b[0] a[1] b[1] ..
  static void zip(F a, F b, F& low, F& high) {
    low = _mm512_permutex2var_ps(a, zipFrom(0), b);
    high = _mm512_permutex2var_ps(a, zipFrom(8), b);
  }
  // Lane i: reduceAdd(rows[i]), or reduceMax(rows[i]), with a third of their instructions.
  static F addRows(const F (&rows)[16]) {
    return reduceRows(rows, [](F a, F b) { return add(a, b); });
  }
  static F maxRows(const F (&rows)[16]) {
    return reduceRows(rows, [](F a, F b) { return max(a, b); });
  }

 private:
  // Adds halves of vectors, two vectors at once, until each of the rows has one lane left:
  //
  //   rows 0, 4, 8, 12      0 0 0 0 4 4 4 4 | 8 ..     (parts of four lanes)     0 0 4 4 | 8 8 12 12     0 4 8 12
  //   and 1 .., 2 .., 3 ..  likewise, then two of these vectors at once: inside of the parts of four lanes
  template <class Op>
  [[gnu::always_inline]] static F reduceRows(const F (&rows)[16], Op op) {
    const auto eights = [&](F a, F b) __attribute__((always_inline)) {
      return op(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    };
    const auto fours = [&](int i) __attribute__((always_inline)) {
      const F a = eights(rows[i], rows[i + 4]), b = eights(rows[i + 8], rows[i + 12]);
      return op(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    };
    const auto twos = [&](F a, F b) __attribute__((always_inline)) {
      return op(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    };
    const F a = twos(fours(0), fours(1)), b = twos(fours(2), fours(3));
    return op(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  }
  static I zipFrom(int32_t i) {
    const I lanes = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_add_epi32(lanes, set1I(i));
  }
  // Index i of a, then index i of b (b's begin at 32), for 16 successive i.
  static I wordsFrom(int32_t i) {
    const I lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_mullo_epi32(lanes, set1I(0x10001)), set1I(i * 0x10001 + (32 << 16)));
  }
};

}  // namespace
}  // namespace skein

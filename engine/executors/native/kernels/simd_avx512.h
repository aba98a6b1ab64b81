// Sixteen lanes of AVX-512 (F, BW, VL, DQ).
#pragma once
// GCC 12 warns of operands in its own header that are deliberately undefined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

#include "kernels/scales.h"

namespace skein {
namespace {

struct Avx512Vectors {
  static constexpr int W = 16;
  // Rows of a tile: 12 rows x 2 vectors = 24 accumulators of the 32 registers
  static constexpr int kTileRows = 12;
  // Pairs of a tile: 6 x 4 vectors of values; three pairs would leave the fma units waiting for their own results
  static constexpr int kAttentionPairs = 6;
  static constexpr bool kBf16Pairs = false;
  using F = __m512;

  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F greaterMagnitude(F a, F x) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), magnitude));
  }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F roundNearest(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F pow2(F n) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
  }
  static F timesPow2(F p, F n) {
    const __mmask16 kept = _mm512_cmp_ps_mask(n, _mm512_set1_ps(-125.0f), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(kept, p, n);
  }
  static F selectLess(F a, F b, F x, F y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }
  static uint32_t atLeast(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
  static F iota() { return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static bool anyNan(F a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0; }
  // Adds the upper half to the lower half, then continues as with eight lanes.
  static float reduceAdd(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float reduceMax(F a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static F loadBf16(const uint16_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  static void loadBf16Pair(const uint16_t* p, F& low, F& high) {
    const __m512i words = _mm512_loadu_si512(p);
    low = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    high = _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(int32_t(0xffff0000u))));
  }

  // Integers for quantised weights: see simd_avx2.h.
  using I = __m512i;
  static I loadI(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void storeI(uint8_t* p, I a) { _mm512_storeu_si512(p, a); }
  static I set1I(int32_t x) { return _mm512_set1_epi32(x); }
  [[gnu::always_inline]] static void wordsOfRows(const uint8_t* const* rows, int64_t offset, I (&words)[4]) {
    const auto row = [&](int j) __attribute__((always_inline)) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + offset));
    };
    // Loads that are broadcast under masks, which no shuffling unit sees.
    const auto four = [&](int j) __attribute__((always_inline)) {
      __m512i all = _mm512_castsi128_si512(row(j));
      all = _mm512_mask_broadcast_i32x4(all, 0x00f0, row(j + 4));
      all = _mm512_mask_broadcast_i32x4(all, 0x0f00, row(j + 8));
      return _mm512_mask_broadcast_i32x4(all, 0xf000, row(j + 12));
    };
    const __m512i a = four(0), b = four(1), c = four(2), d = four(3);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i upperAb = _mm512_unpackhi_epi32(a, b), upperCd = _mm512_unpackhi_epi32(c, d);
    words[0] = _mm512_unpacklo_epi64(ab, cd);
    words[1] = _mm512_unpackhi_epi64(ab, cd);
    words[2] = _mm512_unpacklo_epi64(upperAb, upperCd);
    words[3] = _mm512_unpackhi_epi64(upperAb, upperCd);
  }
  [[gnu::always_inline]] static I wordOfRows(const uint8_t* const* rows, int64_t offset) {
    const auto four = [&](int j) __attribute__((always_inline)) {
      int32_t words[4];
      for (int i = 0; i < 4; i++) __builtin_memcpy(words + i, rows[j + i] + offset, 4);
      return _mm_setr_epi32(words[0], words[1], words[2], words[3]);
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(four(0)), four(4), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(four(8)), four(12), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  [[gnu::always_inline]] static F halfOfRows(const uint8_t* const* rows, int64_t offset) {
    const auto pair = [&](int j) __attribute__((always_inline)) {
      int32_t words[2];
      for (int i = 0; i < 2; i++) __builtin_memcpy(words + i, rows[j + i] + offset, 4);
      return _mm_unpacklo_epi16(_mm_cvtsi32_si128(words[0]), _mm_cvtsi32_si128(words[1]));
    };
    const auto eight = [&](int j) __attribute__((always_inline)) {
      const __m128i low = _mm_unpacklo_epi32(pair(j), pair(j + 2)), high = _mm_unpacklo_epi32(pair(j + 4), pair(j + 6));
      return _mm_unpacklo_epi64(low, high);
    };
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(eight(0)), eight(8), 1));
  }
  static I both(I a, I b) { return _mm512_and_si512(a, b); }
  static I either(I a, I b) { return _mm512_or_si512(a, b); }
  static I plus(I a, I b) { return _mm512_add_epi32(a, b); }
  static I times(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static I upBits(I a, int count) { return _mm512_slli_epi32(a, uint32_t(count)); }
  static I downBits(I a, int count) { return _mm512_srli_epi32(a, uint32_t(count)); }
  static I downSigned(I a, int count) { return _mm512_srai_epi32(a, uint32_t(count)); }
  static I bitsOf(F a) { return _mm512_castps_si512(a); }
  static F floatsOf(I bits) { return _mm512_castsi512_ps(bits); }
  static F halvesOf(I words) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)); }
  static F toFloat(I a) { return _mm512_cvtepi32_ps(a); }
  static F loadHalf(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static I part8(I bytes, int part) { return _mm512_srai_epi16(part == 0 ? _mm512_slli_epi16(bytes, 8) : bytes, 8); }
  static I weights4(const uint8_t* p, int part) {
    const __m512i bytes = _mm512_loadu_si512(p);
    return _mm512_and_si512(part == 0 ? bytes : _mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(15));
  }
  static I valuesAt(const int8_t (&table)[16], I places) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), places);
  }
  static I dot4(I sum, I w, I a) { return kept(_mm512_add_epi16(sum, _mm512_maddubs_epi16(w, a))); }
  static I weights5(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const __m512i bits =
        step <= 4 ? _mm512_slli_epi16(loadI(upper), 4 - step) : _mm512_srli_epi16(loadI(upper), step - 4);
    return _mm512_or_si512(weights4(nibbles, part), _mm512_and_si512(bits, _mm512_set1_epi8(0x10)));
  }
  static I weights6(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const __m512i bits = step == 3 ? _mm512_srli_epi16(loadI(upper), 2) : _mm512_slli_epi16(loadI(upper), 4 - 2 * step);
    return _mm512_or_si512(weights4(nibbles, part), _mm512_and_si512(bits, _mm512_set1_epi8(0x30)));
  }
  static I addI(I a, I b) { return _mm512_add_epi32(a, b); }
  static I productsOfWords(I a, I b) { return _mm512_madd_epi16(a, b); }
  static I twice(I a) {
    return _mm512_or_si512(_mm512_and_si512(a, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(a, 16));
  }
  static I signedBytes(const uint8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I widenPairs(const int8_t* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void storeWords(int16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
  }
  static void storeBytes(const F (&rounded)[2], uint8_t* to) {
    for (int i = 0; i < 2; i++)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * i), _mm512_cvtepi32_epi8(_mm512_castps_si512(rounded[i])));
  }
  static void storeWide(const F (&rounded)[2], uint8_t* to) {
    for (int i = 0; i < 2; i++) {
      const __m256i steps = _mm512_cvtepi32_epi16(_mm512_castps_si512(rounded[i]));
      const __m256i evenFirst = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(steps, 0xd8), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32 * i), evenFirst);
    }
  }
  static I kept(I a) {
    asm("" : "+v"(a));
    return a;
  }
};

using Avx512Simd = WholeScales<Avx512Vectors>;

}  // namespace
}  // namespace skein

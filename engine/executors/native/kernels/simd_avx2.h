// Eight lanes of AVX2 with FMA.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "kernels/scales.h"

namespace skein {
namespace {

struct Avx2Vectors {
  static constexpr int W = 8;
  // Rows of a tile: 6 rows x 2 vectors = 12 accumulators of the 16 registers
  static constexpr int kTileRows = 6;
  static constexpr int kAttentionPairs = 3;
  static constexpr bool kBf16Pairs = false;
  using F = __m256;

  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  // The greater of a and |x|, a not negative, in the order of their bits: infinity and then NaN are the greatest.
  static F greaterMagnitude(F a, F x) {
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), magnitude));
  }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F roundNearest(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F pow2(F n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static F timesPow2(F p, F n) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    const __m256 product = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
    return _mm256_andnot_ps(_mm256_cmp_ps(n, _mm256_set1_ps(-125.0f), _CMP_LT_OQ), product);
  }
  static F selectLess(F a, F b, F x, F y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  // One bit per lane, the first lane lowest: a >= b.
  static uint32_t atLeast(F a, F b) { return uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ))); }
  static F iota() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
  static bool anyNan(F a) { return _mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)) != 0; }
  static float reduceAdd(F a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float reduceMax(F a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static F loadBf16(const uint16_t* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  static void loadBf16Pair(const uint16_t* p, F& low, F& high) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    low = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    high = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(int32_t(0xffff0000u))));
  }

  // Integers for quantised weights: W sums of 32 bits.
  using I = __m256i;
  static I loadI(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void storeI(uint8_t* p, I a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
  static I set1I(int32_t x) { return _mm256_set1_epi32(x); }
  // Words of W rows from `offset` bytes on: lane j of vector i has word i of row j.
  template <class Rows>
  [[gnu::always_inline]] static void wordsOfRows(const Rows& rows, int64_t offset, I (&words)[4]) {
    const auto two = [&](int j) {
      const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + offset));
      const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j + 4] + offset));
      return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
    };
    const __m256i a = two(0), b = two(1), c = two(2), d = two(3);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    const __m256i upperAb = _mm256_unpackhi_epi32(a, b), upperCd = _mm256_unpackhi_epi32(c, d);
    words[0] = _mm256_unpacklo_epi64(ab, cd);
    words[1] = _mm256_unpackhi_epi64(ab, cd);
    words[2] = _mm256_unpacklo_epi64(upperAb, upperCd);
    words[3] = _mm256_unpackhi_epi64(upperAb, upperCd);
  }
  // One word of each row, and f16 of each row.
  template <class Rows>
  [[gnu::always_inline]] static I wordOfRows(const Rows& rows, int64_t offset) {
    const auto word = [&](int j) {
      int32_t value;
      __builtin_memcpy(&value, rows[j] + offset, 4);
      return value;
    };
    return _mm256_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7));
  }
  // Loads words, of which blocks have more than a half: a word goes into a register of vectors by one instruction, a half takes two.
  template <class Rows>
  [[gnu::always_inline]] static F halfOfRows(const Rows& rows, int64_t offset) {
    const auto pair = [&](int j) __attribute__((always_inline)) {
      int32_t words[2];
      for (int i = 0; i < 2; i++) __builtin_memcpy(words + i, rows[j + i] + offset, 4);
      return _mm_unpacklo_epi16(_mm_cvtsi32_si128(words[0]), _mm_cvtsi32_si128(words[1]));
    };
    const __m128i low = _mm_unpacklo_epi32(pair(0), pair(2)), high = _mm_unpacklo_epi32(pair(4), pair(6));
    return _mm256_cvtph_ps(_mm_unpacklo_epi64(low, high));
  }
  static I both(I a, I b) { return _mm256_and_si256(a, b); }
  static I either(I a, I b) { return _mm256_or_si256(a, b); }
  static I plus(I a, I b) { return _mm256_add_epi32(a, b); }
  static I times(I a, I b) { return _mm256_mullo_epi32(a, b); }
  static I upBits(I a, int count) { return _mm256_slli_epi32(a, count); }
  static I downBits(I a, int count) { return _mm256_srli_epi32(a, count); }
  static I downSigned(I a, int count) { return _mm256_srai_epi32(a, count); }
  static I bitsOf(F a) { return _mm256_castps_si256(a); }
  static F floatsOf(I bits) { return _mm256_castsi256_ps(bits); }
  // Converts the f16 in the lower half of each word, whose upper half is zero.
  static F halvesOf(I words) {
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  }
  static F toFloat(I a) { return _mm256_cvtepi32_ps(a); }
  static F loadHalf(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  // A part of a step of signed bytes, in the form that dot8 takes.
  static I part8(I bytes, int part) { return _mm256_srai_epi16(part == 0 ? _mm256_slli_epi16(bytes, 8) : bytes, 8); }
  // Nibbles as unsigned bytes: the low ones in part 0, the high ones in part 1.
  static I weights4(const uint8_t* p, int part) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_and_si256(part == 0 ? bytes : _mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
  }
  // The values of a table at bytes of 0 .. 15.
  static I valuesAt(const int8_t (&table)[16], I places) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), places);
  }
  // 16-bit sums over a whole group: at most 8 x 2 x 15 x 127 = 30480. With 5 bits they
  // begin at -16 times the sum of the activations and end at most 8 x 2 x 16 x 127 = 32512 from 0; on the way they may pass
  // 2^15 and come back.
  static I dot4(I sum, I w, I a) { return kept(_mm256_add_epi16(sum, _mm256_maddubs_epi16(w, a))); }
  // Quants of 5 and 6 bits: nibbles as in weights4, above them the bits that step `step` has in another vector.
  static I weights5(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const __m256i bits =
        step <= 4 ? _mm256_slli_epi16(loadI(upper), 4 - step) : _mm256_srli_epi16(loadI(upper), step - 4);
    return _mm256_or_si256(weights4(nibbles, part), _mm256_and_si256(bits, _mm256_set1_epi8(0x10)));
  }
  static I weights6(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const __m256i bits = step == 3 ? _mm256_srli_epi16(loadI(upper), 2) : _mm256_slli_epi16(loadI(upper), 4 - 2 * step);
    return _mm256_or_si256(weights4(nibbles, part), _mm256_and_si256(bits, _mm256_set1_epi8(0x30)));
  }
  static I addI(I a, I b) { return _mm256_add_epi32(a, b); }
  // Sums along rows (stored_one_row.h): 16 bytes of rows j and j + 4, or twice the same.
  static constexpr bool kSumsAlongRows = true;
  template <class Rows>
  [[gnu::always_inline]] static I bytesOfTwo(const Rows& rows, int j, int64_t offset) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + offset));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j + 4] + offset));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
  }
  static I bytesTwice(const uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // Sums of two products in 16 bits.
  static I pairsOfProducts(I w, I a) { return _mm256_maddubs_epi16(w, a); }
  static I addWords(I a, I b) { return _mm256_add_epi16(a, b); }
  // Two words for each row, those of an even and of an odd place, summed up: lane j has row j. Vector j has rows j and j + 4.
  static I sumsOfRows(const I (&rows)[4]) {
    const __m256i ab =
        _mm256_add_epi16(_mm256_unpacklo_epi32(rows[0], rows[1]), _mm256_unpackhi_epi32(rows[0], rows[1]));
    const __m256i cd =
        _mm256_add_epi16(_mm256_unpacklo_epi32(rows[2], rows[3]), _mm256_unpackhi_epi32(rows[2], rows[3]));
    return _mm256_add_epi16(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
  }
  // Byte b of each word, a number with a sign, as both words of 16 bits.
  static I scaleOfByte(I words, int b) {
    const auto places = [b](int lane) { return 0x00800080 | (4 * lane + b) * 0x01000100; };
    const __m256i upper =
        _mm256_setr_epi32(places(0), places(1), places(2), places(3), places(0), places(1), places(2), places(3));
    return _mm256_srai_epi16(_mm256_shuffle_epi8(words, upper), 8);
  }
  // For each sum, that of the products of two 16-bit words.
  static I productsOfWords(I a, I b) { return _mm256_madd_epi16(a, b); }
  // Whole numbers of 16 bits as both words of a lane.
  static I twice(I a) {
    return _mm256_or_si256(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(a, 16));
  }
  static I signedBytes(const uint8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  // Widens 2 W signed bytes to words of 16 bits.
  static I widenPairs(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // Stores W values rounded to whole numbers of 16 bits, ties to even. NaN and values out of range become any number.
  static void storeWords(int16_t* p, F a) {
    const __m256i whole = _mm256_cvtps_epi32(a);
    const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
  }
  // Stores the low bytes of 32 whole numbers that were rounded by an addition.
  static void storeBytes(const F (&rounded)[4], uint8_t* to) {
    const __m256i bytes = _mm256_packs_epi16(words(rounded[0], rounded[1]), words(rounded[2], rounded[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
  }
  // Stores the same as words of 16 bits, the even ones of each four first, in the order that dot8 multiplies.
  static void storeWide(const F (&rounded)[4], uint8_t* to) {
    for (int i = 0; i < 2; i++) {
      const __m256i steps = _mm256_permute4x64_epi64(words(rounded[2 * i], rounded[2 * i + 1]), 0xd8);
      const __m256i evenFirst = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(steps, 0xd8), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32 * i), evenFirst);
    }
  }
  // Packs two times eight numbers, halves of four alternating.
  static __m256i words(F a, F b) {
    const __m256i bits = _mm256_set1_epi32(0x4b400000);
    return _mm256_packs_epi32(_mm256_sub_epi32(_mm256_castps_si256(a), bits),
                              _mm256_sub_epi32(_mm256_castps_si256(b), bits));
  }
  // Stops the compiler from turning a chain of integer sums into a tree, for which it would run out of registers.
  static I kept(I a) {
    asm("" : "+x"(a));
    return a;
  }
};

using Avx2Simd = WholeScales<Avx2Vectors>;

}  // namespace
}  // namespace skein

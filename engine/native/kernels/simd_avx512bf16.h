// AVX-512 with VNNI and BF16: dot products of pairs of bf16, for bf16 weights alone.
#pragma once
#include "kernels/simd_avx512vnni.h"

namespace skein {
namespace {

struct Avx512Bf16Simd : Avx512VnniSimd {
  static constexpr bool kBf16Pairs = true;
  static F dotPairs(F sum, I a, I w) { return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(w)); }
  // W values, to nearest even; what is below the normal numbers becomes zero.
  static void storeBf16(uint16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a)));
  }
};

}  // namespace
}  // namespace skein

// The order in which a product of bf16 tiles sums, found by trying it on processors (TDPBF16PS; Intel documents the operation, not its
// order): two chains of fused multiply-adds over the 16 pairs of k of a row of A, from 0, which are added to each other and then to C.
//
//   even = fma(a[2 k], b[2 k], even)    odd = fma(a[2 k + 1], b[2 k + 1], odd)    k = 0 .. 15        c = c + (even + odd)
//
// Each step rounds to nearest even; inputs, steps and sums below the normal numbers are zero, whatever MXCSR says.
#pragma once
#include <cstdint>

#include "kernels/math.h"

namespace skein {
namespace {

constexpr int kTilePairs = 16;  // of k, in a row of A

inline float normalOrZero(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }

// c + a . b over `pairs` pairs of k, of which A has them side by side and B `stride` apart.
inline float tileSum(float c, const uint16_t* a, const uint16_t* b, int pairs, int64_t stride) {
  float sums[2] = {0.0f, 0.0f};
  for (int pair = 0; pair < pairs; pair++)
    for (int i = 0; i < 2; i++) {
      const float x = normalOrZero(fromBf16(a[2 * pair + i])), w = normalOrZero(fromBf16(b[pair * stride + i]));
      sums[i] = normalOrZero(__builtin_fmaf(x, w, sums[i]));
    }
  return normalOrZero(normalOrZero(c) + normalOrZero(sums[0] + sums[1]));
}

}  // namespace
}  // namespace skein

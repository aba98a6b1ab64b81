// Converts IEEE half precision, for the scales of quantised weights. The namespace is unnamed because each instruction
// set compiles its own copy.
#pragma once
#include <cstdint>

namespace skein {
namespace {

[[maybe_unused]] inline float fromHalf(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero and subnormal: fraction * 2^-24, exact in float32
    const float magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  // A NaN becomes quiet, as the processor's instruction does it.
  const uint32_t quiet = exponent == 31 && fraction != 0 ? 0x400000u : 0u;
  const uint32_t bits = sign | ((exponent == 31 ? 0xffu : exponent + (127 - 15)) << 23) | (fraction << 13) | quiet;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

// Rounds to nearest, ties to even; beyond 65520 infinity, NaN stays a (quiet) NaN.
[[maybe_unused]] inline uint16_t toHalf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 lets the processor round to a multiple of 2^-24
    float small;
    __builtin_memcpy(&small, &magnitude, 4);
    const float shifted = small + 0.5f;
    uint32_t rounded;
    __builtin_memcpy(&rounded, &shifted, 4);
    return uint16_t(sign | (rounded - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return uint16_t(sign | ((rounded - ((127u - 15u) << 23)) >> 13));
}

}  // namespace
}  // namespace skein

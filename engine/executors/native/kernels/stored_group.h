// Groups of 32 weights as they are stored (kernels.h): GGML's Q4_1, Q5_0, Q5_1, IQ4_NL and MXFP4.
#pragma once
#include "kernels/half.h"
#include "kernels/kernels.h"

namespace skein {
namespace {

inline float halfAt(const uint8_t* p) {
  uint16_t half;
  __builtin_memcpy(&half, p, 2);
  return fromHalf(half);
}

// The bf16 of 2^(exponent - 128), which is subnormal for exponents 0 and 1.
inline uint16_t mxfp4Scale(uint8_t exponent) {
  return exponent < 2 ? uint16_t(0x20 << exponent) : uint16_t((exponent - 1) << 7);
}

template <DType D>
struct StoredGroup {
  static constexpr bool kHasMinimum = D == DType::kInt4 || D == DType::kQ5_1;
  static constexpr bool kHasFifthBits = D == DType::kQ5_0 || D == DType::kQ5_1;
  static constexpr int kScaleBytes = D == DType::kMxfp4 ? 1 : kHasMinimum ? 4 : 2;
  const uint8_t* block;

  int quant(int i) const {
    const uint8_t* nibbles = block + kScaleBytes + (kHasFifthBits ? 4 : 0);
    const int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return kHasFifthBits ? low | (block[kScaleBytes + i / 8] >> (i % 8) & 1) << 4 : low;
  }
  float scale() const {
    if constexpr (D != DType::kMxfp4) return halfAt(block);
    const uint32_t bits = uint32_t(mxfp4Scale(*block)) << 16;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  }
  float value(int i) const {
    if constexpr (D == DType::kQ5_0) return scale() * float(quant(i) - 16);
    else if constexpr (D == DType::kIq4Nl) return scale() * float(kIq4Values[quant(i)]);
    else if constexpr (D == DType::kMxfp4) return scale() * float(kMxfp4Values[quant(i)]);
    else return scale() * float(quant(i)) + halfAt(block + 2);
  }
};

}  // namespace
}  // namespace skein

// The vectors of simd_amx.h in plain C++.
#pragma once
#include "kernels/scales.h"
#include "kernels/simd_emulated_pairs.h"

namespace skein {
namespace {

struct EmulatedAmxSimd : FloatScales<EmulatedAvx512Bf16Simd> {
  static constexpr int kPanelK = 32;
  [[gnu::noinline]] static I part8(I bytes, int) {
    return eachI([&](int i) { return int32_t(uint32_t(bytes.v[i]) ^ 0x80808080u); });
  }
  template <int kBits, int kFrom>
  [[gnu::noinline]] static void storeTileRows(I bytes, F scale, F offset, uint8_t* to, int64_t stride) {
    for (int b = 0; b < 4; b++) {
      const I bits = bitsOf(fma(each([&](int i) {
                                  const uint32_t quant = uint32_t(bytes.v[i]) >> (8 * b + kFrom) & ((1u << kBits) - 1);
                                  return 1.0f + float(quant) / float(1 << kBits);
                                }),
                                scale, offset));
      for (int i = 0; i < W; i++) {
        const uint16_t rounded = uint16_t((uint32_t(bits.v[i]) + 0x8000) >> 16);
        std::memcpy(to + b / 2 * stride + 4 * i + b % 2 * 2, &rounded, 2);
      }
    }
  }
  static F plainNan(F a) {
    return each([&](int i) { return a.v[i] != a.v[i] ? __builtin_nanf("") : a.v[i]; });
  }
};

}  // namespace
}  // namespace skein

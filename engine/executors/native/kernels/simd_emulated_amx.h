// The vectors of simd_amx.h in plain C++.
#pragma once
#include "kernels/scales.h"
#include "kernels/simd_emulated_pairs.h"
#include "kernels/tile_quants.h"

namespace skein {
namespace {

struct EmulatedAmxSimd : FloatScales<EmulatedAvx512Bf16Simd> {
  static constexpr int kPanelK = 32;
  [[gnu::noinline]] static I part8(I bytes, int) {
    return eachI([&](int i) { return int32_t(uint32_t(bytes.v[i]) ^ 0x80808080u); });
  }
  template <int kBits, int kFrom, bool kOdd>
  [[gnu::noinline]] static void storeTileRows(I bytes, const TileScales<EmulatedAmxSimd, kBits>& scales, uint8_t* to,
                                              int64_t stride) {
    for (int b = 0; b < 4; b++) {
      const int at = placeOf<kBits>(b, kOdd);
      const float one = 1 << (kMantissaBits - kPlaces<kBits>[at]);
      const I bits = bitsOf(fma(each([&](int i) {
                                  const uint32_t quant = uint32_t(bytes.v[i]) >> (8 * b + kFrom) & ((1u << kBits) - 1);
                                  return 1.0f + float(quant) / one;
                                }),
                                scales.scale[at], scales.offset[at]));
      for (int i = 0; i < W; i++) {
        const uint16_t cut = uint16_t(uint32_t(bits.v[i]) >> 16);
        std::memcpy(to + b / 2 * stride + 4 * i + b % 2 * 2, &cut, 2);
      }
    }
  }
};

}  // namespace
}  // namespace skein

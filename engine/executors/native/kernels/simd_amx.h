// The vectors next to AMX's tiles: AVX-512 with VNNI, BF16 and VBMI, which every processor with AMX has.
#pragma once
#include <type_traits>

#include "kernels/simd_avx512bf16.h"
#include "kernels/tile_quants.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

struct AmxSimd : Avx512Bf16Simd {
  static constexpr int kPanelK = 32;  // k of a panel of bf16 are filled up to a multiple
  // Stores two rows of a tile B: of the four bytes of each output kBits bits from kFrom on, as weights. kOdd: of the nibbles' words that are high ones.
  //
  //   bytes      o0: k0 k1 k2 k3 | o1: k0 k1 k2 k3 | ..        row 0    o0: k0 k1 | o1: k0 k1 | ..        row 1    o0: k2 k3 | ..
  template <int kBits, int kFrom, bool kOdd>
  [[gnu::always_inline]] static void storeTileRows(I bytes, const TileScales<AmxSimd, kBits>& scales, uint8_t* to,
                                                   int64_t stride) {
    const auto weight = [&]<int kByte>(std::integral_constant<int, kByte>) __attribute__((always_inline)) {
      constexpr int kAt = placeOf<kBits>(kByte, kOdd), kPlace = kPlaces<kBits>[kAt];
      constexpr int kDown = 8 * kByte + kFrom - kPlace;
      const I quant = kDown > 0 ? downBits(bytes, kDown) : kDown < 0 ? upBits(bytes, -kDown) : bytes;
      constexpr int32_t kQuant = ((1 << kBits) - 1) << kPlace;
      return bitsOf(fma(floatsOf(bitsOr(quant, kQuant, set1I(0x3f800000))), scales.scale[kAt], scales.offset[kAt]));
    };
    const auto store = [&](uint8_t* row, I even, I odd) __attribute__((always_inline)) {
      storeI(row, bitsOr(odd, int32_t(0xffff0000u), downBits(even, 16)));
    };
    store(to, weight(std::integral_constant<int, 0>()), weight(std::integral_constant<int, 1>()));
    store(to + stride, weight(std::integral_constant<int, 2>()), weight(std::integral_constant<int, 3>()));
  }

 private:
  static I bitsOr(I a, int32_t mask, I b) { return _mm512_ternarylogic_epi32(a, set1I(mask), b, 0xea); }
};

}  // namespace
}  // namespace skein

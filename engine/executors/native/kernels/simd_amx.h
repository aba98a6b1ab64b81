// The vectors next to AMX's tiles: AVX-512 with VNNI, BF16 and VBMI, which every processor with AMX has.
#pragma once
#include <type_traits>

#include "kernels/simd_avx512bf16.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

struct AmxSimd : Avx512Bf16Simd {
  static constexpr int kPanelK = 32;  // k of a panel of bf16 are filled up to a multiple
  // Stores two rows of a tile B: of the four bytes of each output kBits bits from kFrom on, as bf16(fma(1 + quant / 2^kBits, scale, offset)).
  //
  //   bytes      o0: k0 k1 k2 k3 | o1: k0 k1 k2 k3 | ..        row 0    o0: k0 k1 | o1: k0 k1 | ..        row 1    o0: k2 k3 | ..
  template <int kBits, int kFrom>
  [[gnu::always_inline]] static void storeTileRows(I bytes, F scale, F offset, uint8_t* to, int64_t stride) {
    constexpr int kMantissaBits = 23, kUp = kMantissaBits - kBits - kFrom;
    const auto number = [&]<int kByte>(std::integral_constant<int, kByte>) __attribute__((always_inline)) {
      constexpr int kShift = kUp - 8 * kByte;
      const I quant = kShift < 0 ? downBits(bytes, -kShift) : upBits(bytes, kShift);
      constexpr int32_t kQuant = ((1 << kBits) - 1) << (kMantissaBits - kBits);
      return roundedBits(fma(floatsOf(bitsOr(quant, kQuant, set1I(0x3f800000))), scale, offset));
    };
    const auto store = [&](uint8_t* row, I even, I odd) __attribute__((always_inline)) {
      storeI(row, bitsOr(odd, int32_t(0xffff0000u), downBits(even, 16)));
    };
    store(to, number(std::integral_constant<int, 0>()), number(std::integral_constant<int, 1>()));
    store(to + stride, number(std::integral_constant<int, 2>()), number(std::integral_constant<int, 3>()));
  }
  // One NaN for all: others would overflow in roundedBits().
  static F plainNan(F a) {
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), set1(__builtin_nanf("")));
  }

 private:
  // Bits of which the upper 16 are the nearest bf16, that with the greater magnitude where two are as near. With shifts and additions:
  // the instruction that rounds has its units in common with tiles.
  static I roundedBits(F a) { return plus(bitsOf(a), set1I(0x8000)); }
  static I bitsOr(I a, int32_t mask, I b) { return _mm512_ternarylogic_epi32(a, set1I(mask), b, 0xea); }
};

}  // namespace
}  // namespace skein

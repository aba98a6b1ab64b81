// How a quant becomes a weight of a tile: as bits of a mantissa, by one fused multiply-add, cut to bf16.
//
//   bits of a float   0 | 01111111 | 0 .. quant .. 0      = 1 + quant / 2^(23 - place)       place: of the quant's lowest bit
//   weight            upper half of fma(that, 2^(23 - place) scale, minimum - (2^(23 - place) + excess) scale)
//
// Quants lie at several places, so that most of them need no shift, and two or three need the same:
//
//   nibbles of four bytes     7 3 6 2 5 1 4 0       down by 12:  . . . 7 3 6 . .       up by 12:  . . 4 0 . . . .
//   taken where they lie            2 5 1                        k 7, 3, 6                        k 4, 0
//
// A cut takes half a unit of the last place on average; scales and minima are that much greater, by kCutLoss, so that weights are neither
// too small nor too large in the mean. What bf16 can hold stays as it is, since kCutLoss is less than a unit. To round would be one
// instruction more for each vector.
#pragma once
#include "kernels/unroll.h"

namespace skein {
namespace {

constexpr float kCutLoss =
    1.0f + 3.0f / 1024;  // mantissas are spread as their logarithms are: half a unit is 1 / 355 of a number in the mean

constexpr int kMantissaBits = 23;
constexpr int kQuantPlaces = 3;

// The places of quants of kBits bits.
template <int kBits>
constexpr int kPlaces[kQuantPlaces] = {8, 12, 16};
template <>
constexpr int kPlaces<8>[kQuantPlaces] = {7, 8, 15};

// Which of the places the quant of byte `byte` of a word takes. Quants of 4 bits: words take turns in being low and high nibbles, and have
// the same places where they are bytes.
template <int kBits>
constexpr int placeOf(int byte, bool high) {
  constexpr int kBytes[4] = {1, 1, 0, 2}, kLow[4] = {1, 0, 2, 1}, kHigh[4] = {2, 1, 0, 2};
  return kBits == 8 ? kBytes[byte] : high ? kHigh[byte] : kLow[byte];
}

// Scales and offsets of the quants at each place, of one half of a panel. `excess`: what quants are too large by.
template <class V, int kBits>
struct TileScales {
  typename V::F scale[kQuantPlaces], offset[kQuantPlaces];

  [[gnu::always_inline]] void set(typename V::F of, typename V::F minimum, float excess) {
    of = V::mul(of, V::set1(kCutLoss)), minimum = V::mul(minimum, V::set1(kCutLoss));
    SKEIN_UNROLL(3)
    for (int i = 0; i < kQuantPlaces; i++) {
      const float one = 1 << (kMantissaBits - kPlaces<kBits>[i]);
      scale[i] = V::mul(V::set1(one), of);
      offset[i] = V::fma(V::set1(-one - excess), of, minimum);
    }
  }
};

}  // namespace
}  // namespace skein

// Superblocks of 256 weights as they are stored (kernels.h): GGML's Q4_K, Q5_K, Q6_K and IQ4_XS.
#pragma once
#include "kernels/stored_group.h"

namespace skein {
namespace {

//   q4_k   d | dmin | 12 bytes of scales | 128 bytes          q5_k   d | dmin | 12 bytes of scales | 32 of fifth bits | 128
//
// Groups of 32: two of them share 32 bytes, the even one has the low nibbles. Bit g of byte i is the fifth bit of element i of
// group g. Scales and minima have 6 bits:
//
//   byte 0 .. 3   scale 0 .. 3,   the upper two bits of scale 4 .. 7
//   byte 4 .. 7   minimum 0 .. 3, the upper two bits of minimum 4 .. 7
//   byte 8 .. 11  the lower four bits of scale 4 .. 7 | of minimum 4 .. 7
template <DType D>
struct StoredSuperblock {
  const uint8_t* block;

  const uint8_t* d() const { return block; }
  const uint8_t* dmin() const { return block + 2; }
  int scale(int g) const {
    const uint8_t* packed = block + 4;
    return g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
  }
  int minimum(int g) const {
    const uint8_t* packed = block + 4;
    return g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  }
  int quant(int i) const {
    const int g = i / 32;
    const uint8_t* nibbles = block + (D == DType::kQ4K ? 16 : 48);
    const int low = nibbles[g / 2 * 32 + i % 32] >> (4 * (g % 2)) & 15;
    return D == DType::kQ4K ? low : low | (block[16 + i % 32] >> g & 1) << 4;
  }
  float value(int i) const {
    const float step = halfAt(d()) * float(scale(i / 32)), low = halfAt(dmin()) * float(minimum(i / 32));
    return step * float(quant(i)) - low;
  }
};

//   q6_k   128 bytes of low bits | 64 bytes of upper bits | 16 signed scales | d
//
// Of 128 elements, 32 share a row of bits: elements i and i + 64 the nibbles of byte i, all four the upper bits of byte i % 32.
template <>
struct StoredSuperblock<DType::kQ6K> {
  const uint8_t* block;

  const uint8_t* d() const { return block + 208; }
  int scale(int sixteen) const { return int8_t(block[192 + sixteen]); }
  int quant(int i) const {
    const int half = i / 128, quarter = i / 32 % 4;
    const int low = block[half * 64 + i % 64] >> (4 * (quarter / 2)) & 15;
    return low | (block[128 + half * 32 + i % 32] >> (2 * quarter) & 3) << 4;
  }
  float value(int i) const { return halfAt(d()) * float(scale(i / 16)) * float(quant(i) - 32); }
};

//   iq4_xs   d | 2 bytes of upper bits of scales | 4 bytes of lower ones | 128 bytes
//
// Of the scale of group g: bits 2 g and 2 g + 1 of the 16 upper ones, above nibble g of the lower ones. The nibbles of a group are
// 16 bytes: element i low, i + 16 high.
template <>
struct StoredSuperblock<DType::kIq4Xs> {
  const uint8_t* block;

  const uint8_t* d() const { return block; }
  int scale(int g) const {
    return ((block[4 + g / 2] >> (4 * (g % 2)) & 15) | (block[2 + g / 4] >> (2 * (g % 4)) & 3) << 4) - 32;
  }
  int quant(int i) const { return block[8 + i / 32 * 16 + i % 16] >> (i % 32 < 16 ? 0 : 4) & 15; }
  float value(int i) const { return halfAt(d()) * float(scale(i / 32)) * float(kIq4Values[quant(i)]); }
};

}  // namespace
}  // namespace skein

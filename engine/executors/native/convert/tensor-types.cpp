#include "tensor-types.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "grid-types.h"
#include "kernels/dequantize_row.h"

namespace skein {

float halfToFloat(uint16_t half) { return fromHalf(half); }

uint16_t floatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t((bits >> 16) | 0x40u);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Four low bits in bytes 0 .. 7 of the scales, two high bits in bytes 8 .. 11.
int q3kScale(const uint8_t* block, int g) {
  const uint8_t* packed = block + 96;
  const int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
  return (low | ((packed[8 + g % 4] >> (2 * (g / 4))) & 3) << 4) - 32;
}

int q3kQuant(const uint8_t* block, int i) {
  const int low = (block[32 + (i / 128) * 32 + i % 32] >> (2 * ((i / 32) % 4))) & 3;
  return low - ((block[i % 32] >> (i / 32)) & 1 ? 0 : 4);  // a set bit means no offset
}

namespace {

float loadHalf(const uint8_t* p) { return halfToFloat(load16(p)); }

void f32Row(const uint8_t* s, int64_t n, float* t) { std::memcpy(t, s, size_t(n) * sizeof(float)); }
void f16Row(const uint8_t* s, int64_t n, float* t) {
  for (int64_t i = 0; i < n; i++) t[i] = loadHalf(s + 2 * i);
}
void bf16Row(const uint8_t* s, int64_t n, float* t) {
  for (int64_t i = 0; i < n; i++) t[i] = std::bit_cast<float>(uint32_t(load16(s + 2 * i)) << 16);
}

// Formats with blocks of 32. The low nibbles of 16 bytes are elements 0..15, the high ones 16..31.
void q4_0Row(const uint8_t* s, int64_t blocks, float* t) {  // f16 scale | 16 bytes
  for (; blocks > 0; blocks--, s += 18, t += 32) {
    const float d = loadHalf(s);
    for (int i = 0; i < 16; i++) {
      t[i] = d * float((s[2 + i] & 15) - 8);
      t[i + 16] = d * float((s[2 + i] >> 4) - 8);
    }
  }
}

// K-quants: blocks of 256 in groups of 16 or 32 with their own scales.
//
//   quants of 64 or 128 elements share 32 bytes: byte b holds, in fields of 4 or 2 bits,
//   the elements b, b + 32, b + 64 ... of its stretch
void q2kRow(const uint8_t* s, int64_t blocks, float* t) {  // 16 scales (4 bits scale, 4 minimum) | 64 bytes | d | dmin
  for (; blocks > 0; blocks--, s += 84, t += 256) {
    const uint8_t* quants = s + 16;
    const float d = loadHalf(s + 80), dmin = loadHalf(s + 82);
    for (int i = 0; i < 256; i++) {
      const uint8_t scale = s[i / 16];
      const int q = (quants[(i / 128) * 32 + i % 32] >> (2 * ((i / 32) % 4))) & 3;
      t[i] = (d * float(scale & 15)) * float(q) - dmin * float(scale >> 4);
    }
  }
}

void q3kRow(const uint8_t* s, int64_t blocks, float* t) {  // 32 bytes of third bits | 64 bytes | 12 bytes of scales | d
  for (; blocks > 0; blocks--, s += 110, t += 256) {
    const float d = loadHalf(s + 108);
    float scales[16];
    for (int g = 0; g < 16; g++) scales[g] = d * float(q3kScale(s, g));
    for (int i = 0; i < 256; i++) t[i] = scales[i / 16] * float(q3kQuant(s, i));
  }
}

// NVFP4: 4 scales of FP8 (E4M3 without a sign) | 4 groups of 16. The low nibbles of 8 bytes are elements 0..7, the high ones 8..15. The
// table has twice the values of E2M1, so scales are halved; the code of NaN is 0, as GGML has it.
float e4m3Half(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if (code == 0x7f) return 0;
  return exponent == 0 ? std::ldexp(float(fraction), -10) : std::ldexp(float(8 + fraction), exponent - 11);
}

void nvfp4Row(const uint8_t* s, int64_t blocks, float* t) {
  static constexpr int8_t kDoubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (; blocks > 0; blocks--, s += 36, t += 64) {
    for (int i = 0; i < 32; i++) {
      const float scale = e4m3Half(s[i / 8]);
      float* to = t + 16 * (i / 8) + i % 8;
      to[0] = scale * float(kDoubled[s[4 + i] & 15]);
      to[8] = scale * float(kDoubled[s[4 + i] >> 4]);
    }
  }
}

// Formats that engines keep.
template <DType D>
void keptRow(const uint8_t* s, int64_t blocks, float* t) {
  dequantizeRow<D>(s, int(blocks) * blockElements(D), t);
}

constexpr TensorType kTypes[] = {
    {"F32", 1, 4, f32Row},
    {"F16", 1, 2, f16Row},
    {"BF16", 1, 2, bf16Row},
    {"Q4_0", 32, 18, q4_0Row},
    {"Q4_1", 32, 20, keptRow<DType::kInt4>},
    {"Q5_0", 32, 22, keptRow<DType::kQ5_0>},
    {"Q5_1", 32, 24, keptRow<DType::kQ5_1>},
    {"Q8_0", 32, 34, keptRow<DType::kInt8>},
    {"IQ4_NL", 32, 18, keptRow<DType::kIq4Nl>},
    {"MXFP4", 32, 17, keptRow<DType::kMxfp4>},
    {"Q2_K", 256, 84, q2kRow},
    {"Q3_K", 256, 110, q3kRow},
    {"Q4_K", 256, 144, keptRow<DType::kQ4K>},
    {"Q5_K", 256, 176, keptRow<DType::kQ5K>},
    {"Q6_K", 256, 210, keptRow<DType::kQ6K>},
    {"IQ4_XS", 256, 136, keptRow<DType::kIq4Xs>},
    {"NVFP4", 64, 36, nvfp4Row},
    {"IQ1_S", 256, 50, iq1sRow},
    {"IQ1_M", 256, 56, iq1mRow},
    {"IQ2_XXS", 256, 66, iq2xxsRow},
    {"IQ2_XS", 256, 74, iq2xsRow},
    {"IQ2_S", 256, 82, iq2sRow},
    {"IQ3_XXS", 256, 98, iq3xxsRow},
    {"IQ3_S", 256, 110, iq3sRow},
    {"TQ1_0", 256, 54, tq1_0Row},
    {"TQ2_0", 256, 66, tq2_0Row},
};

}  // namespace

const TensorType* tensorTypeOf(std::string_view name) {
  for (const TensorType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

}  // namespace skein

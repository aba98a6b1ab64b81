#include "grid-types.h"

#include <bit>

#include "grids.h"
#include "tensor-types.h"

namespace skein {
namespace {

// Blocks have 8 groups of 32 values, and a sign of one bit for each value.
//
//   group of 32   [ row 8 | row 8 | row 8 | row 8 ]      IQ1, IQ2
//                 [ row 4 | row 4 | ... 8 rows ... ]     IQ3

float scaleAt(const uint8_t* p) { return halfToFloat(load16(p)); }
uint32_t load32(const uint8_t* p) { return uint32_t(load16(p)) | uint32_t(load16(p + 2)) << 16; }
int nibble(const uint8_t* bytes, int i) { return (bytes[i / 2] >> (4 * (i % 2))) & 15; }

// Eight signs of seven bits: the last one makes their number even.
int evenSigns(uint32_t packed) {
  const uint32_t seven = packed & 127;
  return int(seven | (std::popcount(seven) & 1u) << 7);
}

// Value i of a row of `Width`.
template <int Width>
int valueOf(uint16_t row, const int8_t* values, int i) {
  constexpr int kBits = 16 / Width;
  return values[(row >> (kBits * i)) & ((1 << kBits) - 1)];
}

// Writes a row, each value times the scale and with its sign, which is negative where its bit is set.
template <int Width>
void writeRow(uint16_t row, const int8_t* values, float scale, int signs, float* t) {
  for (int i = 0; i < Width; i++) {
    const float value = scale * float(valueOf<Width>(row, values, i));
    t[i] = (signs >> i) & 1 ? -value : value;
  }
}

// A row of -1, 0 and 1, moved by an eighth up or down.
void writeTernary(uint16_t row, float scale, bool isDown, float* t) {
  const float delta = isDown ? -0.125f : 0.125f;
  for (int i = 0; i < 8; i++) t[i] = scale * (float(valueOf<8>(row, kIq1SValues, i)) + delta);
}

}  // namespace

// d | 8 groups: 4 bytes of rows, 4 bytes of 4 x 7 signs and a scale of 4 bits
void iq2xxsRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 66, t += 256) {
    for (int l = 0; l < 32; l++) {
      const uint8_t* group = s + 2 + 8 * (l / 4);
      const uint32_t packed = load32(group + 4);
      const float scale = scaleAt(s) * (0.5f + float(packed >> 28)) * 0.25f;
      writeRow<8>(kIq2XxsRows[group[l % 4]], kIq2XxsValues, scale, evenSigns(packed >> (7 * (l % 4))), t + 8 * l);
    }
  }
}

// d | 32 times 9 bits of a row and 7 of signs | 8 bytes of scales of 4 bits, one for 16 values
void iq2xsRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 74, t += 256) {
    for (int l = 0; l < 32; l++) {
      const uint16_t packed = load16(s + 2 + 2 * l);
      const float scale = scaleAt(s) * (0.5f + float(nibble(s + 66, l / 2))) * 0.25f;
      writeRow<8>(kIq2XsRows[packed & 511], kIq2XsValues, scale, evenSigns(packed >> 9), t + 8 * l);
    }
  }
}

// d | 32 bytes of rows | 32 bytes of signs | 8 bytes of 4 x 2 high bits of rows | 8 bytes of scales as above
void iq2sRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 82, t += 256) {
    for (int l = 0; l < 32; l++) {
      const int row = s[2 + l] | ((s[66 + l / 4] >> (2 * (l % 4))) & 3) << 8;
      const float scale = scaleAt(s) * (0.5f + float(nibble(s + 74, l / 2))) * 0.25f;
      writeRow<8>(kIq2SRows[row], kIq2SValues, scale, s[34 + l], t + 8 * l);
    }
  }
}

// d | 64 bytes of rows | 8 times 4 x 7 signs and a scale of 4 bits
void iq3xxsRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 98, t += 256) {
    for (int l = 0; l < 64; l++) {
      const uint32_t packed = load32(s + 66 + 4 * (l / 8));
      const int signs = evenSigns(packed >> (7 * (l / 2 % 4))) >> (4 * (l % 2));
      const float scale = scaleAt(s) * (0.5f + float(packed >> 28)) * 0.5f;
      writeRow<4>(kIq3XxsRows[s[2 + l]], kIq3XxsValues, scale, signs, t + 4 * l);
    }
  }
}

// d | 64 bytes of rows | 8 bytes of high bits of rows | 32 bytes of signs | 4 bytes of scales of 4 bits, one for 32 values
void iq3sRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 110, t += 256) {
    for (int l = 0; l < 64; l++) {
      const int row = s[2 + l] | ((s[66 + l / 8] >> (l % 8)) & 1) << 8;
      const float scale = scaleAt(s) * float(1 + 2 * nibble(s + 106, l / 8));
      writeRow<4>(kIq3SRows[row], kIq3SValues, scale, s[74 + l / 2] >> (4 * (l % 2)), t + 4 * l);
    }
  }
}

// d | 32 bytes of rows | 8 times 4 x 3 high bits of rows, a scale of 3 bits and the direction
void iq1sRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 50, t += 256) {
    for (int l = 0; l < 32; l++) {
      const uint16_t packed = load16(s + 34 + 2 * (l / 4));
      const int row = s[2 + l] | ((packed >> (3 * (l % 4))) & 7) << 8;
      writeTernary(kIq1SRows[row], scaleAt(s) * float(2 * ((packed >> 12) & 7) + 1), packed >= 0x8000, t + 8 * l);
    }
  }
}

// 32 bytes of rows | 16 bytes of 2 x 3 high bits and a direction | 4 times 4 x 3 bits of scales and 4 bits of d
void iq1mRow(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 56, t += 256) {
    uint16_t scales[4], bits = 0;
    for (int i = 0; i < 4; i++) {
      scales[i] = load16(s + 48 + 2 * i);
      bits |= uint16_t((scales[i] >> 12) << (4 * i));
    }
    const float d = halfToFloat(bits);
    for (int l = 0; l < 32; l++) {
      const int high = nibble(s + 32, l);
      const float scale = d * float(2 * ((scales[l / 8] >> (3 * (l / 2 % 4))) & 7) + 1);
      writeTernary(kIq1SRows[s[l] | (high & 7) << 8], scale, (high & 8) != 0, t + 8 * l);
    }
  }
}

// A byte has five quants as digits of base 3, of 256ths.
int tq1Quant(const uint8_t* block, int i) {
  const int first = i < 160 ? 0 : i < 240 ? 32 : 48, bytes = i < 160 ? 32 : i < 240 ? 16 : 4;
  const int at = i < 160 ? i : i < 240 ? i - 160 : i - 240;
  static constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  const uint8_t digits = uint8_t(block[first + at % bytes] * kPowers[at / bytes]);
  return digits * 3 >> 8;
}

int tq2Quant(const uint8_t* block, int i) { return (block[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4))) & 3; }

// 48 bytes of five digits | 4 bytes of four | d
void tq1_0Row(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 54, t += 256) {
    const float d = scaleAt(s + 52);
    for (int i = 0; i < 256; i++) t[i] = d * float(tq1Quant(s, i) - 1);
  }
}

// 64 bytes | d
void tq2_0Row(const uint8_t* s, int64_t blocks, float* t) {
  for (; blocks > 0; blocks--, s += 66, t += 256) {
    const float d = scaleAt(s + 64);
    for (int i = 0; i < 256; i++) t[i] = d * float(tq2Quant(s, i) - 1);
  }
}

}  // namespace skein

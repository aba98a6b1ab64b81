// Storage types of checkpoints, and how a row of each becomes float32. Layouts are GGML's, little endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skein {

struct TensorType {
  std::string_view name;
  int32_t blockElements;  // a row holds a whole number of blocks
  int32_t blockBytes;
  // Converts `blocks` blocks at `source` (any alignment) into blocks * blockElements floats.
  void (*toF32)(const uint8_t* source, int64_t blocks, float* target);
};

// The type of this name; null if there is none.
const TensorType* tensorTypeOf(std::string_view name);

// Scale of group g (of 16) and quant of element i (of 256) in a block of Q3_K: w = d * scale * quant.
int q3kScale(const uint8_t* block, int g);
int q3kQuant(const uint8_t* block, int i);

// Two bytes, the lower one first.
inline uint16_t load16(const uint8_t* p) { return uint16_t(p[0] | (p[1] << 8)); }

float halfToFloat(uint16_t half);
// Rounds to nearest, ties to even; NaN stays a (quiet) NaN.
uint16_t floatToBf16(float value);

}  // namespace skein

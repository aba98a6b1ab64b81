// Converts rows of quantised blocks (kernels.h) into the panels of quantized.h, and into f32; outputs beyond n are
// zero.
#pragma once
#include "kernels/quantized.h"

namespace skein {
namespace {

template <class V, DType D>
size_t quantizedPackedBytes(int n, int k) {
  return size_t(panelsOf(n, kPanelWidth<V>)) * groupsOf(k) * kPanelGroupBytes<V, D>;
}

// Nibble i of a stored block of int4.
inline uint8_t storedNibble(const uint8_t* nibbles, int i) { return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4; }

// Packs one group of output j of a panel; `block` is null beyond n.
template <class V, DType D>
void packGroup(const uint8_t* block, int j, uint8_t* group) {
  constexpr int NR = kPanelWidth<V>;
  const uint8_t zeros[34] = {};
  if (!block) block = zeros;
  __builtin_memcpy(group + 2 * j, block, 2);
  if constexpr (D == DType::kInt4) __builtin_memcpy(group + 2 * NR + 2 * j, block + 2, 2);
  // Byte b of lane j in step s: both vectors' lanes follow one another.
  uint8_t* steps = group + kScaleBytes<V, D> + 4 * j;
  if constexpr (D == DType::kInt8) {
    for (int s = 0; s < kGroup / 4; s++) __builtin_memcpy(steps + s * 4 * NR, block + 2 + 4 * s, 4);
  } else {
    for (int s = 0; s < kGroup / 8; s++)
      for (int b = 0; b < 4; b++)
        steps[s * 4 * NR + b] =
            uint8_t(storedNibble(block + 4, 8 * s + b) | (storedNibble(block + 4, 8 * s + 4 + b) << 4));
  }
}

template <class V, DType D>
void packQuantizedPanel(const uint8_t* w, int firstRow, int n, int k, uint8_t* panel) {
  const int groups = groupsOf(k);
  for (int j = 0; j < kPanelWidth<V>; j++) {
    const uint8_t* row = firstRow + j < n ? w + int64_t(firstRow + j) * groups * blockBytes(D) : nullptr;
    for (int g = 0; g < groups; g++)
      packGroup<V, D>(row ? row + int64_t(g) * blockBytes(D) : nullptr, j, panel + int64_t(g) * kPanelGroupBytes<V, D>);
  }
}

template <class V, DType D>
void packQuantizedOf(const uint8_t* w, int n, int k, uint8_t* packed) {
  const int64_t panelBytes = int64_t(groupsOf(k)) * kPanelGroupBytes<V, D>;
  for (int p = 0; p < panelsOf(n, kPanelWidth<V>); p++)
    packQuantizedPanel<V, D>(w, p * kPanelWidth<V>, n, k, packed + p * panelBytes);
}

// Packs in this order: gate panel 0, up panel 0, gate panel 1, up panel 1, ...
template <class V, DType D>
void packQuantizedGatedOf(const uint8_t* w, int n, int k, uint8_t* packed) {
  const int64_t panelBytes = int64_t(groupsOf(k)) * kPanelGroupBytes<V, D>;
  const uint8_t* up = w + int64_t(n) * groupsOf(k) * blockBytes(D);
  for (int p = 0; p < panelsOf(n, kPanelWidth<V>); p++) {
    packQuantizedPanel<V, D>(w, p * kPanelWidth<V>, n, k, packed + 2 * p * panelBytes);
    packQuantizedPanel<V, D>(up, p * kPanelWidth<V>, n, k, packed + (2 * p + 1) * panelBytes);
  }
}

// Converts one stored row to f32.
template <DType D>
void dequantizeRow(const uint8_t* row, int n, float* y) {
  for (int first = 0; first < n; first += kGroup, row += blockBytes(D)) {
    const int count = n - first < kGroup ? n - first : kGroup;
    uint16_t halves[2];
    __builtin_memcpy(halves, row, 4);
    const float scale = fromHalf(halves[0]);
    if constexpr (D == DType::kInt8) {
      for (int i = 0; i < count; i++) y[first + i] = scale * float(int8_t(row[2 + i]));
    } else {
      const float minimum = fromHalf(halves[1]);
      for (int i = 0; i < count; i++) y[first + i] = scale * float(storedNibble(row + 4, i)) + minimum;
    }
  }
}

}  // namespace
}  // namespace skein

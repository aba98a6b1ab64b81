// Converts rows of quantised blocks (kernels.h) into the panels of quantized.h; outputs beyond n are zero.
#pragma once
#include "kernels/quantized.h"
#include "kernels/stored_superblock.h"

namespace skein {
namespace {

template <class V, DType D>
size_t quantizedPackedBytes(int n, int k) {
  return size_t(panelsOf(n, kPanelWidth<V>)) * panelBytesOf<V, D>(k);
}

// Packs quants of 4 bits of one group and output: nibble(i) is that of element i. `steps` is output j's place in the first
// double step.
template <class V, class Nibble>
void packNibbles(uint8_t* steps, Nibble nibble) {
  for (int s = 0; s < kGroup / 8; s++)
    for (int b = 0; b < 4; b++)
      steps[s * 4 * kPanelWidth<V> + b] = uint8_t((nibble(8 * s + b) & 15) | (nibble(8 * s + 4 + b) & 15) << 4);
}

// Packs the fifth bits of quants of one group and output, the same way.
template <class Quant>
void packFifthBits(uint8_t* bits, Quant quant) {
  __builtin_memset(bits, 0, 4);
  for (int i = 0; i < kGroup; i++) bits[i % 4] |= uint8_t((quant(i) >> 4) << (i / 4));
}

// Packs one block of output j of a panel; `block` is null beyond n.
template <class V, DType D>
void packBlockOf(const uint8_t* block, int j, uint8_t* group) {
  using Layout = GroupLayout<V, D>;
  constexpr int NR = kPanelWidth<V>;
  const uint8_t zeros[blockBytes(D)] = {};
  if (!block) block = zeros;
  if constexpr (D == DType::kMxfp4) {
    const uint16_t scale = mxfp4Scale(*block);
    __builtin_memcpy(group + 2 * j, &scale, 2);
  } else {
    __builtin_memcpy(group + 2 * j, block, 2);
  }
  // Byte b of lane j in step s: both vectors' lanes follow one another.
  uint8_t* steps = group + Layout::kQuants + 4 * j;
  if constexpr (D == DType::kInt8) {
    for (int s = 0; s < kGroup / 4; s++) __builtin_memcpy(steps + s * 4 * NR, block + 2 + 4 * s, 4);
  } else {
    const StoredGroup<D> stored{block};
    const auto quant = [&](int i) { return stored.quant(i); };
    if constexpr (stored.kHasMinimum) __builtin_memcpy(group + 2 * NR + 2 * j, block + 2, 2);
    packNibbles<V>(steps, quant);
    if constexpr (stored.kHasFifthBits) packFifthBits(group + Layout::kFifthBits + 4 * j, quant);
  }
}

// The same for a superblock.
template <class V, DType D>
  requires(isSuperblocked(D))
void packBlockOf(const uint8_t* block, int j, uint8_t* superblock) {
  using Layout = SuperblockLayout<V, D>;
  constexpr int NR = kPanelWidth<V>;
  const uint8_t zeros[blockBytes(D)] = {};
  const StoredSuperblock<D> stored{block ? block : zeros};
  __builtin_memcpy(superblock + 2 * j, stored.d(), 2);
  if constexpr (D == DType::kQ4K || D == DType::kQ5K) __builtin_memcpy(superblock + 2 * NR + 2 * j, stored.dmin(), 2);
  for (int g = 0; g < kGroupsOfSuperblock; g++) {
    uint8_t* group = superblock + Layout::kHeader + g * Layout::kGroupBytes;
    if constexpr (D == DType::kQ6K) {
      group[j] = uint8_t(stored.scale(2 * g));
      group[NR + j] = uint8_t(stored.scale(2 * g + 1));
    } else if constexpr (D == DType::kIq4Xs) {
      superblock[(2 + g) * NR + j] = uint8_t(stored.scale(g));
    } else {
      group[j] = uint8_t(stored.scale(g));
      group[NR + j] = uint8_t(stored.minimum(g));
    }
    const auto quant = [&](int i) { return stored.quant(g * kGroup + i); };
    packNibbles<V>(group + Layout::kNibbles + 4 * j, quant);
    if constexpr (D == DType::kQ5K) packFifthBits(group + Layout::kUpper + 4 * j, quant);
    for (int i = 0; i < kGroup && D == DType::kQ6K; i++) {
      uint8_t* to = group + Layout::kUpper + 4 * j + i % 4 + i / 16 * 4 * NR;
      *to = uint8_t((i % 16 < 4 ? 0 : *to) | quant(i) >> 4 << (2 * (i / 4 % 4)));
    }
  }
}

template <class V, DType D>
void packQuantizedPanel(const uint8_t* w, int firstRow, int n, int k, uint8_t* panel) {
  constexpr int kGroups = blockElements(D) / kGroup;
  for (int j = 0; j < kPanelWidth<V>; j++) {
    const uint8_t* row = firstRow + j < n ? w + int64_t(firstRow + j) * rowBytes(D, k) : nullptr;
    for (int b = 0; b * blockElements(D) < k; b++)
      packBlockOf<V, D>(row ? row + int64_t(b) * blockBytes(D) : nullptr, j,
                        panel + PackedGroups<V, D>::offsetOf(b * kGroups));
  }
}

template <class V, DType D>
void packQuantizedOf(const uint8_t* w, int n, int k, uint8_t* packed) {
  const int64_t panelBytes = panelBytesOf<V, D>(k);
  for (int p = 0; p < panelsOf(n, kPanelWidth<V>); p++)
    packQuantizedPanel<V, D>(w, p * kPanelWidth<V>, n, k, packed + p * panelBytes);
}

// Packs in this order: gate panel 0, up panel 0, gate panel 1, up panel 1, ...
template <class V, DType D>
void packQuantizedGatedOf(const uint8_t* w, int n, int k, uint8_t* packed) {
  const int64_t panelBytes = panelBytesOf<V, D>(k);
  const uint8_t* up = w + int64_t(n) * rowBytes(D, k);
  for (int p = 0; p < panelsOf(n, kPanelWidth<V>); p++) {
    packQuantizedPanel<V, D>(w, p * kPanelWidth<V>, n, k, packed + 2 * p * panelBytes);
    packQuantizedPanel<V, D>(up, p * kPanelWidth<V>, n, k, packed + (2 * p + 1) * panelBytes);
  }
}

}  // namespace
}  // namespace skein

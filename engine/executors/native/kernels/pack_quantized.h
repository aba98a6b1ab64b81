// Converts rows of quantised blocks (kernels.h) into the panels of quantized.h; outputs beyond n are zero.
#pragma once
#include "kernels/quantized.h"
#include "kernels/stored_superblock.h"

namespace skein {
namespace {

// Packs quants of 4 bits of one group and output: eight(s) has those of the double step s, a byte each. The low nibbles of its
// four bytes are the first four, the high ones the others. `steps` is output j's place in the first double step.
template <class V, class Eight>
void packNibbles(uint8_t* steps, Eight eight) {
  SKEIN_UNROLL(4)
  for (int s = 0; s < kGroup / 8; s++) {
    const uint64_t quants = eight(s);
    const uint32_t word = uint32_t(quants | quants >> 28);
    __builtin_memcpy(steps + s * 4 * kPanelWidth<V>, &word, 4);
  }
}

// Bit 4 s + b, of element 4 s + b, becomes bit s of byte b.
inline uint32_t fifthBitsByByte(uint32_t bits) {
  uint32_t result = 0;
  for (int b = 0; b < 4; b++) {
    uint32_t eight = bits >> b & 0x11111111;
    eight = (eight | eight >> 3) & 0x03030303;
    eight = (eight | eight >> 6) & 0x000F000F;
    result |= ((eight | eight >> 12) & 0xFF) << (8 * b);
  }
  return result;
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
    if constexpr (stored.kHasMinimum) __builtin_memcpy(group + 2 * NR + 2 * j, block + 2, 2);
    packNibbles<V>(steps, [&](int s) { return stored.eightNibbles(s); });
    if constexpr (stored.kHasFifthBits) {
      const uint32_t bits = fifthBitsByByte(stored.fifthBits());
      __builtin_memcpy(group + Layout::kFifthBits + 4 * j, &bits, 4);
    }
  }
}

// Packs the bits of group g above the nibbles: those of element 4 s + b lie in byte b, one bit of Q5_K at s, two bits of Q6_K at
// 2 s % 8 of vector s / 4.
template <class V, DType D>
void packUpper(const StoredSuperblock<D>& stored, int g, uint8_t* to) {
  constexpr int kBits = D == DType::kQ5K ? 1 : 2;
  for (int vector = 0; vector < kBits; vector++) {
    uint32_t word = 0;
    for (int e = 0; e < 4 / kBits; e++) {
      const uint64_t eight = stored.eightUpper(g, vector * 2 + e);
      word |= uint32_t(eight | eight >> (32 - kBits)) << (2 * kBits * e);
    }
    __builtin_memcpy(to + vector * 4 * kPanelWidth<V>, &word, 4);
  }
}

// Packs one superblock of output j of a panel; `block` is null beyond n.
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
    packNibbles<V>(group + Layout::kNibbles + 4 * j, [&](int s) { return stored.eightNibbles(g, s); });
    if constexpr (D == DType::kQ5K || D == DType::kQ6K) packUpper<V, D>(stored, g, group + Layout::kUpper + 4 * j);
  }
}

// Block by block, so that what is written lies in the first-level cache.
template <class V, DType D>
void packQuantizedPanel(const uint8_t* w, int firstRow, int n, int k, uint8_t* panel) {
  constexpr int kGroups = blockElements(D) / kGroup;
  for (int b = 0; b * blockElements(D) < k; b++) {
    uint8_t* to = panel + PackedGroups<V, D>::offsetOf(b * kGroups);
    const uint8_t* from = w + int64_t(firstRow) * int64_t(rowBytes(D, k)) + int64_t(b) * int64_t(blockBytes(D));
    for (int j = 0; j < kPanelWidth<V>; j++, from += rowBytes(D, k))
      packBlockOf<V, D>(firstRow + j < n ? from : nullptr, j, to);
  }
}

}  // namespace
}  // namespace skein

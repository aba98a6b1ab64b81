// Packs rows of F32, F16 and BF16 as a GGUF stores them into one panel (gemm.h), with the bits of packWeights(): vectors of words of W
// rows take the places of the panel.
//
//   f32    words of k              are a step's vector as they are
//   bf16   words of k and k + 1    two steps, of which each word has two rows; or one step of pairs of k (pairs.h)
#pragma once
#include "kernels/pack.h"
#include "kernels/stored_groups.h"

namespace skein {
namespace {

inline uint16_t bf16OfHalf(uint16_t half) {
  const float value = fromHalf(half);
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return value != value ? uint16_t(bits >> 16 | 0x40u) : uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// The bf16 of f16 in the lower half of each word, in the upper half of the result; below it are zeros.
template <class V>
inline typename V::I bf16OfHalves(typename V::I halves) {
  const auto value = V::halvesOf(halves);
  const auto bits = V::bitsOf(value);
  const auto odd = V::both(V::downBits(bits, 16), V::set1I(1));
  const auto rounded = V::floatsOf(V::plus(V::plus(bits, V::set1I(0x7fff)), odd));
  const auto magnitude = V::floatsOf(V::both(bits, V::set1I(0x7fffffff)));
  // Infinity and NaN, which is quiet already, stay as they are.
  const auto kept = V::selectLess(magnitude, V::set1(__builtin_inff()), rounded, value);
  return V::both(V::bitsOf(kept), V::set1I(int32_t(0xffff0000u)));
}

// Words of two bf16 of each row.
template <class V, StoredType T>
inline typename V::I bf16Words(typename V::I words) {
  if constexpr (T == StoredType::kBf16) return words;
  const auto even = bf16OfHalves<V>(V::both(words, V::set1I(0xffff))), odd = bf16OfHalves<V>(V::downBits(words, 16));
  return V::either(V::downBits(even, 16), odd);
}

template <class V>
void packStoredF32(const uint8_t* const* rows, int columns, float* panel) {
  constexpr int NR = kPanelWidth<V>;
  int k = 0;
  for (; k + 4 <= columns; k += 4) {
    for (int half = 0; half < 2; half++) {
      typename V::I words[4];
      V::wordsOfRows(rows + half * V::W, int64_t(k) * 4, words);
      for (int i = 0; i < 4; i++) V::storeI(reinterpret_cast<uint8_t*>(panel + (k + i) * NR + half * V::W), words[i]);
    }
  }
  for (; k < columns; k++)
    for (int j = 0; j < NR; j++) __builtin_memcpy(panel + k * NR + j, rows[j] + int64_t(k) * 4, 4);
}

template <class V, StoredType T>
void packStoredBf16(const uint8_t* const* rows, int columns, uint16_t* panel) {
  constexpr int NR = kPanelWidth<V>;
  using I = typename V::I;
  uint8_t* to = reinterpret_cast<uint8_t*>(panel);
  int k = 0;
  for (; k + 8 <= columns; k += 8) {
    I low[4], high[4];
    V::wordsOfRows(rows, int64_t(k) * 2, low);
    V::wordsOfRows(rows + V::W, int64_t(k) * 2, high);
    SKEIN_UNROLL(4)
    for (int i = 0; i < 4; i++, to += 4 * NR) {
      I first = bf16Words<V, T>(low[i]), second = bf16Words<V, T>(high[i]);
      if constexpr (!V::kBf16Pairs) {
        const I even = V::either(V::both(first, V::set1I(0xffff)), V::upBits(second, 16));
        second = V::either(V::downBits(first, 16), V::both(second, V::set1I(int32_t(0xffff0000u))));
        first = even;
      }
      V::storeI(to, first);
      V::storeI(to + 2 * NR, second);
    }
  }
  for (; k < paddedK<V>(DType::kBf16, columns); k++)
    for (int j = 0; j < NR; j++) {
      uint16_t value = 0;
      if (k < columns) __builtin_memcpy(&value, rows[j] + int64_t(k) * 2, 2);
      panel[placeInStep<V, uint16_t>(j) + startOf<V, uint16_t>(k)] = T == StoredType::kF16 ? bf16OfHalf(value) : value;
    }
}

template <class V>
void packStored(StoredType type, const uint8_t* const* rows, int32_t columns, void* panel) {
  switch (type) {
    case StoredType::kF32: return packStoredF32<V>(rows, columns, static_cast<float*>(panel));
    case StoredType::kF16: return packStoredBf16<V, StoredType::kF16>(rows, columns, static_cast<uint16_t*>(panel));
    default: return packStoredBf16<V, StoredType::kBf16>(rows, columns, static_cast<uint16_t*>(panel));
  }
}

}  // namespace
}  // namespace skein

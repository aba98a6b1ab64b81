// Packs row-major weights into the panels of gemm.h; outputs beyond n are zero.
#pragma once
#include "kernels/gemm.h"
#include "kernels/pack_quantized.h"
#include "kernels/pairs.h"

namespace skein {
namespace {

// True if a step of a product takes two k.
template <class V, class T>
constexpr bool kInPairs = V::kBf16Pairs && sizeof(T) == 2;

// Place of output j of a panel within a step of k: bf16 interleaves j and j + W in one word, or puts a pair of k there.
template <class V, class T>
constexpr int placeInStep(int j) {
  if constexpr (sizeof(T) == 4) return j;
  if constexpr (kInPairs<V, T>) return 2 * j;
  return j < V::W ? 2 * j : 2 * (j - V::W) + 1;
}

// Number of elements from a panel's first one to the first of kk.
template <class V, class T>
constexpr size_t startOf(int kk) {
  if constexpr (kInPairs<V, T>) return size_t(kk / 2) * 2 * kPanelWidth<V> + kk % 2;
  return size_t(kk) * kPanelWidth<V>;
}

// Number of k that a panel has room for.
template <class V>
constexpr int paddedK(DType dtype, int k) {
  return V::kBf16Pairs && dtype == DType::kBf16 ? 2 * pairsOf(k) : k;
}

template <class V, class T>
void packPanel(const T* w, int firstRow, int n, int k, T* panel) {
  constexpr int NR = kPanelWidth<V>;
  const int padded = paddedK<V>(sizeof(T) == 4 ? DType::kF32 : DType::kBf16, k);
  for (int j = 0; j < NR; j++) {
    T* to = panel + placeInStep<V, T>(j);
    if (firstRow + j < n) {
      const T* from = w + size_t(firstRow + j) * k;
      for (int kk = 0; kk < padded; kk++) to[startOf<V, T>(kk)] = kk < k ? from[kk] : T(0);
    } else {
      for (int kk = 0; kk < padded; kk++) to[startOf<V, T>(kk)] = T(0);
    }
  }
}

template <class V, class T>
size_t panelElements(int k) {
  return size_t(kPanelWidth<V>) * paddedK<V>(sizeof(T) == 4 ? DType::kF32 : DType::kBf16, k);
}

template <class V>
size_t packedBytes(DType dtype, int32_t n, int32_t k) {
  if (isQuantized(dtype))
    return forFormat(dtype, [&]<DType D>(Format<D>) { return quantizedPackedBytes<V, D>(n, k); });
  return size_t(panelsOf(n, kPanelWidth<V>)) * kPanelWidth<V> * paddedK<V>(dtype, k) * bytesOf(dtype);
}

template <class V>
size_t packedGatedBytes(DType dtype, int32_t n, int32_t k) {
  return 2 * packedBytes<V>(dtype, n, k);
}

template <class V, class T>
void packOf(const T* w, int n, int k, T* packed) {
  constexpr int NR = kPanelWidth<V>;
  const size_t panel = panelElements<V, T>(k);
  for (int p = 0; p < panelsOf(n, NR); p++) packPanel<V>(w, p * NR, n, k, packed + p * panel);
}

// Packs in this order: gate panel 0, up panel 0, gate panel 1, up panel 1, ...
template <class V, class T>
void packGatedOf(const T* w, int n, int k, T* packed) {
  constexpr int NR = kPanelWidth<V>;
  const size_t panel = panelElements<V, T>(k);
  for (int p = 0; p < panelsOf(n, NR); p++) {
    packPanel<V>(w, p * NR, n, k, packed + 2 * p * panel);
    packPanel<V>(w + size_t(n) * k, p * NR, n, k, packed + (2 * p + 1) * panel);
  }
}

template <class V>
void packWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
  switch (dtype) {
    case DType::kF32: return packOf<V>(static_cast<const float*>(w), n, k, static_cast<float*>(packed));
    case DType::kBf16: return packOf<V>(static_cast<const uint16_t*>(w), n, k, static_cast<uint16_t*>(packed));
    default: break;
  }
  forFormat(dtype, [&]<DType D>(Format<D>) {
    packQuantizedOf<V, D>(static_cast<const uint8_t*>(w), n, k, static_cast<uint8_t*>(packed));
  });
}

template <class V>
void packGatedWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
  switch (dtype) {
    case DType::kF32: return packGatedOf<V>(static_cast<const float*>(w), n, k, static_cast<float*>(packed));
    case DType::kBf16: return packGatedOf<V>(static_cast<const uint16_t*>(w), n, k, static_cast<uint16_t*>(packed));
    default: break;
  }
  forFormat(dtype, [&]<DType D>(Format<D>) {
    packQuantizedGatedOf<V, D>(static_cast<const uint8_t*>(w), n, k, static_cast<uint8_t*>(packed));
  });
}

}  // namespace
}  // namespace skein

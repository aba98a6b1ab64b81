// Packs row-major weights into the panels of gemm.h; outputs beyond n are zero.
#pragma once
#include <type_traits>

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

// Number of k that a panel has room for: of bf16 whole pairs, or whole tiles.
template <class V>
constexpr int paddedK(DType dtype, int k) {
  if constexpr (requires { V::kPanelK; }) {
    if (dtype == DType::kBf16) return (k + V::kPanelK - 1) / V::kPanelK * V::kPanelK;
  }
  return V::kBf16Pairs && dtype == DType::kBf16 ? 2 * pairsOf(k) : k;
}

// Number of k that are packed at once for all outputs: what is written lies in the first-level cache.
constexpr int kPackedAtOnce = 32;

template <class V, class T>
void packPanel(const T* w, int firstRow, int n, int k, T* panel) {
  constexpr int NR = kPanelWidth<V>;
  const int padded = paddedK<V>(sizeof(T) == 4 ? DType::kF32 : DType::kBf16, k);
  for (int begin = 0; begin < padded; begin += kPackedAtOnce) {
    const int end = begin + kPackedAtOnce < padded ? begin + kPackedAtOnce : padded;
    for (int j = 0; j < NR; j++) {
      T* to = panel + placeInStep<V, T>(j);
      const T* from = w + size_t(firstRow + j) * k;
      const int known = firstRow + j < n ? (end < k ? end : k) : begin;
      for (int kk = begin; kk < known; kk++) to[startOf<V, T>(kk)] = from[kk];
      for (int kk = known; kk < end; kk++) to[startOf<V, T>(kk)] = T(0);
    }
  }
}

// How one format is packed: the bytes of a panel, and the panel of the outputs from `firstRow` on of w, row-major [n, k].
struct PanelPacking {
  int64_t (*panelBytes)(int k);
  void (*pack)(const void* w, int firstRow, int n, int k, void* panel);
};

template <class V, DType D>
constexpr PanelPacking panelPacking() {
  if constexpr (isQuantized(D)) {
    return {panelBytesOf<V, D>, [](const void* w, int firstRow, int n, int k, void* panel) {
              packQuantizedPanel<V, D>(static_cast<const uint8_t*>(w), firstRow, n, k, static_cast<uint8_t*>(panel));
            }};
  } else {
    using T = std::conditional_t<D == DType::kF32, float, uint16_t>;
    return {[](int k) { return int64_t(kPanelWidth<V> * sizeof(T)) * paddedK<V>(D, k); },
            [](const void* w, int firstRow, int n, int k, void* panel) {
              packPanel<V>(static_cast<const T*>(w), firstRow, n, k, static_cast<T*>(panel));
            }};
  }
}

template <class V>
PanelPacking panelPackingOf(DType dtype) {
  if (dtype == DType::kF32) return panelPacking<V, DType::kF32>();
  if (dtype == DType::kBf16) return panelPacking<V, DType::kBf16>();
  return forFormat(dtype, []<DType D>(Format<D>) { return panelPacking<V, D>(); });
}

template <class V>
size_t packedBytesOf(PanelPacking packing, int n, int k) {
  return size_t(panelsOf(n, kPanelWidth<V>)) * size_t(packing.panelBytes(k));
}

// Packs the panels of w, each `stride` panels after the one before.
template <class V>
void packPanels(PanelPacking packing, const void* w, int n, int k, int stride, void* packed) {
  const int64_t bytes = packing.panelBytes(k);
  for (int p = 0; p < panelsOf(n, kPanelWidth<V>); p++)
    packing.pack(w, p * kPanelWidth<V>, n, k, static_cast<char*>(packed) + p * stride * bytes);
}

// Packs gate [n, k] over up [n, k], of `bytes` each, in this order: gate panel 0, up panel 0, gate panel 1, up panel 1, ...
template <class V>
void packGatedPanels(PanelPacking packing, const void* w, size_t bytes, int n, int k, void* packed) {
  packPanels<V>(packing, w, n, k, 2, packed);
  packPanels<V>(packing, static_cast<const char*>(w) + bytes, n, k, 2, static_cast<char*>(packed) + packing.panelBytes(k));
}

template <class V>
size_t packedBytes(DType dtype, int32_t n, int32_t k) {
  return packedBytesOf<V>(panelPackingOf<V>(dtype), n, k);
}

template <class V>
size_t packedGatedBytes(DType dtype, int32_t n, int32_t k) {
  return 2 * packedBytes<V>(dtype, n, k);
}

template <class V>
void packWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
  packPanels<V>(panelPackingOf<V>(dtype), w, n, k, 1, packed);
}

template <class V>
void packGatedWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
  packGatedPanels<V>(panelPackingOf<V>(dtype), w, size_t(n) * rowBytes(dtype, k), n, k, packed);
}

}  // namespace
}  // namespace skein

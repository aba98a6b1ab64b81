// Packing of a table that has panels of bf16 of its own, those of V; all other formats are packed as by another table.
#pragma once
#include "kernels/kernels.h"
#include "kernels/pack_stored.h"

namespace skein {
namespace {

// Base: a function that returns the other table.
template <class V, auto Base>
struct Bf16Packing {
  static constexpr PanelPacking kPacking = panelPacking<V, DType::kBf16>();
  static size_t packedBytes(DType dtype, int32_t n, int32_t k) {
    return dtype == DType::kBf16 ? packedBytesOf<V>(kPacking, n, k) : Base().packedBytes(dtype, n, k);
  }
  static size_t packedGatedBytes(DType dtype, int32_t n, int32_t k) { return 2 * packedBytes(dtype, n, k); }
  static void packWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
    if (dtype != DType::kBf16) return Base().packWeights(dtype, w, n, k, packed);
    packPanels<V>(kPacking, w, n, k, 1, packed);
  }
  static void packGatedWeights(DType dtype, const void* w, int32_t n, int32_t k, void* packed) {
    if (dtype != DType::kBf16) return Base().packGatedWeights(dtype, w, n, k, packed);
    packGatedPanels<V>(kPacking, w, size_t(n) * rowBytes(dtype, k), n, k, packed);
  }
  static void packStored(StoredType type, const uint8_t* const* rows, int32_t columns, void* panel) {
    const auto run = formatOf(type).dtype == DType::kBf16 ? skein::packStored<V> : Base().packStored;
    run(type, rows, columns, panel);
  }
  // The other table with this packing.
  static KernelTable table() {
    KernelTable table = Base();
    table.packedBytes = packedBytes;
    table.packWeights = packWeights;
    table.packedGatedBytes = packedGatedBytes;
    table.packGatedWeights = packGatedWeights;
    table.packStored = packStored;
    return table;
  }
};

}  // namespace
}  // namespace skein

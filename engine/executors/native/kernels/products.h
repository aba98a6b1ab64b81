// Products for all weight formats, and the kernel that serves each.
#pragma once
#include "kernels/gemm.h"
#include "kernels/pairs_of_rows.h"
#include "kernels/quantized_products.h"

namespace skein {
namespace {

// Steps of products with bf16 weights.
template <class V>
struct Bf16Steps : Singles<V, DType::kBf16> {};
template <class V>
  requires V::kBf16Pairs && (!MultipliesRowPairs<V>)
struct Bf16Steps<V> : Pairs<V> {};
template <MultipliesRowPairs V>
struct Bf16Steps<V> : PairsOfRows<V> {};

// Bytes of x rounded for products with weights of `dtype`; 0 if they take x itself.
template <class V>
size_t roundedBytes(DType dtype, int32_t rows, int32_t k) {
  if (isQuantized(dtype)) return quantizedBytes<V>(dtype, rows, k);
  return V::kBf16Pairs && dtype == DType::kBf16 ? size_t(rows) * size_t(pairsOf(k)) * 4 : 0;
}

template <class V>
void roundRow(DType dtype, const float* x, int32_t k, int32_t row, int32_t rows, void* rounded) {
  if (isQuantized(dtype)) return quantizeRow<V>(dtype, x, k, row, rows, rounded);
  if constexpr (V::kBf16Pairs) {
    if (dtype == DType::kBf16) roundRow<V>(x, k, row, rounded);
  }
}

template <class V>
void gemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  switch (args.dtype) {
    case DType::kF32: return gemmOf<V, Singles<V, DType::kF32>>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kBf16: return gemmOf<V, Bf16Steps<V>>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    default: return quantizedGemm<V>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
}

template <class V>
void gatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  switch (args.dtype) {
    case DType::kF32: return gatedGemmOf<V, Singles<V, DType::kF32>>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kBf16: return gatedGemmOf<V, Bf16Steps<V>>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    default: return quantizedGatedGemm<V>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
}

}  // namespace
}  // namespace skein

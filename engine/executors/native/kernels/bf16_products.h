// Tables whose products with bf16 weights, and attention over a bf16 cache, multiply pairs (pairs.h); all else is another table's.
#pragma once
#include "kernels/attention.h"
#include "kernels/bf16_packing.h"
#include "kernels/products.h"

namespace skein {
namespace {

// Base: a function that returns the table of the rest, which has vectors as wide as V's.
template <class V, auto Base>
struct Bf16Kernels {
  static size_t roundedBytes(DType dtype, int32_t rows, int32_t k) {
    return dtype == DType::kBf16 ? skein::roundedBytes<V>(dtype, rows, k) : Base().roundedBytes(dtype, rows, k);
  }
  static void roundRow(DType dtype, const float* x, int32_t k, int32_t row, int32_t rows, void* rounded) {
    if (dtype != DType::kBf16) return Base().roundRow(dtype, x, k, row, rows, rounded);
    skein::roundRow<V>(x, k, row, rounded);
  }
  static void gemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
    const auto run = args.dtype == DType::kBf16 ? gemmOf<V, Bf16Steps<V>> : Base().gemm;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void gatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin,
                        int32_t panelEnd) {
    const auto run = args.dtype == DType::kBf16 ? gatedGemmOf<V, Bf16Steps<V>> : Base().gatedGemm;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void attentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd,
                             int32_t split, float* scratch, float* partial) {
    const auto run = args.kv->dtype == DType::kBf16 ? attentionSplitOf<V, uint16_t> : Base().attentionSplit;
    run(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
  }
};

template <class V, auto Base>
KernelTable withBf16Products(const char* name) {
  using Kernels = Bf16Kernels<V, Base>;
  KernelTable table = Bf16Packing<V, Base>::table();
  table.name = name;
  table.roundedBytes = Kernels::roundedBytes;
  table.roundRow = Kernels::roundRow;
  table.gemm = Kernels::gemm;
  table.gatedGemm = Kernels::gatedGemm;
  table.attentionSplit = Kernels::attentionSplit;
  table.attentionScratchFloats = attentionScratchFloats<V>;
  return table;
}

}  // namespace
}  // namespace skein

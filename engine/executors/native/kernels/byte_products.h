// Tables whose products with quantised weights, and attention over a quantised cache, take dot products of bytes and of words; all else
// is another table's.
#pragma once
#include "kernels/attention.h"
#include "kernels/products.h"
#include "kernels/stored_products.h"

namespace skein {
namespace {

// Base: a function that returns the table of the rest, which has vectors as wide as V's and the same packed weights. Products of f32
// and bf16 gain nothing from these instructions.
template <class V, auto Base>
struct ByteKernels {
  static void gemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
    const auto run = isQuantized(args.dtype) ? quantizedGemm<V> : Base().gemm;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void gatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin,
                        int32_t panelEnd) {
    const auto run = isQuantized(args.dtype) ? quantizedGatedGemm<V> : Base().gatedGemm;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void attentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                             float* scratch, float* partial) {
    const auto run = args.kv->dtype == DType::kInt8 ? attentionSplitOf<V, int8_t> : Base().attentionSplit;
    run(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
  }
};

template <class V, auto Base>
KernelTable withByteProducts(const char* name) {
  using Kernels = ByteKernels<V, Base>;
  KernelTable table = Base();
  table.name = name;
  table.roundedBytes = roundedBytes<V>;
  table.roundRow = roundRow<V>;
  table.gemm = Kernels::gemm;
  table.gatedGemm = Kernels::gatedGemm;
  table.storedGemm = storedGemm<V>;
  table.storedGatedGemm = storedGatedGemm<V>;
  table.attentionSplit = Kernels::attentionSplit;
  return table;
}

}  // namespace
}  // namespace skein

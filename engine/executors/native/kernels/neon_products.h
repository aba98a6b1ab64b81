// Tables of NEON whose products with quantised weights take other instructions; all else is that of neon.cpp.
#pragma once
#include "kernels/products.h"
#include "kernels/stored_products.h"

namespace skein {
namespace {

template <class V>
void gemmOfQuants(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGemm<V>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  neonKernels().gemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

template <class V>
void gatedGemmOfQuants(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGatedGemm<V>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  neonKernels().gatedGemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

// V: traits with the packed weights and rounded rows of NeonSimd.
template <class V>
KernelTable withQuantizedProducts() {
  KernelTable table = neonKernels();
  table.gemm = gemmOfQuants<V>;
  table.gatedGemm = gatedGemmOfQuants<V>;
  table.storedGemm = storedGemm<V>;
  table.storedGatedGemm = storedGatedGemm<V>;
  return table;
}

}  // namespace
}  // namespace skein

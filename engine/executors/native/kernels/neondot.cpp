#include "kernels/peak.h"
#include "kernels/products.h"
#include "kernels/simd_neondot.h"

namespace skein {
namespace {

using Simd = NeonDotSimd;

// Products of f32 and bf16 gain nothing from these instructions.
void dotGemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGemm<Simd>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  neonKernels().gemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

void dotGatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGatedGemm<Simd>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  neonKernels().gatedGemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

}  // namespace

const KernelTable& neonDotKernels() {
  static const KernelTable table = [] {
    KernelTable dot = neonKernels();
    dot.roundedBytes = roundedBytes<Simd>;
    dot.roundRow = roundRow<Simd>;
    dot.gemm = dotGemm;
    dot.gatedGemm = dotGatedGemm;
    return dot;
  }();
  return table;
}

float neonDotPeak(DType dtype, int64_t iterations) { return peakLoop<Simd>(dtype, iterations); }

}  // namespace skein

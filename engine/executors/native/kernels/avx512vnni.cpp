#include "kernels/attention.h"
#include "kernels/peak.h"
#include "kernels/products.h"
#include "kernels/simd_avx512vnni.h"

namespace skein {
namespace {

using Simd = Avx512VnniSimd;

// Products of f32 and bf16 gain nothing from these instructions.
void vnniGemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGemm<Simd>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  avx512Kernels().gemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

void vnniGatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  if (isQuantized(args.dtype)) return quantizedGatedGemm<Simd>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  avx512Kernels().gatedGemm(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

void vnniAttentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                        float* scratch, float* partial) {
  const bool quantized = args.kv->dtype == DType::kInt8;
  const auto run = quantized ? attentionSplitOf<Simd, int8_t> : avx512Kernels().attentionSplit;
  run(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
}

}  // namespace

const KernelTable& avx512VnniKernels() {
  static const KernelTable table = [] {
    KernelTable vnni = avx512Kernels();
    vnni.roundedBytes = roundedBytes<Simd>;
    vnni.roundRow = roundRow<Simd>;
    vnni.gemm = vnniGemm;
    vnni.gatedGemm = vnniGatedGemm;
    vnni.attentionSplit = vnniAttentionSplit;
    return vnni;
  }();
  return table;
}

float avx512VnniPeak(DType dtype, int64_t iterations) { return peakLoop<Simd>(dtype, iterations); }

}  // namespace skein

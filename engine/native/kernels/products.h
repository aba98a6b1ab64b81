// The products of all weight formats: which kernel serves which.
#pragma once
#include "kernels/gemm.h"
#include "kernels/quantized.h"

namespace skein {
namespace {

template <class V>
void gemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  switch (args.dtype) {
    case DType::kF32: return gemmOf<V, DType::kF32>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kBf16: return gemmOf<V, DType::kBf16>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kInt8: return quantizedGemmOf<V, DType::kInt8>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kInt4: return quantizedGemmOf<V, DType::kInt4>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
}

template <class V>
void gatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  switch (args.dtype) {
    case DType::kF32: return gatedGemmOf<V, DType::kF32>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kBf16: return gatedGemmOf<V, DType::kBf16>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kInt8: return quantizedGatedGemmOf<V, DType::kInt8>(args, rowBegin, rowEnd, panelBegin, panelEnd);
    case DType::kInt4: return quantizedGatedGemmOf<V, DType::kInt4>(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
}

}  // namespace
}  // namespace skein

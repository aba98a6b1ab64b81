#include "kernels/amx_tiles.h"
#include "kernels/peak.h"
#include "kernels/simd_avx512vnni.h"
#include "kernels/tile_peak.h"
#include "kernels/tile_products.h"

namespace skein {
namespace {

using Simd = Avx512VnniSimd;

// Fewer rows fill less than half of a tile, and are bound by their weights: they stay with dot products of bytes, which give the same bits.
constexpr int kFewestRows = 8;

template <class Args>
bool takesTiles(const Args& args, int32_t rows) {
  return isQuantized(args.dtype) && rows >= kFewestRows;
}

void amxGemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  const auto run = takesTiles(args, rowEnd - rowBegin) ? tileGemm<Simd, AmxTiles> : avx512Bf16Kernels().gemm;
  run(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

void amxGatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
  const auto run = takesTiles(args, rowEnd - rowBegin) ? tileGatedGemm<Simd, AmxTiles> : avx512Bf16Kernels().gatedGemm;
  run(args, rowBegin, rowEnd, panelBegin, panelEnd);
}

}  // namespace

const KernelTable& amxKernels() {
  static const KernelTable table = [] {
    KernelTable amx = avx512Bf16Kernels();
    amx.name = "amx";
    amx.gemm = amxGemm;
    amx.gatedGemm = amxGatedGemm;
    return amx;
  }();
  return table;
}

float amxPeak(int64_t iterations) { return tilePeakLoop<AmxTiles>(iterations); }

}  // namespace skein

#include "kernels/amx_tiles.h"
#include "kernels/peak.h"
#include "kernels/simd_amx.h"
#include "kernels/tile_peak.h"
#include "kernels/tile_table.h"

namespace skein {

const KernelTable& amxKernels() {
  static const KernelTable table = withTiles<AmxSimd, AmxTiles, avx512Bf16Kernels>("amx");
  return table;
}

float amxPeak(DType dtype, int64_t iterations) { return tilePeakLoop<AmxTiles>(dtype, iterations); }

}  // namespace skein

// Tiles in plain C++ under the vectors of AVX-512 that AMX has with it: only for tests. All of the kernels of AMX but its tiles.
#include "kernels/emulated.h"
#include "kernels/emulated_tiles.h"
#include "kernels/simd_amx.h"
#include "kernels/tile_table.h"

namespace skein {

const KernelTable& emulatedAmxVectorsKernels() {
  static const KernelTable table = withTiles<AmxSimd, EmulatedTiles, avx512Bf16Kernels>("emulatedamxvectors");
  return table;
}

}  // namespace skein

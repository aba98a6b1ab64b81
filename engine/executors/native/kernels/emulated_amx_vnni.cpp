// Tiles in plain C++ under the vectors of AVX-512 that scale their sums: only for tests. All of the kernel of AMX but its tiles.
#include "kernels/emulated.h"
#include "kernels/emulated_tile_table.h"
#include "kernels/simd_avx512vnni.h"

namespace skein {

const KernelTable& emulatedAmxVnniKernels() {
  static const KernelTable table = withEmulatedTiles<Avx512VnniSimd>("emulatedamxvnni", avx512VnniKernels());
  return table;
}

}  // namespace skein

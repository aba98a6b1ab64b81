// GCC would move loads so far ahead of their use that it runs out of registers: a third of a tile's instructions moved registers around.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

#include "kernels/neon_products.h"
#include "kernels/simd_neoni8mm.h"

namespace skein {

const KernelTable& neonI8mmKernels() {
  static const KernelTable table = withQuantizedProducts<NeonI8mmSimd>();
  return table;
}

}  // namespace skein

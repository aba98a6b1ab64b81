// GCC would move loads so far ahead of their use that it runs out of registers: a third of a tile's instructions moved registers around.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

#include "kernels/neon_products.h"
#include "kernels/peak.h"
#include "kernels/simd_neondot.h"

namespace skein {

const KernelTable& neonDotKernels() {
  static const KernelTable table = withQuantizedProducts<NeonDotSimd>();
  return table;
}

float neonDotPeak(DType dtype, int64_t iterations) { return peakLoop<NeonDotSimd>(dtype, iterations); }

}  // namespace skein


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

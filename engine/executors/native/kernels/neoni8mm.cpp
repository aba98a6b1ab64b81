
#include "kernels/neon_products.h"
#include "kernels/peak.h"
#include "kernels/simd_neoni8mm.h"

namespace skein {

const KernelTable& neonI8mmKernels() {
  static const KernelTable table = withQuantizedProducts<NeonI8mmSimd>();
  return table;
}

float neonI8mmPeak(DType dtype, int64_t iterations) { return peakLoop<NeonI8mmSimd>(dtype, iterations); }

}  // namespace skein

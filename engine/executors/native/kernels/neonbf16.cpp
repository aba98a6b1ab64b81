#include "kernels/bf16_products.h"
#include "kernels/peak.h"
#include "kernels/simd_neonbf16.h"

namespace skein {

const KernelTable& neonBf16Kernels() {
  static const KernelTable table = withBf16Products<NeonBf16Simd, neonI8mmKernels>("neonbf16");
  return table;
}

float neonBf16Peak(int64_t iterations) { return pairsPeakLoop<NeonBf16Simd>(iterations); }

}  // namespace skein

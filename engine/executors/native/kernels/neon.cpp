#include "kernels/peak.h"
#include "kernels/simd_neon.h"
#include "kernels/table.h"

namespace skein {

const KernelTable& neonKernels() {
  static constexpr KernelTable table = makeTable<NeonSimd>("neon");
  return table;
}

float neonPeak(DType dtype, int64_t iterations) { return peakLoop<NeonSimd>(dtype, iterations); }

}  // namespace skein

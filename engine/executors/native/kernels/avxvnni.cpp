#include "kernels/byte_products.h"
#include "kernels/peak.h"
#include "kernels/simd_avxvnni.h"

namespace skein {

const KernelTable& avxVnniKernels() {
  static const KernelTable table = withByteProducts<AvxVnniSimd, avx2Kernels>("avxvnni");
  return table;
}

float avxVnniPeak(DType dtype, int64_t iterations) { return peakLoop<AvxVnniSimd>(dtype, iterations); }

}  // namespace skein

#include "kernels/byte_products.h"
#include "kernels/peak.h"
#include "kernels/simd_avx512vnni.h"

namespace skein {

// The name is that of avx512, which it is where the processor has these instructions.
const KernelTable& avx512VnniKernels() {
  static const KernelTable table = withByteProducts<Avx512VnniSimd, avx512Kernels>("avx512");
  return table;
}

float avx512VnniPeak(DType dtype, int64_t iterations) { return peakLoop<Avx512VnniSimd>(dtype, iterations); }

}  // namespace skein

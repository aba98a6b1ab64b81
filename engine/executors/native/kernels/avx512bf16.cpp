#include "kernels/bf16_products.h"
#include "kernels/peak.h"
#include "kernels/simd_avx512bf16.h"

namespace skein {

const KernelTable& avx512Bf16Kernels() {
  static const KernelTable table = withBf16Products<Avx512Bf16Simd, avx512VnniKernels>("avx512bf16");
  return table;
}

float avx512Bf16Peak(int64_t iterations) { return pairsPeakLoop<Avx512Bf16Simd>(iterations); }

}  // namespace skein

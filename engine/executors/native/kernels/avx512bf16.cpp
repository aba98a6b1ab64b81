#include "kernels/peak.h"
#include "kernels/simd_avx512bf16.h"
#include "kernels/table.h"

namespace skein {

const KernelTable& avx512Bf16Kernels() {
  static constexpr KernelTable table = makeTable<Avx512Bf16Simd>("avx512bf16");
  return table;
}

float avx512Bf16Peak(DType dtype, int64_t iterations) { return peakLoop<Avx512Bf16Simd>(dtype, iterations); }

}  // namespace skein

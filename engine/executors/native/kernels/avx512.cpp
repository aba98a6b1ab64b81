#include "kernels/peak.h"
#include "kernels/simd_avx512.h"
#include "kernels/table.h"

namespace skein {

const KernelTable& avx512Kernels() {
  static constexpr KernelTable table = makeTable<Avx512Simd>("avx512");
  return table;
}

float avx512Peak(DType dtype, int64_t iterations) { return peakLoop<Avx512Simd>(dtype, iterations); }

}  // namespace skein

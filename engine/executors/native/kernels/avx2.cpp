#include "kernels/peak.h"
#include "kernels/simd_avx2.h"
#include "kernels/table.h"

namespace skein {

const KernelTable& avx2Kernels() {
  static constexpr KernelTable table = makeTable<Avx2Simd>("avx2");
  return table;
}

float avx2Peak(DType dtype, int64_t iterations) { return peakLoop<Avx2Simd>(dtype, iterations); }

}  // namespace skein

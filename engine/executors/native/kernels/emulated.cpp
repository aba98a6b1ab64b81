// Processors in plain C++, only for tests. The loops over registers are not unrolled: see unroll.h.
#define SKEIN_EMULATED
#include "kernels/emulated.h"

#include "kernels/bf16_products.h"
#include "kernels/simd_emulated_pairs.h"
#include "kernels/table.h"

namespace skein {

#ifdef SKEIN_ARM64
const KernelTable& emulated8PairsKernels() {
  static const KernelTable table = withBf16Products<EmulatedNeonBf16Simd, scalarKernels>("emulated8pairs");
  return table;
}
#else
// Sixteen lanes: the layouts and tile shapes of AVX-512 on any machine but one of ARM, where nothing has them.
const KernelTable& emulated16Kernels() {
  static constexpr KernelTable table = makeTable<EmulatedSimd<16, 12>>("emulated16");
  return table;
}

const KernelTable& emulated16PairsKernels() {
  static const KernelTable table = withBf16Products<EmulatedAvx512Bf16Simd, emulated16Kernels>("emulated16pairs");
  return table;
}
#endif

}  // namespace skein

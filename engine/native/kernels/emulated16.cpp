// The loops over registers are not unrolled: see unroll.h.
#define SKEIN_EMULATED
// Sixteen lanes in plain C++, for the tests alone: the layouts and tile shapes of AVX-512 on any machine.
#include "kernels/simd_emulated.h"
#include "kernels/table.h"
#include "kernels/test_hooks.h"

namespace skein {

const KernelTable& emulated16Kernels() {
  static constexpr KernelTable table = makeTable<EmulatedSimd<16, 12>>("emulated16");
  return table;
}

}  // namespace skein

// The loops over registers are not unrolled: see unroll.h.
#define SKEIN_EMULATED
#include "kernels/simd_emulated.h"
#include "kernels/table.h"

namespace skein {

const KernelTable& scalarKernels() {
  static constexpr KernelTable table = makeTable<EmulatedSimd<8, 6>>("scalar");
  return table;
}

}  // namespace skein

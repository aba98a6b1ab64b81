#include "kernels/portable.h"

namespace skein {
const KernelTable& scalarKernels() {
  static const KernelTable table = portable("scalar");
  return table;
}
}  // namespace skein

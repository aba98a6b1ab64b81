#include "kernels/kernels.h"

namespace skein {
const KernelTable& scalarKernels() {
  static const KernelTable table{.name = "scalar"};
  return table;
}
}  // namespace skein

#include "kernels/kernels.h"

namespace skein {
const KernelTable& avx2Kernels() {
  static const KernelTable table{.name = "avx2"};
  return table;
}
}  // namespace skein

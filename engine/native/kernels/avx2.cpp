#include "kernels/portable.h"

namespace skein {
const KernelTable& avx2Kernels() {
  static const KernelTable table = portable("avx2");
  return table;
}
}  // namespace skein

#include "kernels/portable.h"

namespace skein {
const KernelTable& avx512Kernels() {
  static const KernelTable table = portable("avx512");
  return table;
}
}  // namespace skein

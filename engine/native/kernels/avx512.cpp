#include "kernels/kernels.h"

namespace skein {
const KernelTable& avx512Kernels() {
  static const KernelTable table{.name = "avx512"};
  return table;
}
}  // namespace skein

// Processors in plain C++, for the tests alone.
#pragma once
#include "kernels/kernels.h"

namespace skein {

// Twins of neonBf16Kernels(), or of avx512Kernels() and avx512Bf16Kernels().
#ifdef SKEIN_ARM64
const KernelTable& emulated8PairsKernels();
#else
const KernelTable& emulated16Kernels();
const KernelTable& emulated16PairsKernels();
#endif

}  // namespace skein

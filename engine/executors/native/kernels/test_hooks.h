// The kernels as functions over typed arrays, for the tests and the micro-benchmark only.
#pragma once
#include <napi.h>

#include "kernels/kernels.h"

namespace skein {

Napi::Object kernelTestHooks(Napi::Env env);

// Emulated twins, available only through the hooks: of neonBf16Kernels(), or of avx512Kernels() and avx512Bf16Kernels().
#ifdef SKEIN_ARM64
const KernelTable& emulated8PairsKernels();
#else
const KernelTable& emulated16Kernels();
const KernelTable& emulated16PairsKernels();
#endif

}  // namespace skein

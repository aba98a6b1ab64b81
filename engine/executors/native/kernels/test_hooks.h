// The kernels as functions over typed arrays, for the tests and the micro-benchmark only.
#pragma once
#include <napi.h>

#include "kernels/kernels.h"

namespace skein {

Napi::Object kernelTestHooks(Napi::Env env);

// Emulated twins of avx512Kernels() and avx512Bf16Kernels(), available only through the hooks.
const KernelTable& emulated16Kernels();
const KernelTable& emulated16PairsKernels();

}  // namespace skein

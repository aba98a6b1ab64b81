// The kernels as functions over typed arrays, for the tests and the micro-benchmark only.
#pragma once
#include <napi.h>

#include "kernels/kernels.h"

namespace skein {

Napi::Object kernelTestHooks(Napi::Env env);

// The twins of avx512Kernels() and avx512Bf16Kernels(), reached through the hooks only.
const KernelTable& emulated16Kernels();
const KernelTable& emulated16PairsKernels();

}  // namespace skein

// The kernels as functions over typed arrays, for the tests and the micro-benchmark only.
#pragma once
#include <napi.h>

#include "kernels/kernels.h"

namespace skein {

Napi::Object kernelTestHooks(Napi::Env env);

// The twin of avx512Kernels(), reached through the hooks only.
const KernelTable& emulated16Kernels();

}  // namespace skein

// The kernels as functions over typed arrays, for the tests and the micro-benchmark only.
#pragma once
#include <napi.h>

namespace skein {

Napi::Object kernelTestHooks(Napi::Env env);

}  // namespace skein

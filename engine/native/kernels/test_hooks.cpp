#include "kernels/test_hooks.h"

namespace skein {
Napi::Object kernelTestHooks(Napi::Env env) { return Napi::Object::New(env); }
}  // namespace skein

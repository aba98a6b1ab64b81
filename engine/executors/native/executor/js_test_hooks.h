// Parts of the executor as functions of their own, for the tests only.
#pragma once
#include <napi.h>

namespace skein {

void registerExecutorTestHooks(Napi::Env env, Napi::Object exports);

}  // namespace skein

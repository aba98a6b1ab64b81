// The executor's class for JavaScript (NativeExecutorHandle in engine/executors/native/addon.ts).
#pragma once
#include <napi.h>

namespace skein {

// Adds createExecutor(options) and supportedInstructionSets() to exports. Nothing is process-global: each environment
// (main thread, worker) has its own class.
void registerExecutor(Napi::Env env, Napi::Object exports);

}  // namespace skein

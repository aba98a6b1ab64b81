// Reads NativeExecutorOptions (engine/executors/native/addon.ts) into an ExecutorConfig.
#pragma once
#include <napi.h>

#include "executor/plan.h"

namespace skein::js {

// Throws std::runtime_error naming the field that is missing, of another type, or unknown.
ExecutorConfig readConfig(const Napi::Object& options);

const char* instructionSetName(Isa isa);

}  // namespace skein::js

#pragma once
#include <napi.h>

namespace skein {

// Adds `convert` and `checksums` of NativeAddon (engine/executors/native/addon.ts) to the addon's exports.
void registerConvert(Napi::Env env, Napi::Object exports);

}  // namespace skein

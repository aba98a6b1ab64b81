#pragma once
#include <napi.h>

#include <vector>

#include "convert.h"

namespace skein {

// The jobs of an array of ConvertJob (engine/executors/native/addon.ts). Throws a Napi::Error that names the field at fault.
std::vector<ConvertJob> convertJobsOf(const Napi::Array& array);

// Adds `convert`, `checksums` and `rowsChecksum` of NativeAddon (engine/executors/native/addon.ts) to the addon's exports.
void registerConvert(Napi::Env env, Napi::Object exports);

}  // namespace skein

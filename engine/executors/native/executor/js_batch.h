// Reads PackedBatch, SamplingBatch and SamplingOutput into views. Types and presence are checked here, contents in
// batch_check.
#pragma once
#include <napi.h>

#include <vector>

#include "executor/adapters.h"
#include "executor/batch.h"
#include "executor/js_values.h"

namespace skein::js {

// If `held` is given, every array that a view points into is added to it.
BatchView readBatch(const Napi::Value& value, HeldValues* held = nullptr);
std::vector<AdapterPart> readAdapterParts(const Napi::Array& entries);
SamplingView readSampling(const Napi::Value& value, HeldValues* held = nullptr);
SamplingOutputView readSamplingOutput(const Napi::Value& value, HeldValues* held = nullptr);

}  // namespace skein::js

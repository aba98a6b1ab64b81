// PackedBatch, SamplingBatch and SamplingOutput -> views. Types and presence are checked here, contents in batch_check.
#pragma once
#include <napi.h>

#include "executor/batch.h"
#include "executor/js_values.h"

namespace skein::js {

// Where `held` is given, it gets every array that a view points into.
BatchView readBatch(const Napi::Value& value, HeldValues* held = nullptr);
SamplingView readSampling(const Napi::Value& value, HeldValues* held = nullptr);
SamplingOutputView readSamplingOutput(const Napi::Value& value, HeldValues* held = nullptr);

}  // namespace skein::js

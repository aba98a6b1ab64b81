// PackedBatch, SamplingBatch and SamplingOutput -> views. Types and presence are checked here, contents in batch_check.
#pragma once
#include <napi.h>

#include "executor/batch.h"

namespace skein::js {

BatchView readBatch(const Napi::Value& value);
SamplingView readSampling(const Napi::Value& value);
SamplingOutputView readSamplingOutput(const Napi::Value& value);

}  // namespace skein::js

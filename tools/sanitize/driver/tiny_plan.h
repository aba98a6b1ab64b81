// A network of Llama's shape with random weights, as network would plan it.
#pragma once
#include <vector>

#include "executor/plan.h"
#include "files.h"

namespace skein {

constexpr int32_t kTinyVocabulary = 131;

// Frequencies of RoPE, one for each pair of a head's dimensions.
std::vector<float> tinyFrequencies();
// The plan and its weights in `folder`; memory and threads are the caller's to fill in. The same weights each time.
ExecutorConfig tinyConfig(DType weights, const TemporaryFolder& folder);

}  // namespace skein

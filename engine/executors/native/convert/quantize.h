// Quantizes rows of float32 into the blocks of 8- and 4-bit weights (kernels/kernels.h).
#pragma once
#include "kernels/kernels.h"
#include "tensor-types.h"

namespace skein {

// Converts blocks of a checkpoint into blocks of the engine of as many elements without changing a value.
using ExactConversion = void (*)(const uint8_t* source, int64_t blocks, uint8_t* target);

// Conversion from `source` to `target` without loss; null if there is none.
ExactConversion exactConversion(const TensorType& source, DType target);

// Quantizes one row of `columns` values. int8: rounds to the nearest step, with 127 steps for the greatest magnitude of a
// block. int4: of several scales and minima takes the pair with the least squared error, where great weights
// count more. A block that holds NaN or
// infinity becomes NaN.
void quantizeWeights(DType target, const float* x, int64_t columns, uint8_t* blocks);

}  // namespace skein

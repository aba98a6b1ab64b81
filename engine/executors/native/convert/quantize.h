// Rows of float32 into the blocks of 8- and 4-bit weights (kernels/kernels.h).
#pragma once
#include "kernels/kernels.h"
#include "tensor-types.h"

namespace skein {

// Blocks of a checkpoint into as many blocks of the engine without changing a value.
using ExactConversion = void (*)(const uint8_t* source, int64_t blocks, uint8_t* target);

// How to bring `source` into `target` without loss; null where there is no such way.
ExactConversion exactConversion(const TensorType& source, DType target);

// One row of `columns` values, rounded to the nearest that a block can hold. int8: the greatest magnitude of a block is
// 127 steps. int4: of several scales and minima the pair with the least squared error. A block that holds NaN or infinity
// becomes NaN.
void quantizeWeights(DType target, const float* x, int64_t columns, uint8_t* blocks);

}  // namespace skein

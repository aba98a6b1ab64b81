// A check of tiles on the processor that is to run them: they may be another system's or an emulator's.
#pragma once
#include "kernels/kernels.h"

namespace skein {

// True if the products of `tested` with bf16 weights are summed in the order of tiles_order.h: a small one.
bool sumsAsTiles(const KernelTable& tested);

}  // namespace skein

// Compares the products of two tables bit by bit: a check of instructions on the processor that is to run them.
#pragma once
#include "kernels/kernels.h"

namespace skein {

// True if the products of `tested` with quantised weights have the bits of those of `known`: small ones, of all formats.
bool sameProducts(const KernelTable& tested, const KernelTable& known);

}  // namespace skein

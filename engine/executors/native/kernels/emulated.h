// Processors in plain C++, for the tests alone.
#pragma once
#include "kernels/kernels.h"

namespace skein {

// Twins of neonBf16Kernels(), or of avx512Kernels() and avx512Bf16Kernels().
#ifdef SKEIN_ARM64
const KernelTable& emulated8PairsKernels();
#else
const KernelTable& emulated16Kernels();
const KernelTable& emulated16PairsKernels();
// Twins of amxKernels(): tiles in plain C++, and vectors too or those of the processor.
const KernelTable& emulatedAmxKernels();
const KernelTable& emulatedAmxVectorsKernels();
// amxKernels() as they are compiled, on a processor with AVX-512 BF16 whose tiles are traps: on Linux alone, one thread at a time.
const KernelTable& trappedAmxKernels();
float trappedAmxPeak(DType dtype, int64_t iterations);
// One product of tiles whose rows lie 64 bytes apart, C += A B; config: the 64 bytes of a configuration, of which tile 0 is C, 4 is A
// and 6 is B. Returns null, or the fault that the processor would raise.
const char* emulatedTileProduct(const void* config, const void* a, const void* b, void* c);
#endif

}  // namespace skein

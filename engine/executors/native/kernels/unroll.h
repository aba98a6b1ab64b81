// Unrolls loops over registers, so that the registers have names. Emulated vectors have no registers: their kernels are
// compiled without unrolling, which takes seconds instead of minutes.
#pragma once

#define SKEIN_PRAGMA(text) _Pragma(#text)
#ifdef SKEIN_EMULATED
#define SKEIN_UNROLL(times) SKEIN_PRAGMA(GCC unroll 1)
#else
#define SKEIN_UNROLL(times) SKEIN_PRAGMA(GCC unroll times)
#endif

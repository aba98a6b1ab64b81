// Loops over registers are unrolled, so that the registers have names. Emulated vectors have none: their kernels are
// compiled without, which takes seconds in place of minutes.
#pragma once

#define SKEIN_PRAGMA(text) _Pragma(#text)
#ifdef SKEIN_EMULATED
#define SKEIN_UNROLL(times) SKEIN_PRAGMA(GCC unroll 1)
#else
#define SKEIN_UNROLL(times) SKEIN_PRAGMA(GCC unroll times)
#endif

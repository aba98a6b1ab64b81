// Included first by files of nothing but products with quantised weights, whose tiles take nearly all registers. GCC's first scheduling
// pass moves loads so far ahead of their use that accumulators no longer fit: it stored and loaded them in every step, up to a third of a
// tile's instructions. Not in neon.cpp: without that pass GCC 12 gives other bits where weights of Q4_K are packed (stored-bits.test.ts).
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

// Included first by the files of instruction sets whose tiles take nearly all registers. GCC's first scheduling pass moves loads so far
// ahead of their use that accumulators no longer fit: it stored and loaded them in every step, up to half of a tile's instructions.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

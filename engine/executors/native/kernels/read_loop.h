// Plain reading, for the micro-benchmark: its bandwidth is the reference for kernels that stream weights.
#pragma once
#include <cstdint>

namespace skein {
namespace {

#if defined(__x86_64__)
#define SKEIN_READ_TARGET __attribute__((target("avx2"), noinline))
#else
#define SKEIN_READ_TARGET __attribute__((noinline))
#endif

// Reads `bytes` (a multiple of 256) at `data` with vector loads, prefetching `ahead` bytes further on (0: no prefetch).
// The sum keeps the loads alive.
SKEIN_READ_TARGET inline uint64_t readLoop(const char* data, int64_t bytes, int64_t ahead) {
  using Vector = uint64_t __attribute__((vector_size(32), aligned(8)));
  Vector sum[8] = {};
  for (int64_t at = 0; at < bytes; at += 256) {
    if (ahead > 0) {
#pragma GCC unroll 4
      for (int line = 0; line < 4; ++line) __builtin_prefetch(data + at + ahead + line * 64);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] += *reinterpret_cast<const Vector*>(data + at + i * 32);
  }
  Vector total = {};
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) total += sum[i];
  return total[0] + total[1] + total[2] + total[3];
}

#undef SKEIN_READ_TARGET

}  // namespace
}  // namespace skein

// Tiles of AMX-BF16, by the instructions themselves: compilers' own functions for them leave memory out of what they read (GCC 12), and
// so let stores sink below the loads of tiles. They are written as bytes, since assemblers before binutils 2.36 do not know them; the
// tiles' numbers are part of the bytes, and memory is always at rax, with rcx between rows.
#pragma once
#include "kernels/tile_config.h"

namespace skein {
namespace {

class AmxTiles {
 public:
  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  // Tiles that are in use are saved at each switch of threads, so none is left so.
  ~AmxTiles() { asm volatile(".byte 0xc4,0xe2,0x78,0x49,0xc0  # tilerelease" ::: "memory"); }

  // Sets the shapes of all tiles, which are zeros then.
  void configure(const TileConfig& config) { asm volatile(".byte 0xc4,0xe2,0x78,0x49,0x00  # ldtilecfg (%0)" : : "a"(&config) : "memory"); }
  template <int kTile>
  void zero() {
    asm volatile(".byte 0xc4,0xe2,0x7b,0x49,%c0  # tilezero" : : "i"(0xc0 + 8 * kTile) : "memory");
  }
  // Rows of a tile lie `stride` bytes apart.
  template <int kTile>
  void load(const void* p, int64_t stride) {
    asm volatile(".byte 0xc4,0xe2,0x7b,0x4b,%c2,0x08  # tileloadd (%0,%1,1)" : : "a"(p), "c"(stride), "i"(4 + 8 * kTile) : "memory");
  }
  template <int kTile>
  void store(void* p, int64_t stride) {
    asm volatile(".byte 0xc4,0xe2,0x7a,0x4b,%c2,0x08  # tilestored (%0,%1,1)" : : "a"(p), "c"(stride), "i"(4 + 8 * kTile) : "memory");
  }
  // C += A B, of bf16. The sums have an order of their own: see tiles_order.h.
  template <int kC, int kA, int kB>
  void multiplyBf16() {
    static_assert(kC != kA && kA != kB && kB != kC);
    constexpr int kSecond = (15 - kB) * 8 + 2, kFirst = 0xc0 + 8 * kC + kA;
    asm volatile(".byte 0xc4,0xe2,%c0,0x5c,%c1  # tdpbf16ps" : : "i"(kSecond), "i"(kFirst) : "memory");
  }
};

}  // namespace
}  // namespace skein

// Tiles of AMX-INT8, by the instructions themselves: compilers' own functions for them leave memory out of what they read (GCC 12), and
// so let stores sink below the loads of tiles. The tiles' numbers are part of the instructions.
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
  ~AmxTiles() { asm volatile("tilerelease" ::: "memory"); }

  // Sets the shapes of all tiles, which are zeros then.
  void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  template <int kTile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile) : "memory");
  }
  // Rows of a tile lie `stride` bytes apart.
  template <int kTile>
  void load(const void* p, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  void store(void* p, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  // C += A B, of signed bytes.
  template <int kC, int kA, int kB>
  void multiply() {
    static_assert(kC != kA && kA != kB && kB != kC);
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB) : "memory");
  }
};

}  // namespace
}  // namespace skein

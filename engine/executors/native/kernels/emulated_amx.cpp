// Tiles in plain C++, and the vectors that unpack weights for them too: only for tests, on any machine but one of ARM.
#ifndef SKEIN_ARM64
#define SKEIN_EMULATED
#include "kernels/emulated.h"
#include "kernels/emulated_tiles.h"
#include "kernels/simd_emulated_amx.h"
#include "kernels/tile_table.h"

namespace skein {

const KernelTable& emulatedAmxKernels() {
  static const KernelTable table = withTiles<EmulatedAmxSimd, EmulatedTiles, emulated16PairsKernels>("emulatedamx");
  return table;
}

const char* emulatedTileProduct(const void* given, const void* a, const void* b, void* c) {
  TileConfig config;
  __builtin_memcpy(&config, given, sizeof config);
  try {
    EmulatedTiles tiles;
    tiles.configure(config);
    tiles.load<0>(c, kMostTileBytes);
    tiles.load<4>(a, kMostTileBytes);
    tiles.load<6>(b, kMostTileBytes);
    tiles.multiplyBf16<0, 4, 6>();
    tiles.store<0>(c, kMostTileBytes);
    return nullptr;
  } catch (const char* fault) {
    return fault;
  }
}

}  // namespace skein
#endif

// The shapes of AMX's eight tiles, as the instruction that sets them reads them from memory (palette 1).
#pragma once
#include <cstdint>

namespace skein {
namespace {

constexpr int kMostTileRows = 16, kMostTileBytes = 64;  // of one tile

struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};  // by tile
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Eight tiles, of which C (0 to 3) and A (4 and 5) have the rows of a product, B (6 and 7) all. Rows are independent. A product of 1 to 8
// rows takes two thirds of the time of one of 16.
inline TileConfig tilesOfRows(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 8; tile++)
    config.rows[tile] = tile < 6 && rows < kMostTileRows ? rows : kMostTileRows, config.rowBytes[tile] = kMostTileBytes;
  return config;
}
inline TileConfig wholeTiles() { return tilesOfRows(kMostTileRows); }

}  // namespace
}  // namespace skein

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

// Eight whole tiles. Rows are independent, and a product takes as long for one row as for all, so that no product needs others.
inline TileConfig wholeTiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; tile++) config.rows[tile] = kMostTileRows, config.rowBytes[tile] = kMostTileBytes;
  return config;
}

}  // namespace
}  // namespace skein

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

// The eight tiles of a product, C += A B:
//
//   0 .. 3   C   `height` rows of 16 sums                    first part: outputs 0 .. 15, 16 .. 31; second part: the same
//   4, 5     A   `height` rows of `length` activations       of the first and of the second part
//   6, 7     B   length / 4 rows of 16 outputs x 4 weights   outputs 0 .. 15, 16 .. 31 of one part
inline TileConfig productTiles(int height, int length) {
  TileConfig config;
  for (int tile = 0; tile < 8; tile++) {
    config.rows[tile] = uint8_t(tile < 6 ? height : length / 4);
    config.rowBytes[tile] = uint16_t(tile == 4 || tile == 5 ? length : kMostTileBytes);
  }
  return config;
}

}  // namespace
}  // namespace skein

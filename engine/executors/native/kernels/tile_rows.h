// Rows of activations as tiles A: rounded to bf16, 16 rows and 32 k to a tile. The last rows of a batch are lower tiles:
//
//   rows 0 .. 15      | k 0 .. 31: 16 rows x 64 bytes | k 32 .. 63 | ..      so a tile is 1 KiB in one piece, whatever k is: rows of a matrix
//   rows 16 .. 31     | ..                                                   2 or 4 KiB wide would all fall into one set of the first cache
//   rows 32 .. 36     | k 0 .. 31: 5 rows x 64 bytes  | ..
//
// k is filled up with zeros. A product of 16 rows and more loads 16 of every tile: of a lower one some that are not its own, which nothing
// reads, and for which there is memory after the last tile.
#pragma once
#include "kernels/math.h"
#include "kernels/tile_config.h"

namespace skein {
namespace {

constexpr int kTileK = 32;
inline int tilesOfK(int k) { return (k + kTileK - 1) / kTileK; }

struct TiledRows {
  const uint8_t* base;
  int rows, kTiles;

  TiledRows(const void* rounded, int32_t rowCount, int32_t k)
      : base(static_cast<const uint8_t*>(rounded)), rows(rowCount), kTiles(tilesOfK(k)) {}
  static size_t bytes(int64_t rows, int32_t k) {
    return size_t(rows * tilesOfK(k) + kMostTileRows - 1) * kMostTileBytes;
  }
  // Of the tiles of rows 16 `tile` and on: the first one, and the bytes from each to the next along k.
  const uint8_t* first(int tile) const { return base + int64_t(tile) * kMostTileRows * kTiles * kMostTileBytes; }
  int64_t stride(int tile) const { return heightOf(tile) * kMostTileBytes; }
  int64_t offsetOf(int row) const {
    const int tile = row / kMostTileRows;
    return first(tile) - base + (row - tile * kMostTileRows) * kMostTileBytes;
  }

 private:
  int heightOf(int tile) const {
    const int left = rows - tile * kMostTileRows;
    return left < kMostTileRows ? left : kMostTileRows;
  }
};

template <class V>
void roundTiledRow(const float* x, int32_t k, int32_t row, int32_t rows, void* rounded) {
  const TiledRows tiled(rounded, rows, k);
  uint8_t* to = static_cast<uint8_t*>(rounded) + tiled.offsetOf(row);
  const int64_t stride = tiled.stride(row / kMostTileRows);
  for (int i = 0; i < k; i += kTileK, to += stride)
    for (int j = 0; j < kTileK; j += V::W) {
      const int left = k - i - j;
      const auto values = left >= V::W ? V::load(x + i + j) : loadHead<V>(x + i + j, left > 0 ? left : 0, 0.0f);
      V::storeBf16(reinterpret_cast<uint16_t*>(to) + j, values);
    }
}

}  // namespace
}  // namespace skein

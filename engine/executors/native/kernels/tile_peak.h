// A loop of products of tiles alone: the "peak" that the micro-benchmark compares products by tiles with. Its tiles are those of a
// group of 32, so half as long as tiles may be; the scaling of their sums is not in it.
#pragma once
#include "kernels/tile_config.h"

namespace skein {
namespace {

// Runs about `iterations` steps of four k of a tile of 12 rows and 32 outputs, as peak() counts them; the result keeps the work alive.
template <class T>
__attribute__((noinline)) float tilePeakLoop(int64_t iterations) {
  constexpr int kLength = 32;
  const uint8_t bytes[kMostTileRows * kMostTileBytes] = {1};
  int32_t sums[16 * 16];
  T tiles;
  tiles.configure(productTiles(kMostTileRows, kLength));
  tiles.template load<4>(bytes, kLength);
  tiles.template load<5>(bytes, kLength);
  tiles.template load<6>(bytes, kMostTileBytes);
  tiles.template load<7>(bytes, kMostTileBytes);
  // Four products are two groups of 16 rows and 32 outputs.
  for (int64_t n = 0; n < iterations * 12 / 16; n += 2 * kLength / 4) {
    tiles.template multiply<0, 4, 6>();
    tiles.template multiply<1, 4, 7>();
    tiles.template multiply<2, 5, 6>();
    tiles.template multiply<3, 5, 7>();
  }
  tiles.template store<0>(sums, kMostTileBytes);
  return float(sums[0]);
}

}  // namespace
}  // namespace skein

// A loop of products of tiles alone: the "peak" that the micro-benchmark compares products by tiles with. The unpacking of weights is not
// in it.
#pragma once
#include "kernels/kernels.h"
#include "kernels/tile_config.h"

namespace skein {
namespace {

// Runs about `iterations` steps of two k (four with quantised weights) of 16 rows and 32 outputs, as peak() counts them; the result keeps
// the work alive.
template <class T>
__attribute__((noinline)) float tilePeakLoop(DType dtype, int64_t iterations) {
  const uint8_t bytes[kMostTileRows * kMostTileBytes] = {1};
  float sums[16 * 16];
  T tiles;
  tiles.configure(wholeTiles());
  tiles.template load<4>(bytes, kMostTileBytes);
  tiles.template load<5>(bytes, kMostTileBytes);
  tiles.template load<6>(bytes, kMostTileBytes);
  tiles.template load<7>(bytes, kMostTileBytes);
  // Four products are 32 k of 32 rows and 32 outputs.
  const int64_t steps = 2 * kMostTileBytes / 2 / (isQuantized(dtype) ? 4 : 2);
  for (int64_t n = 0; n < iterations; n += steps) {
    tiles.template multiplyBf16<0, 4, 6>();
    tiles.template multiplyBf16<1, 4, 7>();
    tiles.template multiplyBf16<2, 5, 6>();
    tiles.template multiplyBf16<3, 5, 7>();
  }
  tiles.template store<0>(sums, kMostTileBytes);
  return sums[0];
}

}  // namespace
}  // namespace skein

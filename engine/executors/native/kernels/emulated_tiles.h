// AMX's tiles in plain C++, for the tests alone: what Intel documents of each instruction (Software Developer's Manual, volume 2), with
// its faults, which are thrown as their texts. Without functions of the standard library: those would be compiled with wide vectors.
#pragma once
#include <cstddef>

#include "kernels/tile_config.h"
#include "kernels/tiles_order.h"

namespace skein {
namespace {

class EmulatedTiles {
 public:
  // Where the processor would raise #GP.
  void configure(const TileConfig& config) {
    need(config.palette == 1 && config.startRow == 0, "a palette other than 1, or a row to start at");
    for (const uint8_t byte : config.reserved) need(byte == 0, "a reserved byte is not 0");
    for (int tile = 0; tile < 16; tile++) {
      const int rows = config.rows[tile], bytes = config.rowBytes[tile];
      need(tile < 8 || (rows == 0 && bytes == 0), "there are eight tiles");
      need(rows <= kMostTileRows && bytes <= kMostTileBytes, "a tile has at most 16 rows of 64 bytes");
      need((rows == 0) == (bytes == 0), "a tile has rows without bytes, or bytes without rows");
    }
    config_ = config;
    __builtin_memset(tiles_, 0, sizeof tiles_);
  }
  void zero(int tile) {
    inUse(tile);
    __builtin_memset(tiles_[tile], 0, sizeof tiles_[tile]);
  }
  // What lies outside of a tile's shape becomes 0.
  void load(int tile, const void* p, int64_t stride) {
    zero(tile);
    for (int row = 0; row < config_.rows[tile]; row++)
      __builtin_memcpy(tiles_[tile][row], static_cast<const uint8_t*>(p) + row * stride, config_.rowBytes[tile]);
  }
  void store(int tile, void* p, int64_t stride) const {
    inUse(tile);
    for (int row = 0; row < config_.rows[tile]; row++)
      __builtin_memcpy(static_cast<uint8_t*>(p) + row * stride, tiles_[tile][row], config_.rowBytes[tile]);
  }
  // TDPBF16PS. Where the processor would raise #UD.
  void multiplyBf16(int c, int a, int b) {
    inUse(c), inUse(a), inUse(b);
    const int rows = config_.rows[c], words = config_.rowBytes[a] / 4, columns = config_.rowBytes[c] / 4;
    need(c != a && a != b && b != c, "one tile stands twice");
    need((config_.rowBytes[c] | config_.rowBytes[a] | config_.rowBytes[b]) % 4 == 0, "the bytes of a row are no multiple of 4");
    need(config_.rows[a] == rows, "A and C have different numbers of rows");
    need(config_.rowBytes[b] == config_.rowBytes[c], "B and C have rows of different lengths");
    need(config_.rows[b] == words, "B has not as many rows as A has words in one");
    for (int m = 0; m < rows; m++) {
      float sums[16] = {};
      __builtin_memcpy(sums, tiles_[c][m], sizeof sums);
      for (int n = 0; n < columns; n++) sums[n] = tileSum(sums[n], numbersOf(a, m), numbersOf(b, 0) + 2 * n, words, kMostTileBytes / 2);
      __builtin_memset(tiles_[c][m], 0, kMostTileBytes);
      __builtin_memcpy(tiles_[c][m], sums, size_t(columns) * 4);
    }
    for (int m = rows; m < kMostTileRows; m++) __builtin_memset(tiles_[c][m], 0, kMostTileBytes);
  }

  // As AmxTiles has them.
  template <int kTile>
  void zero() {
    zero(kTile);
  }
  template <int kTile>
  void load(const void* p, int64_t stride) {
    load(kTile, p, stride);
  }
  template <int kTile>
  void store(void* p, int64_t stride) const {
    store(kTile, p, stride);
  }
  template <int kC, int kA, int kB>
  void multiplyBf16() {
    multiplyBf16(kC, kA, kB);
  }

 private:
  static void need(bool holds, const char* fault) {
    if (!holds) throw fault;
  }
  void inUse(int tile) const { need(config_.palette == 1 && config_.rows[tile] > 0, "a tile without a shape"); }
  const uint16_t* numbersOf(int tile, int row) const { return reinterpret_cast<const uint16_t*>(tiles_[tile][row]); }

  TileConfig config_ = {.palette = 0};
  alignas(64) uint8_t tiles_[8][kMostTileRows][kMostTileBytes] = {};
};

}  // namespace
}  // namespace skein

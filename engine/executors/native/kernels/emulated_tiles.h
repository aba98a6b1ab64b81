// AMX's tiles in plain C++, for the tests alone: what Intel documents of each instruction (Software Developer's Manual, volume 2), with
// its faults, which are thrown.
#pragma once
#include <cstring>
#include <stdexcept>

#include "kernels/tile_config.h"

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
    std::memset(tiles_, 0, sizeof tiles_);
  }
  template <int kTile>
  void zero() {
    inUse(kTile);
    std::memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }
  // What lies outside of a tile's shape becomes 0.
  template <int kTile>
  void load(const void* p, int64_t stride) {
    zero<kTile>();
    for (int row = 0; row < config_.rows[kTile]; row++)
      std::memcpy(tiles_[kTile][row], static_cast<const uint8_t*>(p) + row * stride, config_.rowBytes[kTile]);
  }
  template <int kTile>
  void store(void* p, int64_t stride) const {
    inUse(kTile);
    for (int row = 0; row < config_.rows[kTile]; row++)
      std::memcpy(static_cast<uint8_t*>(p) + row * stride, tiles_[kTile][row], config_.rowBytes[kTile]);
  }
  // TDPBSSD. Where the processor would raise #UD.
  template <int kC, int kA, int kB>
  void multiply() {
    static_assert(kC != kA && kA != kB && kB != kC);
    const int rows = config_.rows[kC], words = config_.rowBytes[kA] / 4, columns = config_.rowBytes[kC] / 4;
    inUse(kC), inUse(kA), inUse(kB);
    for (const int tile : {kC, kA, kB}) need(config_.rowBytes[tile] % 4 == 0, "the bytes of a row are no multiple of 4");
    need(config_.rows[kA] == rows, "A and C have different numbers of rows");
    need(config_.rowBytes[kB] == config_.rowBytes[kC], "B and C have rows of different lengths");
    need(config_.rows[kB] == words, "B has not as many rows as A has words in one");
    for (int m = 0; m < rows; m++) {
      int32_t sums[16];
      std::memcpy(sums, tiles_[kC][m], sizeof sums);
      for (int word = 0; word < words; word++)
        for (int n = 0; n < columns; n++)
          sums[n] = plusProducts(sums[n], tiles_[kA][m] + 4 * word, tiles_[kB][word] + 4 * n);
      std::memset(tiles_[kC][m], 0, kMostTileBytes);
      std::memcpy(tiles_[kC][m], sums, size_t(columns) * 4);
    }
    for (int m = rows; m < kMostTileRows; m++) std::memset(tiles_[kC][m], 0, kMostTileBytes);
  }

 private:
  static void need(bool holds, const char* fault) {
    if (!holds) throw std::domain_error(fault);
  }
  void inUse(int tile) const { need(config_.palette == 1 && config_.rows[tile] > 0, "a tile without a shape"); }
  // Sums wrap around.
  static int32_t plusProducts(int32_t sum, const uint8_t* a, const uint8_t* b) {
    uint32_t total = uint32_t(sum);
    for (int i = 0; i < 4; i++) total += uint32_t(int8_t(a[i]) * int8_t(b[i]));
    return int32_t(total);
  }

  TileConfig config_ = {.palette = 0};
  alignas(64) uint8_t tiles_[8][kMostTileRows][kMostTileBytes] = {};
};

}  // namespace
}  // namespace skein

// Checksums of weights: the CRC-32 of zlib, which engines carry for each tensor, and a quicker one for packed files.
#pragma once
#include <cstddef>
#include <cstdint>

#include "executor/thread_pool.h"

namespace skein {

// CRC-32 as zlib computes it: polynomial 0xEDB88320, bits reflected, begun and ended with all bits set.
uint32_t crc32Of(const uint8_t* data, size_t bytes);
// CRC-32 of two pieces that follow one another.
uint32_t crc32Joined(uint32_t first, uint32_t second, uint64_t secondBytes);
// CRC-32 of one range, which all threads compute piece by piece.
uint32_t crc32Of(const uint8_t* data, size_t bytes, ThreadPool& pool);

// Checksum of whole pages, which all threads compute: the same for any number of them.
uint64_t pagesChecksum(const uint8_t* data, size_t bytes, ThreadPool& pool);

// Hash FNV-1a, 64 bits.
class Fingerprint {
 public:
  void add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3u;
  }
  void add(int64_t number) { add(&number, sizeof number); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace skein

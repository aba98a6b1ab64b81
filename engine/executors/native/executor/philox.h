// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a random number is a pure
// function of a key and a counter, so it never depends on what else is sampled.
#pragma once
#include <array>
#include <cstdint>

namespace skein {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t(0xD2511F53u) * counter[0];
    const uint64_t second = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in [0, 1) with 53 bits.
//   key      seed (low word, high word)
//   counter  sequence index, position of the drawn token, number of the draw at this position, 0
inline double philoxUniform(uint64_t seed, int32_t sequenceIndex, int32_t position, uint32_t draw) {
  const auto words = philox4x32({static_cast<uint32_t>(sequenceIndex), static_cast<uint32_t>(position), draw, 0},
                                {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = ((uint64_t(words[0]) << 32) | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace skein

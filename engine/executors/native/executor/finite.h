// Whether numbers are finite, by their bits: those of keys and values in any type of the cache, and those of states.
#pragma once
#include <cstddef>
#include <cstdint>

namespace skein {

constexpr uint32_t kExponentOfF32 = 0x7f800000u;
constexpr uint16_t kExponentOfBf16 = 0x7f80;

// A value is finite unless all bits of its exponent are set. No branch inside: the compiler turns it into vectors.
template <typename Bits>
inline bool allFinite(const Bits* values, size_t count, Bits exponent) {
  Bits found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<Bits>((values[i] & exponent) == exponent);
  return found == 0;
}

}  // namespace skein

// Checks of scales that are powers of 2 (E8M0): engine/executors/portable/convert/power-scales.ts.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace skein {

// Greatest exponent with which all weights of MXFP4 are numbers of float32: 6 * 2^(252 - 127).
constexpr int kMxfp4Exponent = 252;
// Greatest exponent that stands for a number.
constexpr int kAnyExponent = 254;

// Throws std::runtime_error for a scale that is no number, as 255 is, or makes weights that are none. placeOf: byte of the file at which a
// scale lies, by its number.
template <class PlaceOf>
void checkPowers(const uint8_t* scales, int64_t count, int64_t step, int most, const std::string& what,
                 const PlaceOf& placeOf, const std::string& file) {
  for (int64_t i = 0; i < count; i++) {
    if (scales[i * step] <= most) continue;
    throw std::runtime_error(file + ": the scale of " + what + " at byte " + std::to_string(placeOf(i)) +
                             " should be an exponent from 0 to " + std::to_string(most) +
                             ", with which weights are numbers, found " + std::to_string(scales[i * step]) + ".");
  }
}

}  // namespace skein

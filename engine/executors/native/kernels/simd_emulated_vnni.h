// The vectors of simd_emulated.h with dot products of four unsigned and four signed bytes, as simd_avx512vnni.h has them.
#pragma once
#include "kernels/scales.h"
#include "kernels/simd_emulated.h"

namespace skein {
namespace {

struct EmulatedVnniSimd : FloatScales<EmulatedSimd<16, 12>> {
  static int32_t startWord(int32_t sumOfQuants) { return -128 * sumOfQuants; }
  static I start8(int32_t word) { return set1I(word); }
  [[gnu::noinline]] static I part8(I bytes, int) {
    return eachI([&](int i) { return int32_t(uint32_t(bytes.v[i]) ^ 0x80808080u); });
  }
  [[gnu::noinline]] static I dot8(I sum, I w, I a) {
    return eachI([&](int i) {
      int32_t total = sum.v[i];
      for (int b = 0; b < 32; b += 8) total += int32_t(uint8_t(uint32_t(w.v[i]) >> b)) * int8_t(a.v[i] >> b);
      return total;
    });
  }
  [[gnu::noinline]] static I lessBytes(I bytes, int excess) {
    return eachI([&](int i) {
      uint32_t word = 0;
      for (int b = 0; b < 32; b += 8) word |= uint32_t(uint8_t((uint32_t(bytes.v[i]) >> b) - uint32_t(excess))) << b;
      return int32_t(word);
    });
  }
};

}  // namespace
}  // namespace skein

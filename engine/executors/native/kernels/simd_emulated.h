// A vector of W lanes in plain C++, the scalar twin of the hardware traits, operation for operation. With W = 8 it
// gives the bits of AVX2; with W = 16 it runs the layouts and tile shapes of AVX-512 on any machine.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/half.h"

namespace skein {
namespace {

template <int kLanes, int kRows>
struct EmulatedSimd {
  static constexpr int W = kLanes;
  static constexpr int kTileRows = kRows;
  static constexpr int kAttentionPairs = kLanes == 16 ? 6 : 3;
  static constexpr bool kBf16Pairs = false;
  struct F {
    float v[W];
  };

  static F set1(float x) {
    return each([&](int) { return x; });
  }
  static F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, F a) {
    for (int i = 0; i < W; i++) p[i] = a.v[i];
  }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  // a * b + c with one rounding
  static F fma(F a, F b, F c) {
    return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
  }
  // The greater of a and |x|, a not negative, in the order of their bits: infinity and then NaN are the greatest.
  static F greaterMagnitude(F a, F x) {
    return each([&](int i) {
      uint32_t bits[2];
      std::memcpy(bits, &a.v[i], 4);
      std::memcpy(bits + 1, &x.v[i], 4);
      bits[1] &= 0x7fffffffu;
      return fromBits(bits[0] > bits[1] ? bits[0] : bits[1]);
    });
  }
  // Returns the second operand if either is NaN, like the hardware.
  static F max(F a, F b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F roundNearest(F a) {
    return each([&](int i) { return __builtin_rintf(a.v[i]); });
  }
  // 2^n for whole n in [-126, 127]
  static F pow2(F n) {
    return each([&](int i) {
      // A NaN has no exponent; the caller multiplies by NaN anyway.
      const uint32_t bits = n.v[i] != n.v[i] ? 0u : uint32_t(int32_t(n.v[i]) + 127) << 23;
      float f;
      std::memcpy(&f, &bits, 4);
      return f;
    });
  }
  // p * 2^n for p in [0.5, 2) and whole n up to 126; 0 for n below -125. NaN stays NaN.
  static F timesPow2(F p, F n) {
    return each([&](int i) {
      if (n.v[i] < -125.0f) return 0.0f;
      uint32_t bits;
      std::memcpy(&bits, &p.v[i], 4);
      return n.v[i] != n.v[i] ? p.v[i] : fromBits(bits + (uint32_t(int32_t(n.v[i])) << 23));
    });
  }
  // a < b ? x : y in each lane
  static F selectLess(F a, F b, F x, F y) {
    return each([&](int i) { return a.v[i] < b.v[i] ? x.v[i] : y.v[i]; });
  }
  static uint32_t atLeast(F a, F b) {
    uint32_t bits = 0;
    for (int i = 0; i < W; i++) bits |= uint32_t(a.v[i] >= b.v[i]) << i;
    return bits;
  }
  static F iota() {
    return each([&](int i) { return float(i); });
  }
  static bool anyNan(F a) {
    bool found = false;
    for (int i = 0; i < W; i++) found |= a.v[i] != a.v[i];
    return found;
  }
  // Adds halves until one lane is left.
  static float reduceAdd(F a) {
    for (int width = W / 2; width > 0; width /= 2)
      for (int i = 0; i < width; i++) a.v[i] = a.v[i] + a.v[i + width];
    return a.v[0];
  }
  static float reduceMax(F a) {
    for (int width = W / 2; width > 0; width /= 2)
      for (int i = 0; i < width; i++) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
    return a.v[0];
  }
  // W consecutive bf16 values
  static F loadBf16(const uint16_t* p) {
    return each([&](int i) { return fromBits(uint32_t(p[i]) << 16); });
  }
  // 2 W values, interleaved: word i holds value i (low half) and value i + W (high half)
  static void loadBf16Pair(const uint16_t* p, F& low, F& high) {
    low = each([&](int i) { return fromBits(uint32_t(p[2 * i]) << 16); });
    high = each([&](int i) { return fromBits(uint32_t(p[2 * i + 1]) << 16); });
  }

  // Integers for quantised weights; not inlined, or the unrolled loops would take minutes to compile. A word of weights or
  // activations holds two numbers of 16 bits (dot8) or four bytes (dot4).
  struct I {
    int32_t v[W];
  };
  static constexpr int kInt8Parts = 2;
  static I loadI(const uint8_t* p) {
    I out;
    std::memcpy(out.v, p, sizeof out.v);
    return out;
  }
  static void storeI(uint8_t* p, I a) { std::memcpy(p, a.v, sizeof a.v); }
  static I set1I(int32_t x) {
    return eachI([&](int) { return x; });
  }
  [[gnu::noinline]] static void wordsOfRows(const uint8_t* const* rows, int64_t offset, I (&words)[4]) {
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < W; j++) std::memcpy(&words[i].v[j], rows[j] + offset + 4 * i, 4);
  }
  static I wordOfRows(const uint8_t* const* rows, int64_t offset) {
    return eachI([&](int i) {
      int32_t word;
      std::memcpy(&word, rows[i] + offset, 4);
      return word;
    });
  }
  static F halfOfRows(const uint8_t* const* rows, int64_t offset) {
    return each([&](int i) {
      const uint8_t* p = rows[i] + offset;
      return fromHalf(uint16_t(p[0] | p[1] << 8));
    });
  }
  static I both(I a, I b) {
    return eachI([&](int i) { return a.v[i] & b.v[i]; });
  }
  static I either(I a, I b) {
    return eachI([&](int i) { return a.v[i] | b.v[i]; });
  }
  static I plus(I a, I b) {
    return eachI([&](int i) { return int32_t(uint32_t(a.v[i]) + uint32_t(b.v[i])); });
  }
  static I times(I a, I b) {
    return eachI([&](int i) { return int32_t(uint32_t(a.v[i]) * uint32_t(b.v[i])); });
  }
  static I upBits(I a, int count) {
    return eachI([&](int i) { return int32_t(uint32_t(a.v[i]) << count); });
  }
  static I downBits(I a, int count) {
    return eachI([&](int i) { return int32_t(uint32_t(a.v[i]) >> count); });
  }
  static I downSigned(I a, int count) {
    return eachI([&](int i) { return a.v[i] >> count; });
  }
  static I bitsOf(F a) {
    I bits;
    std::memcpy(bits.v, a.v, sizeof bits.v);
    return bits;
  }
  static F floatsOf(I bits) {
    F a;
    std::memcpy(a.v, bits.v, sizeof a.v);
    return a;
  }
  static F halvesOf(I words) {
    return each([&](int i) { return fromHalf(uint16_t(words.v[i])); });
  }
  static F toFloat(I a) {
    return each([&](int i) { return float(a.v[i]); });
  }
  static F loadHalf(const uint8_t* p) {
    return each([&](int i) { return fromHalf(uint16_t(p[2 * i] | (p[2 * i + 1] << 8))); });
  }
  static int32_t startWord(int32_t) { return 0; }
  static I start8(int32_t) { return set1I(0); }
  [[gnu::noinline]] static I part8(I bytes, int part) {
    return eachI([&](int i) { return pair(int8_t(bytes.v[i] >> (8 * part)), int8_t(bytes.v[i] >> (8 * part + 16))); });
  }
  static I dot8(I sum, I w, I a) { return dotWords(sum, w, a); }
  [[gnu::noinline]] static I dotWords(I sum, I w, I a) {
    return eachI([&](int i) { return sum.v[i] + int16_t(w.v[i]) * int16_t(a.v[i]) + (w.v[i] >> 16) * (a.v[i] >> 16); });
  }
  [[gnu::noinline]] static I widenPairs(const int8_t* p) {
    return eachI([&](int i) { return pair(p[2 * i], p[2 * i + 1]); });
  }
  static void storeWords(int16_t* p, F a) {
    for (int i = 0; i < W; i++)
      p[i] = __builtin_fabsf(a.v[i]) < 32768.0f ? int16_t(__builtin_rintf(a.v[i])) : int16_t(0);
  }
  [[gnu::noinline]] static I weights4(const uint8_t* p, int part) {
    return eachI([&](int i) {
      uint32_t word;
      std::memcpy(&word, p + 4 * i, 4);
      return int32_t((word >> (4 * part)) & 0x0f0f0f0fu);
    });
  }
  [[gnu::noinline]] static I valuesAt(const int8_t (&table)[16], I places) {
    return eachI([&](int i) {
      uint32_t word = 0;
      for (int b = 0; b < 32; b += 8) word |= uint32_t(uint8_t(table[places.v[i] >> b & 15])) << b;
      return int32_t(word);
    });
  }
  [[gnu::noinline]] static I dot4(I sum, I w, I a) {
    return eachI([&](int i) {
      int32_t total = sum.v[i];
      for (int b = 0; b < 32; b += 8) total += (w.v[i] >> b & 63) * int8_t(a.v[i] >> b);
      return total;
    });
  }
  [[gnu::noinline]] static I weights5(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const I low = weights4(nibbles, part), high = loadI(upper);
    return eachI([&](int i) { return low.v[i] | int32_t((uint32_t(high.v[i]) >> step & 0x01010101u) << 4); });
  }
  [[gnu::noinline]] static I weights6(const uint8_t* nibbles, int part, const uint8_t* upper, int step) {
    const I low = weights4(nibbles, part), high = loadI(upper);
    return eachI([&](int i) { return low.v[i] | int32_t((uint32_t(high.v[i]) >> (2 * step) & 0x03030303u) << 4); });
  }
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
  static int32_t startWords(int32_t low, int32_t high) { return low + high; }
  static I startOf(int32_t word) { return set1I(word); }
  using Scale = I;
  static Scale byteScales(const uint8_t* p) {
    return eachI([&](int i) { return int8_t(p[i]); });
  }
  static Scale scalesOf(I numbers) { return numbers; }
  static Scale loadScale(const uint8_t* p) { return loadI(p); }
  static void storeScale(uint8_t* p, Scale a) { storeI(p, a); }
  static Scale weigh(I sum, Scale scale) {
    return eachI([&](int i) { return sum.v[i] * scale.v[i]; });
  }
  static Scale addWeighed(Scale total, I sum, Scale scale) {
    return eachI([&](int i) { return total.v[i] + sum.v[i] * scale.v[i]; });
  }
  static F floatOf(Scale total) { return toFloat(total); }
  static F floatBytes(const uint8_t* p) {
    return each([&](int i) { return float(int8_t(p[i])); });
  }
  static F scaled4(I sum, I multiples) {
    return each([&](int i) { return float(int64_t(sum.v[i]) * multiples.v[i]); });
  }
  static int32_t multipleWord(int32_t multiple) { return multiple; }
  static I multiplesOf(int32_t word) { return set1I(word); }
  static void storeBytes(const F (&rounded)[32 / W], uint8_t* to) {
    for (int i = 0; i < 32; i++) to[i] = uint8_t(wholeNumber(rounded[i / W].v[i % W]));
  }
  static void storeWide(const F (&rounded)[32 / W], uint8_t* to) {
    for (int i = 0; i < 32; i++) {
      const int place = (i & ~3) | ((i & 1) << 1) | ((i >> 1) & 1);
      const int16_t word = int16_t(wholeNumber(rounded[i / W].v[i % W]));
      std::memcpy(to + 2 * place, &word, 2);
    }
  }

 protected:
  static int32_t wholeNumber(float rounded) {
    int32_t bits;
    std::memcpy(&bits, &rounded, 4);
    return bits - 0x4b400000;
  }
  static int32_t pair(int16_t low, int16_t high) {
    return int32_t(uint32_t(uint16_t(low)) | uint32_t(uint16_t(high)) << 16);
  }
  template <class Fn>
  static I eachI(Fn fn) {
    I out;
    for (int i = 0; i < W; i++) out.v[i] = fn(i);
    return out;
  }
  template <class Fn>
  static F each(Fn fn) {
    F out;
    for (int i = 0; i < W; i++) out.v[i] = fn(i);
    return out;
  }
  static float fromBits(uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
};

}  // namespace
}  // namespace skein

// A vector of W lanes in plain C++, operation for operation what the hardware traits do: the scalar twin.
// With W = 8 it gives the bits of AVX2; with W = 16 it runs the layouts and tile shapes of AVX-512 on any machine.
#pragma once
#include <cstdint>
#include <cstring>

namespace skein {
namespace {

template <int kLanes, int kRows>
struct EmulatedSimd {
  static constexpr int W = kLanes;
  static constexpr int kTileRows = kRows;
  static constexpr int kAttentionPairs = 3;
  struct F {
    float v[W];
  };

  static F set1(float x) { return each([&](int) { return x; }); }
  static F load(const float* p) { return each([&](int i) { return p[i]; }); }
  static void store(float* p, F a) {
    for (int i = 0; i < W; i++) p[i] = a.v[i];
  }
  static F add(F a, F b) { return each([&](int i) { return a.v[i] + b.v[i]; }); }
  static F sub(F a, F b) { return each([&](int i) { return a.v[i] - b.v[i]; }); }
  static F mul(F a, F b) { return each([&](int i) { return a.v[i] * b.v[i]; }); }
  static F div(F a, F b) { return each([&](int i) { return a.v[i] / b.v[i]; }); }
  // a * b + c with one rounding
  static F fma(F a, F b, F c) { return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); }); }
  // The second operand where one is NaN, as the hardware has it.
  static F max(F a, F b) { return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
  static F roundNearest(F a) { return each([&](int i) { return __builtin_rintf(a.v[i]); }); }
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
  // a < b ? x : y in each lane
  static F selectLess(F a, F b, F x, F y) { return each([&](int i) { return a.v[i] < b.v[i] ? x.v[i] : y.v[i]; }); }
  static F iota() { return each([&](int i) { return float(i); }); }
  static bool anyNan(F a) {
    bool found = false;
    for (int i = 0; i < W; i++) found |= a.v[i] != a.v[i];
    return found;
  }
  // Halves are added until one lane is left.
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

 private:
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

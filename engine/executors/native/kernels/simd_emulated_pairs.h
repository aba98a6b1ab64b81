// The vectors of simd_emulated.h with dot products of pairs of bf16 (pairs.h), as two processors compute them.
#pragma once
#include "kernels/math.h"
#include "kernels/simd_emulated.h"
#include "kernels/tiles_order.h"

namespace skein {
namespace {

template <int kLanes, int kRows>
struct EmulatedPairsSimd : EmulatedSimd<kLanes, kRows> {
  using Base = EmulatedSimd<kLanes, kRows>;
  using I = typename Base::I;
  using Base::W;
  static constexpr bool kBf16Pairs = true;
  static void pairRows(const uint16_t* even, const uint16_t* odd, I& low, I& high) {
    low = Base::eachI([&](int i) { return Base::pair(int16_t(even[i]), int16_t(odd[i])); });
    high = Base::eachI([&](int i) { return Base::pair(int16_t(even[W + i]), int16_t(odd[W + i])); });
  }
  static void pairHalves(const uint16_t* a, const uint16_t* b, I& low, I& high) {
    low = Base::eachI([&](int i) { return Base::pair(int16_t(a[2 * i]), int16_t(b[2 * i])); });
    high = Base::eachI([&](int i) { return Base::pair(int16_t(a[2 * i + 1]), int16_t(b[2 * i + 1])); });
  }
  static I halvesOfPairs(typename Base::F a, typename Base::F b) {
    const I x = Base::plus(Base::bitsOf(a), Base::set1I(0x8000)), y = Base::plus(Base::bitsOf(b), Base::set1I(0x8000));
    return Base::eachI([&](int i) { return Base::pair(int16_t(x.v[i] >> 16), int16_t(y.v[i] >> 16)); });
  }
  static void zip(typename Base::F a, typename Base::F b, typename Base::F& low, typename Base::F& high) {
    for (int i = 0; i < W; i++) {
      float* to = i < W / 2 ? low.v + 2 * i : high.v + 2 * i - W;
      to[0] = a.v[i], to[1] = b.v[i];
    }
  }
  static typename Base::F addRows(const typename Base::F (&rows)[16]) {
    return Base::each([&](int i) { return Base::reduceAdd(rows[i]); });
  }
  static typename Base::F maxRows(const typename Base::F (&rows)[16]) {
    return Base::each([&](int i) { return Base::reduceMax(rows[i]); });
  }

 protected:
  // One of the two numbers of a word.
  static float valueOf(int32_t pair, int half) {
    return normalOrZero(fromBf16(uint16_t(uint32_t(pair) >> (16 * half))));
  }
};

// AVX-512 BF16, with its layouts: see pairs.h for what the instruction does.
struct EmulatedAvx512Bf16Simd : EmulatedPairsSimd<16, 12> {
  [[gnu::noinline]] static F dotPairs(F sum, I a, I w) {
    for (int i = 0; i < W; i++)
      for (int half = 1; half >= 0; half--)
        sum.v[i] = normalOrZero(__builtin_fmaf(valueOf(a.v[i], half), valueOf(w.v[i], half), normalOrZero(sum.v[i])));
    return sum;
  }
  static void storeBf16(uint16_t* p, F a) {
    for (int i = 0; i < W; i++) p[i] = toBf16(normalOrZero(a.v[i]));
  }
};

// NEON: see simd_neonbf16.h for what the instruction does.
struct EmulatedNeonBf16Simd : EmulatedPairsSimd<8, 6> {
  [[gnu::noinline]] static F dotPairs(F sum, I a, I w) {
    const auto product = [&](int i, int half) {
      return normalOrZero(valueOf(a.v[i], half) * valueOf(w.v[i], half));
    };
    return each([&](int i) { return sumToOdd(normalOrZero(sum.v[i]), sumToOdd(product(i, 0), product(i, 1))); });
  }
  static void storeBf16(uint16_t* p, F a) {
    for (int i = 0; i < W; i++) p[i] = toBf16(a.v[i]);
  }

 private:
  // The number of the two around an inexact sum whose last bit is set. (Sums of numbers far apart are inexact in f64 too.)
  static float sumToOdd(float x, float y) {
    const double a = x, b = y, sum = toOdd<uint64_t>(a + b, errorOf(a, b, a + b));
    const float near = float(sum);
    if (__builtin_fabs(sum) >= 0x1p128) return near;
    return normalOrZero(toOdd<uint32_t>(near, sum - double(near)));
  }
  static double errorOf(double a, double b, double sum) {
    const double seen = sum - a;
    return (a - (sum - seen)) + (b - seen);
  }
  // `near` is a rounded number, `error` what was lost.
  template <class Bits, class Number>
  static Number toOdd(Number near, double error) {
    if (error == 0 || error != error) return near;
    Bits bits;
    __builtin_memcpy(&bits, &near, sizeof bits);
    if (bits % 2 == 0) bits += (error < 0) == (near < 0) ? 1 : -1;
    __builtin_memcpy(&near, &bits, sizeof bits);
    return near;
  }
};

}  // namespace
}  // namespace skein

// NEON with products of 2 x 8 by 8 x 2 signed bytes (FEAT_I8MM), for several rows and quantised weights; one row takes the dot
// products.
#pragma once
#include "kernels/simd_neondot.h"

namespace skein {
namespace {

struct NeonI8mmSimd : NeonDotSimd {
  // Two rows of 8 bytes, one after the other.
  using RowPair = int8x16_t;
  static RowPair rowPair(const uint8_t* even, const uint8_t* odd) {
    return vcombine_s8(vld1_s8(reinterpret_cast<const int8_t*>(even)), vld1_s8(reinterpret_cast<const int8_t*>(odd)));
  }
  using NeonDotSimd::kept;
  static RowPair kept(RowPair a) {
    asm("" : "+w"(a));
    return a;
  }

  // Sums of two rows and W outputs; of[i]: the outputs 2 i and 2 i + 1 of the even row, then of the odd one.
  static constexpr int kSquares = W / 2;
  struct Squares {
    int32x4_t of[kSquares];
  };
  static Squares squaresOf(I even, I odd) {
    return {{joined(even.low, odd.low), joinedHigh(even.low, odd.low), joined(even.high, odd.high), joinedHigh(even.high, odd.high)}};
  }
  // Each is made by an instruction of its own: as copies of one zero the compiler moves them around between registers.
  static Squares zeroSquares() {
    Squares zero;
    for (int32x4_t& of : zero.of) asm volatile("movi %0.4s, #0" : "=w"(of));
    return zero;
  }
  static I evenRow(const Squares& a) { return {joined(a.of[0], a.of[1]), joined(a.of[2], a.of[3])}; }
  static I oddRow(const Squares& a) { return {joinedHigh(a.of[0], a.of[1]), joinedHigh(a.of[2], a.of[3])}; }

  // Adds the products of a pair of rows and of square i of 8 k, which two steps of 4 k hold.
  static int8x16_t weightsOf(I first, I second, int i) {
    const int32x4_t a = i < 2 ? first.low : first.high, b = i < 2 ? second.low : second.high;
    return vreinterpretq_s8_s32(i % 2 == 0 ? vzip1q_s32(a, b) : vzip2q_s32(a, b));
  }
  static int32x4_t addSquare(int32x4_t sum, RowPair rows, int8x16_t weights) { return vmmlaq_s32(sum, rows, weights); }

 private:
  static int32x4_t joined(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static int32x4_t joinedHigh(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
};

}  // namespace
}  // namespace skein

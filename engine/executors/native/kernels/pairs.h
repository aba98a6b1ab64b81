// Products of pairs of bf16: y += x[2 s + 1] * w[2 s + 1], then y += x[2 s] * w[2 s], each one fma that rounds to nearest
// even and treats inputs and results below the normal numbers as zero. AVX-512 BF16's instruction does this whatever
// MXCSR says. The rows of x are rounded to bf16 once for all panels:
//
//   row 0: x[0] x[1] | x[2] x[3] | .. (a zero after an odd k)      row 1: ..
#pragma once
#include "kernels/gemm.h"

namespace skein {
namespace {

inline int pairsOf(int k) { return (k + 1) / 2; }

template <class V>
struct Pairs {
  using Input = int32_t;
  using Operand = typename V::I;
  static constexpr size_t kStepBytes = kPanelWidth<V> * 4;
  static constexpr size_t kAhead = 4096;
  static constexpr int kWideRows = V::W == 16 ? 6 : 3;
  static int steps(int k) { return pairsOf(k); }
  template <class Args>
  static const Input* row(const Args& args, int64_t row) {
    return static_cast<const Input*>(args.rounded) + row * pairsOf(args.k);
  }
  template <class Args>
  static int64_t stride(const Args& args) {
    return pairsOf(args.k);
  }
  static Operand broadcast(const Input* x) { return V::set1I(*x); }
  static void load(const char* p, Operand& low, Operand& high) {
    low = V::loadI(reinterpret_cast<const uint8_t*>(p));
    high = V::loadI(reinterpret_cast<const uint8_t*>(p) + 4 * V::W);
  }
  static typename V::F add(typename V::F sum, Operand a, Operand w) { return V::dotPairs(sum, a, w); }
};

template <class V>
void roundRow(const float* x, int32_t k, int32_t row, void* rows) {
  uint16_t* to = static_cast<uint16_t*>(rows) + int64_t(row) * 2 * pairsOf(k);
  int i = 0;
  for (; i + V::W <= k; i += V::W) V::storeBf16(to + i, V::load(x + i));
  if (i == k) return;
  uint16_t tail[V::W];
  V::storeBf16(tail, loadHead<V>(x + i, k - i, 0.0f));
  __builtin_memcpy(to + i, tail, size_t(2 * pairsOf(k) - i) * 2);
}

}  // namespace
}  // namespace skein

// Arithmetic that all kernels share: one exponential, the activations, and loads of short tails.
#pragma once
#include "kernels/kernels.h"

namespace skein {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; polynomial of degree 7 with the coefficients of Cephes'
// expf. Returns exp(r) - 1, and n.
template <class V>
inline typename V::F vexpFraction(typename V::F x, typename V::F& n) {
  n = V::roundNearest(V::mul(x, V::set1(1.44269504088896341f)));
  auto r = V::fma(n, V::set1(-0.693359375f), x);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  auto p = V::fma(V::set1(1.9875691500e-4f), r, V::set1(1.3981999507e-3f));
  p = V::fma(p, r, V::set1(8.3334519073e-3f));
  p = V::fma(p, r, V::set1(4.1665795894e-2f));
  p = V::fma(p, r, V::set1(1.6666665459e-1f));
  p = V::fma(p, r, V::set1(5.0000001201e-1f));
  return V::fma(p, V::mul(r, r), r);
}
// exp(x), within 2 ulp; 0 below -87.3, NaN stays NaN. vexpBelow is for x up to 88.3 and has the bits of vexp, which returns
// +inf above.
template <class V>
inline typename V::F vexpBelow(typename V::F x) {
  typename V::F n;
  const auto p = V::add(vexpFraction<V>(x, n), V::set1(1.0f));
  const auto inside = V::mul(p, V::pow2(n));
  return V::selectLess(x, V::set1(-87.3f), V::set1(0.0f), inside);
}
// exp(x) - 1 for x up to 0, which keeps its digits near 0; -1 below -87.3, NaN stays NaN.
template <class V>
inline typename V::F vexpm1Below(typename V::F x) {
  typename V::F n;
  const auto p = vexpFraction<V>(x, n), power = V::pow2(n), minusOne = V::set1(-1.0f);
  return V::selectLess(x, V::set1(-87.3f), minusOne, V::fma(p, power, V::add(power, minusOne)));
}
// exp(x) for x up to 0, where what is made of it is rounded to bf16: within 3e-6 of itself, exactly 1 for 0, 0 where
// 2^-126 is passed. 2^f by a polynomial of degree 4 with the least relative error on |f| <= 1/2.
template <class V>
inline typename V::F vexpCoarse(typename V::F x) {
  const auto y = V::mul(x, V::set1(1.44269504088896341f));
  const auto n = V::roundNearest(y);
  const auto f = V::sub(y, n);
  auto p = V::fma(V::set1(9.582852944731712e-3f), f, V::set1(5.5906426161527634e-2f));
  p = V::fma(p, f, V::set1(2.4024099111557007e-1f));
  p = V::fma(p, f, V::set1(6.931241750717163e-1f));
  return V::timesPow2(V::fma(p, f, V::set1(1.0f)), n);
}
template <class V>
inline typename V::F vexp(typename V::F x) {
  return V::selectLess(V::set1(88.3f), x, V::set1(__builtin_inff()), vexpBelow<V>(x));
}

// The end of a row that fills no vector. Most rows have none, and the code of one would be longer than that of the loops before it.
template <class V>
[[gnu::noinline, gnu::cold]] typename V::F loadTail(const float* p, int count, float fill) {
  float lanes[V::W];
  for (int i = 0; i < V::W; i++) lanes[i] = i < count ? p[i] : fill;
  return V::load(lanes);
}
template <class V>
[[gnu::noinline, gnu::cold]] void storeTail(float* p, int count, typename V::F a) {
  float lanes[V::W];
  V::store(lanes, a);
  for (int i = 0; i < count; i++) p[i] = lanes[i];
}

// Loads the first `count` lanes from p, with `fill` in the others; nothing beyond p[count - 1] is read.
template <class V>
inline typename V::F loadHead(const float* p, int count, float fill) {
  return count >= V::W ? V::load(p) : loadTail<V>(p, count, fill);
}

template <class V>
inline void storeHead(float* p, int count, typename V::F a) {
  if (count >= V::W) V::store(p, a);
  else storeTail<V>(p, count, a);
}

// Sums the squares of n values in W lanes over ascending columns, then across them.
template <class V>
inline float sumOfSquares(const float* x, int n) {
  auto squares = V::set1(0.0f);
  for (int i = 0; i < n; i += V::W) {
    const auto a = loadHead<V>(x + i, n - i < V::W ? n - i : V::W, 0.0f);
    squares = V::fma(a, a, squares);
  }
  return V::reduceAdd(squares);
}

// Evaluates a polynomial by Horner's rule; coefficients with the highest power first.
template <class V, int N>
inline typename V::F polynomial(const float (&coefficients)[N], typename V::F x) {
  auto p = V::set1(coefficients[0]);
  for (int i = 1; i < N; i++) p = V::fma(p, x, V::set1(coefficients[i]));
  return p;
}

// erf in f32, within 4 ulp, by the quotient of polynomials that Eigen and XLA use; beyond 4 it is 1 to f32. NaN stays NaN.
template <class V>
inline typename V::F verf(typename V::F x) {
  constexpr float kAbove[] = {-2.72614225801306e-10f, 2.77068142495902e-08f,  -2.10102402082508e-06f,
                              -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                              -1.60960333262415e-02f};
  constexpr float kBelow[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                              -7.37332916720468e-03f, -1.42647390514189e-02f};
  const auto one = V::set1(1.0f), minusOne = V::set1(-1.0f), bound = V::set1(4.0f), minusBound = V::set1(-4.0f);
  const auto square = V::mul(x, x);
  const auto inside = V::div(V::mul(x, polynomial<V>(kAbove, square)), polynomial<V>(kBelow, square));
  return V::selectLess(bound, x, one, V::selectLess(x, minusBound, minusOne, inside));
}

// tanh(x) = 1 - 2 / (exp(2 x) + 1): within 1e-7 of it. NaN stays NaN.
template <class V>
inline typename V::F vtanh(typename V::F x) {
  const auto one = V::set1(1.0f);
  return V::sub(one, V::div(V::set1(2.0f), V::add(vexp<V>(V::add(x, x)), one)));
}

// cap * tanh(x / cap)
template <class V>
inline typename V::F softCapped(typename V::F x, float cap) {
  return V::mul(V::set1(cap), vtanh<V>(V::div(x, V::set1(cap))));
}

template <class V>
inline typename V::F activate(Activation activation, typename V::F x) {
  switch (activation) {
    case Activation::kSilu: return V::div(x, V::add(V::set1(1.0f), vexp<V>(V::sub(V::set1(0.0f), x))));
    case Activation::kGelu:
      return V::mul(V::mul(V::set1(0.5f), x), V::add(V::set1(1.0f), verf<V>(V::mul(x, V::set1(0.70710678118654752f)))));
    case Activation::kGeluTanh: {
      const auto cube = V::mul(V::mul(x, x), x);
      const auto inner = V::mul(V::set1(0.79788456080286536f), V::fma(V::set1(0.044715f), cube, x));
      return V::mul(V::mul(V::set1(0.5f), x), V::add(V::set1(1.0f), vtanh<V>(inner)));
    }
    case Activation::kTanh: return vtanh<V>(x);
    case Activation::kRelu: return V::selectLess(x, V::set1(0.0f), V::set1(0.0f), x);
    case Activation::kReluSquared: {
      const auto above = V::selectLess(x, V::set1(0.0f), V::set1(0.0f), x);
      return V::mul(above, above);
    }
    case Activation::kSigmoid: return V::div(V::set1(1.0f), V::add(V::set1(1.0f), vexp<V>(V::sub(V::set1(0.0f), x))));
    case Activation::kQuickGelu:
      return V::div(x, V::add(V::set1(1.0f), vexp<V>(V::mul(V::set1(-1.702f), x))));
    case Activation::kNone: break;
  }
  return x;
}

template <class V>
inline typename V::F xieluOf(typename V::F x, const Xielu& xielu) {
  const auto linear = V::mul(V::set1(xielu.beta), x), epsilon = V::set1(xielu.epsilon);
  const auto positive = V::fma(V::mul(V::set1(xielu.alphaPositive), x), x, linear);
  const auto bend = V::sub(vexpm1Below<V>(V::selectLess(epsilon, x, epsilon, x)), x);
  const auto negative = V::fma(V::set1(xielu.alphaNegative), bend, linear);
  return V::selectLess(V::set1(0.0f), x, positive, negative);
}

// Rounds to nearest even; NaN stays NaN.
inline uint16_t toBf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  if (x != x) return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float fromBf16(uint16_t x) {
  const uint32_t bits = uint32_t(x) << 16;
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

inline size_t bytesOf(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

}  // namespace
}  // namespace skein

// Plain kernels, compiled once per instruction set: the compiler vectorises over the outputs of a panel.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "kernels/kernels.h"

namespace skein {
namespace {

constexpr int32_t kW = 16;

inline float widen(uint16_t v) { uint32_t u = uint32_t(v) << 16; float f; std::memcpy(&f, &u, 4); return f; }
inline uint16_t narrow(float f) {
  uint32_t u; std::memcpy(&u, &f, 4);
  if ((u & 0x7fffffff) > 0x7f800000) return uint16_t((u >> 16) | 0x40);
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
inline float load(const float* p, int64_t i) { return p[i]; }
inline float load(const uint16_t* p, int64_t i) { return widen(p[i]); }
inline void store(float* p, int64_t i, float v) { p[i] = v; }
inline void store(uint16_t* p, int64_t i, float v) { p[i] = narrow(v); }
inline size_t bytes(DType d) { return d == DType::kF32 ? 4 : 2; }
inline int32_t panels(int32_t n) { return (n + kW - 1) / kW; }

float activate(Activation a, float v) {
  switch (a) {
    case Activation::kSilu: return v / (1.0f + std::exp(-v));
    case Activation::kGelu: return 0.5f * v * (1.0f + std::erf(v * 0.70710678f));
    case Activation::kGeluTanh: return 0.5f * v * (1.0f + std::tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
    case Activation::kNone: break;
  }
  return v;
}

size_t packedBytes(DType d, int32_t n, int32_t k) { return size_t(panels(n)) * kW * k * bytes(d); }
template <class T> void packPanel(const T* w, int32_t rows, int32_t k, T* out) {
  for (int32_t i = 0; i < k; i++) for (int32_t j = 0; j < kW; j++) out[int64_t(i) * kW + j] = j < rows ? w[int64_t(j) * k + i] : T(0);
}
template <class T> void packT(const T* w, int32_t n, int32_t k, T* out, int64_t step) {
  for (int32_t p = 0; p < panels(n); p++)
    packPanel(w + int64_t(p) * kW * k, n - p * kW < kW ? n - p * kW : kW, k, out + p * step);
}
void packWeights(DType d, const void* w, int32_t n, int32_t k, void* packed) {
  if (d == DType::kF32) packT((const float*)w, n, k, (float*)packed, int64_t(kW) * k);
  else packT((const uint16_t*)w, n, k, (uint16_t*)packed, int64_t(kW) * k);
}
size_t packedGatedBytes(DType d, int32_t n, int32_t k) { return 2 * packedBytes(d, n, k); }
void packGatedWeights(DType d, const void* w, int32_t n, int32_t k, void* packed) {
  const int64_t half = int64_t(kW) * k, up = int64_t(n) * k;
  if (d == DType::kF32) {
    packT((const float*)w, n, k, (float*)packed, 2 * half);
    packT((const float*)w + up, n, k, (float*)packed + half, 2 * half);
  } else {
    packT((const uint16_t*)w, n, k, (uint16_t*)packed, 2 * half);
    packT((const uint16_t*)w + up, n, k, (uint16_t*)packed + half, 2 * half);
  }
}

// Sixteen lanes: one register, two, or an array.
#if defined(__AVX512F__)
constexpr int32_t kTile = 12;
struct Lanes {
  __m512 v;
  static Lanes zero() { return {_mm512_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load(const uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16))};
  }
  void addProduct(float x, Lanes w) { v = _mm512_fmadd_ps(_mm512_set1_ps(x), w.v, v); }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
};
#elif defined(__FMA__)
constexpr int32_t kTile = 6;
struct Lanes {
  __m256 a, b;
  static Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static __m256 widenEight(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
  }
  static Lanes load(const uint16_t* p) { return {widenEight(p), widenEight(p + 8)}; }
  void addProduct(float x, Lanes w) {
    const __m256 broadcast = _mm256_set1_ps(x);
    a = _mm256_fmadd_ps(broadcast, w.a, a);
    b = _mm256_fmadd_ps(broadcast, w.b, b);
  }
  void store(float* p) const { _mm256_storeu_ps(p, a); _mm256_storeu_ps(p + 8, b); }
};
#else
constexpr int32_t kTile = 4;
struct Lanes {
  float v[kW];
  static Lanes zero() { return {}; }
  template <class T> static Lanes load(const T* p) {
    Lanes lanes;
    for (int32_t j = 0; j < kW; j++) lanes.v[j] = skein::load(p, j);
    return lanes;
  }
  void addProduct(float x, const Lanes& w) { for (int32_t j = 0; j < kW; j++) v[j] = std::fma(x, w.v[j], v[j]); }
  void store(float* p) const { std::memcpy(p, v, sizeof v); }
};
#endif

// M rows of one panel: each output is one chain of fused multiply-adds over k, whatever M is.
template <class T, int M> void panelRows(const float* x, int64_t ldx, const T* w, int32_t k, float (*acc)[kW]) {
  Lanes a[M];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) a[m] = Lanes::zero();
  for (int32_t i = 0; i < k; i++) {
    const Lanes row = Lanes::load(w + int64_t(i) * kW);
#pragma GCC unroll 16
    for (int m = 0; m < M; m++) a[m].addProduct(x[m * ldx + i], row);
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++) a[m].store(acc[m]);
}
template <class T, int M = kTile> void panelOf(const float* x, int64_t ldx, const T* w, int32_t k, int32_t rows, float (*acc)[kW]) {
  if constexpr (M > 1) {
    if (rows < M) return panelOf<T, M - 1>(x, ldx, w, k, rows, acc);
  }
  panelRows<T, M>(x, ldx, w, k, acc);
}
void panel(DType d, const float* x, int64_t ldx, const void* w, int64_t offset, int32_t k, int32_t rows, float (*acc)[kW]) {
  if (d == DType::kF32) panelOf(x, ldx, (const float*)w + offset, k, rows, acc);
  else panelOf(x, ldx, (const uint16_t*)w + offset, k, rows, acc);
}

void gemm(const GemmArgs& g, int32_t rb, int32_t re, int32_t pb, int32_t pe) {
  for (int32_t p = pb; p < pe; p++)
    for (int32_t r = rb; r < re; r += kTile) {
      float acc[kTile][kW];
      const int32_t rows = re - r < kTile ? re - r : kTile;
      panel(g.dtype, g.x + r * g.ldx, g.ldx, g.packed, int64_t(p) * kW * g.k, g.k, rows, acc);
      for (int32_t m = 0; m < rows; m++)
        for (int32_t j = 0; j < kW && p * kW + j < g.n; j++) {
          const int32_t c = p * kW + j;
          float v = acc[m][j];
          if (g.bias) v += g.bias[c];
          v = activate(g.activation, v);
          if (g.residual) v += g.residual[(r + m) * g.ldr + c];
          g.y[(r + m) * g.ldy + c] = v;
        }
    }
}
void gatedGemm(const GatedGemmArgs& g, int32_t rb, int32_t re, int32_t pb, int32_t pe) {
  const int64_t half = int64_t(kW) * g.k;
  for (int32_t p = pb; p < pe; p++)
    for (int32_t r = rb; r < re; r += kTile) {
      float gate[kTile][kW], up[kTile][kW];
      const int32_t rows = re - r < kTile ? re - r : kTile;
      panel(g.dtype, g.x + r * g.ldx, g.ldx, g.packed, 2 * half * p, g.k, rows, gate);
      panel(g.dtype, g.x + r * g.ldx, g.ldx, g.packed, 2 * half * p + half, g.k, rows, up);
      for (int32_t m = 0; m < rows; m++)
        for (int32_t j = 0; j < kW && p * kW + j < g.n; j++) {
          const int32_t c = p * kW + j;
          float a = gate[m][j], b = up[m][j];
          if (g.bias) { a += g.bias[c]; b += g.bias[g.n + c]; }
          g.y[(r + m) * g.ldy + c] = activate(g.activation, a) * b;
        }
    }
}
void rmsNorm(const float* x, const float* w, float eps, int32_t n, float* y) {
  float lanes[8] = {};
  for (int32_t i = 0; i < n; i++) lanes[i % 8] = std::fma(x[i], x[i], lanes[i % 8]);
  float sum = 0;
  for (float lane : lanes) sum += lane;
  const float s = 1.0f / std::sqrt(sum / n + eps);
  for (int32_t i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}
void embeddingRow(DType d, const void* row, int32_t n, float* y) {
  for (int32_t i = 0; i < n; i++) y[i] = d == DType::kF32 ? ((const float*)row)[i] : widen(((const uint16_t*)row)[i]);
}
void ropeAngles(const float* f, int32_t half, float scale, int32_t position, float* c, float* s) {
  for (int32_t i = 0; i < half; i++) { const float a = float(position) * f[i]; c[i] = std::cos(a) * scale; s[i] = std::sin(a) * scale; }
}
void rope(float* x, int32_t heads, int32_t headDim, int32_t half, const float* c, const float* s) {
  for (int32_t h = 0; h < heads; h++, x += headDim)
    for (int32_t i = 0; i < half; i++) {
      const float a = x[i], b = x[i + half];
      x[i] = a * c[i] - b * s[i];
      x[i + half] = b * c[i] + a * s[i];
    }
}
template <class T> T* headBase(const KvLayer& kv, int64_t block, int32_t head) {
  return (T*)kv.base + block * int64_t(kv.elementsPerBlock()) + int64_t(head) * 2 * kv.tokensPerBlock * kv.headDim;
}
template <class T> void storeT(const KvLayer& kv, const float* k, const float* v, int64_t slot) {
  const int32_t G = kv.tokensPerBlock < 32 ? kv.tokensPerBlock : 32, off = int32_t(slot % kv.tokensPerBlock);
  for (int32_t h = 0; h < kv.kvHeads; h++) {
    T* base = headBase<T>(kv, slot / kv.tokensPerBlock, h);
    T* kt = base + int64_t(off / G) * kv.headDim * G + off % G;
    T* vt = base + int64_t(kv.tokensPerBlock) * kv.headDim + int64_t(off) * kv.headDim;
    for (int32_t d = 0; d < kv.headDim; d++) { store(kt, int64_t(d) * G, k[h * kv.headDim + d]); store(vt, d, v[h * kv.headDim + d]); }
  }
}
void storeKv(const KvLayer& kv, const float* k, const float* v, int64_t slot) {
  if (kv.dtype == DType::kF32) storeT<float>(kv, k, v, slot); else storeT<uint16_t>(kv, k, v, slot);
}
template <class T> void splitT(const AttentionArgs& a, int32_t head, int32_t rb, int32_t re, int32_t split, float* partial) {
  const KvLayer& kv = *a.kv;
  const int32_t hd = kv.headDim, hpk = a.numHeads / kv.kvHeads, tpb = kv.tokensPerBlock, G = tpb < 32 ? tpb : 32;
  for (int32_t r = rb; r < re; r++) for (int32_t h = 0; h < hpk; h++) {
    float* acc = partial + (int64_t(r - rb) * hpk + h) * (hd + 2);
    const float* q = a.q + r * a.ldq + int64_t(head * hpk + h) * hd;
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    for (int32_t d = 0; d < hd; d++) acc[d] = 0;
    const int32_t last = a.firstPosition + r, end = (split + 1) * kSplitTokens;
    for (int32_t step = split * kSplitTokens; step < end && step <= last; step += kStepTokens) {
      const int32_t count = last + 1 - step < kStepTokens ? last + 1 - step : kStepTokens;
      float score[kStepTokens] = {};
      float stepMax = max;
      for (int32_t t = 0; t < count; t += G) {
        const int32_t pos = step + t;
        const T* k = headBase<T>(kv, a.blockTable[pos / tpb], head) + int64_t(pos % tpb / G) * hd * G;
        for (int32_t d = 0; d < hd; d++)
          for (int32_t i = 0; i < G; i++) score[t + i] = std::fma(q[d], load(k, int64_t(d) * G + i), score[t + i]);
      }
      for (int32_t t = 0; t < count; t++) {
        score[t] *= a.scale;
        if (score[t] > stepMax) stepMax = score[t];
      }
      const float shrink = max == stepMax ? 1.0f : std::exp(max - stepMax);
      sum *= shrink;
      for (int32_t d = 0; d < hd; d++) acc[d] *= shrink;
      for (int32_t t = 0; t < count; t++) {
        const int32_t pos = step + t;
        const T* v = headBase<T>(kv, a.blockTable[pos / tpb], head) + int64_t(tpb) * hd + int64_t(pos % tpb) * hd;
        const float e = std::exp(score[t] - stepMax);
        sum += e;
        for (int32_t d = 0; d < hd; d++) acc[d] = std::fma(e, load(v, d), acc[d]);
      }
      max = stepMax;
    }
    acc[hd] = max; acc[hd + 1] = sum;
  }
}
void attentionSplit(const AttentionArgs& a, int32_t head, int32_t rb, int32_t re, int32_t split, float*, float* partial) {
  if (a.kv->dtype == DType::kF32) splitT<float>(a, head, rb, re, split, partial); else splitT<uint16_t>(a, head, rb, re, split, partial);
}
size_t scratchFloats(int32_t, int32_t) { return 16; }
void attentionMerge(const float* p, int64_t stride, int32_t splits, int32_t hd, float* y) {
  float max = p[hd];
  for (int32_t s = 1; s < splits; s++) if (p[s * stride + hd] > max) max = p[s * stride + hd];
  float sum = 0;
  for (int32_t d = 0; d < hd; d++) y[d] = 0;
  for (int32_t s = 0; s < splits; s++) {
    const float* part = p + s * stride;
    if (part[hd + 1] == 0) continue;
    const float f = std::exp(part[hd] - max);
    sum = std::fma(part[hd + 1], f, sum);
    for (int32_t d = 0; d < hd; d++) y[d] = std::fma(part[d], f, y[d]);
  }
  for (int32_t d = 0; d < hd; d++) y[d] /= sum;
}
int32_t argmax(const float* x, int32_t n, float* maximum) {
  int32_t best = 0; bool nan = false;
  for (int32_t i = 0; i < n; i++) { nan |= std::isnan(x[i]); if (x[i] > x[best]) best = i; }
  *maximum = x[best];
  return nan || !std::isfinite(x[best]) ? -1 : best;
}
double sumExp(const float* x, int32_t n, float maximum, float t) {
  double total = 0;
  for (int32_t c = 0; c < n; c += kVocabChunk) {
    float sum = 0;
    for (int32_t i = c; i < n && i < c + kVocabChunk; i++) sum += std::exp((x[i] - maximum) * t);
    total += sum;
  }
  return total;
}
void expRow(const float* x, int32_t n, float maximum, float t, float* out) {
  for (int32_t i = 0; i < n; i++) out[i] = std::exp((x[i] - maximum) * t);
}
constexpr KernelTable portable(const char* name) {
  return {name, kW, kTile, packedBytes, packWeights, packedGatedBytes, packGatedWeights, gemm, gatedGemm, rmsNorm, embeddingRow,
          ropeAngles, rope, storeKv, attentionSplit, scratchFloats, attentionMerge, argmax, sumExp, expRow};
}
}  // namespace
}  // namespace skein

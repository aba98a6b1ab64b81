// Packed GEMM: activations [rows, k] in f32 times packed weights.
//
// A panel holds NR = 2 W outputs, k-major:
//
//   f32   k=0: w[0][0] w[1][0] .. w[NR-1][0]   k=1: w[0][1] ..              NR floats a step of k
//   bf16  k=0: (w[0] w[W]) (w[1] w[W+1]) ..    words of two, so that a shift and a mask make two vectors
//         k=0 and 1: (w[0][0] w[0][1]) (w[1][0] w[1][1]) ..    where an instruction multiplies pairs (pairs.h)
//
// A tile is M rows x P panels: M x P x 2 accumulators in registers, each one chain of fma over ascending k. Few rows take
// several panels side by side, so that there are always enough independent chains to fill the fma units; the chain of
// one output is the same in every tile.
#pragma once
#include "kernels/low_rank.h"
#include "kernels/math.h"
#include "kernels/tiles.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

template <class V>
constexpr int kPanelWidth = 2 * V::W;

inline int panelsOf(int n, int width) { return (n + width - 1) / width; }

// Amounts of a row and of a panel that one step of a product takes.
//
//   Singles   one k: a float of the row times f32 or bf16 weights, one fma
//   Pairs     two k (pairs.h): a word of two bf16 of the row times words of two bf16 weights, by one instruction
template <class V, DType D>
struct Singles {
  using Input = float;
  using Operand = typename V::F;
  static constexpr size_t kStepBytes = kPanelWidth<V> * (D == DType::kF32 ? 4 : 2);
  // Bytes between a step and the part of its panel that it prefetches: measured for each type.
  static constexpr size_t kAhead = D == DType::kF32 ? 1024 : 2048;
  // Most rows for which a tile takes several panels. Three rows of two bf16 panels would not fit into the registers.
  static constexpr int kWideRows = D == DType::kF32 ? 3 : 2;
  static int steps(int k) { return k; }
  template <class Args>
  static const Input* row(const Args& args, int64_t row) {
    return args.x + row * args.ldx;
  }
  template <class Args>
  static int64_t stride(const Args& args) {
    return args.ldx;
  }
  static Operand broadcast(const Input* x) { return V::set1(*x); }
  [[gnu::always_inline]] static void load(const char* p, Operand& low, Operand& high) {
    if constexpr (D == DType::kF32) {
      low = V::load(reinterpret_cast<const float*>(p));
      high = V::load(reinterpret_cast<const float*>(p) + V::W);
    } else {
      V::loadBf16Pair(reinterpret_cast<const uint16_t*>(p), low, high);
    }
  }
  static typename V::F add(typename V::F sum, Operand a, Operand w) { return V::fma(a, w, sum); }
};

// Steps between two calls for what adapters need next.
constexpr int kStepsOfCall = 32;

// Computes tile[m * P * NR + p * NR ..]: sums over `steps` steps of M rows and P adjacent panels. No bias, no
// activation.
template <class V, class S, int M, int P>
void sums(const typename S::Input* x, int64_t ldx, const char* panels, int steps, float* tile, Ahead* ahead) {
  if constexpr (M > 1 && requires { S::template sumsOfRows<M, P>(x, ldx, panels, steps, tile, ahead); })
    return S::template sumsOfRows<M, P>(x, ldx, panels, steps, tile, ahead);
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  F acc[M][P][2];
  SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++) SKEIN_UNROLL(8)
  for (int p = 0; p < P; p++) acc[m][p][0] = acc[m][p][1] = V::set1(0.0f);

  const char* panel[P];
  SKEIN_UNROLL(8)
  for (int p = 0; p < P; p++) panel[p] = panels + size_t(p) * steps * S::kStepBytes;

  for (int s = 0; s < steps; s++) {
    if (s % kStepsOfCall == 0) ahead->some();
    SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) {
      typename S::Operand low, high;
      S::load(panel[p] + size_t(s) * S::kStepBytes, low, high);
      __builtin_prefetch(panel[p] + size_t(s) * S::kStepBytes + S::kAhead);
      if constexpr (S::kStepBytes > 64) __builtin_prefetch(panel[p] + size_t(s) * S::kStepBytes + S::kAhead + 64);
      SKEIN_UNROLL(16)
      for (int m = 0; m < M; m++) {
        const typename S::Operand a = S::broadcast(x + m * ldx + s);
        acc[m][p][0] = S::add(acc[m][p][0], a, low);
        acc[m][p][1] = S::add(acc[m][p][1], a, high);
      }
    }
  }
  SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++) SKEIN_UNROLL(8)
  for (int p = 0; p < P; p++) {
    V::store(tile + (m * P + p) * NR, acc[m][p][0]);
    V::store(tile + (m * P + p) * NR + V::W, acc[m][p][1]);
  }
}

template <class S>
using SumsFn = void (*)(const typename S::Input*, int64_t, const char*, int, float*, Ahead*);

// Returns the function of a tile of `rows` rows and one panel.
template <class V, class S>
SumsFn<S> sumsFor(int rows) {
  static constexpr auto kTiles =
      tilesOf<SumsFn<S>, 1, V::kTileRows>([]<int M>(TileRows<M>) -> SumsFn<S> { return sums<V, S, M, 1>; });
  static_assert(V::kTileRows <= 12);
  return kTiles.of[rows];
}

// The same for few rows, at most S::kWideRows, and two panels side by side.
template <class V, class S>
SumsFn<S> sumsOfTwo(int rows) {
  static constexpr auto kTiles =
      tilesOf<SumsFn<S>, 1, S::kWideRows>([]<int M>(TileRows<M>) -> SumsFn<S> { return sums<V, S, M, 2>; });
  return kTiles.of[rows];
}

// Chooses the number of panels side by side for a tile of few rows: about as many accumulators as the tallest tile has.
template <class V, class S>
SumsFn<S> wideSumsFor(int rows, int& panels) {
  panels = rows == 1 ? 4 : 2;
  return rows == 1 ? sums<V, S, 1, 4> : sumsOfTwo<V, S>(rows);
}
constexpr int kMaxTileFloats = 12 * 32;  // rows x panel width of the tallest tile; wide tiles are smaller

// Computes y = activation(sum + bias) + residual for `count` columns from `column` on of one row.
template <class V>
[[gnu::noinline]] void finishColumns(const GemmArgs& args, int64_t row, int column, int count, const float* sum) {
  for (int i = 0; i < count; i += V::W) {
    const int lanes = count - i < V::W ? count - i : V::W;
    auto y = V::load(sum + i);
    if (args.bias) y = V::add(y, loadHead<V>(args.bias + column + i, lanes, 0.0f));
    y = activate<V>(args.activation, y);
    if (args.residual) y = V::add(y, loadHead<V>(args.residual + row * args.ldr + column + i, lanes, 0.0f));
    storeHead<V>(args.y + row * args.ldy + column + i, lanes, y);
  }
}

// Does the same for `rows` rows of one panel, whose sums lie `stride` apart. The usual case of a product has no choices
// inside the loop, which would cost a seventh of a short product.
template <class V>
inline void finishTile(const GemmArgs& args, int64_t row, int rows, int panel, float* sums, int stride) {
  constexpr int NR = kPanelWidth<V>;
  const int column = panel * NR;
  if (args.adapters) addAdapters<V>(args.adapters + row, rows, args.firstPanel + panel, sums, stride);
  const int count = args.n - column < NR ? args.n - column : NR;
  if (count < NR || args.bias || args.activation != Activation::kNone) {
    for (int m = 0; m < rows; m++) finishColumns<V>(args, row + m, column, count, sums + m * stride);
    return;
  }
  float* y = args.y + row * args.ldy + column;
  if (!args.residual) {
    for (int m = 0; m < rows; m++, y += args.ldy, sums += stride) {
      V::store(y, V::load(sums));
      V::store(y + V::W, V::load(sums + V::W));
    }
    return;
  }
  const float* residual = args.residual + row * args.ldr + column;
  for (int m = 0; m < rows; m++, y += args.ldy, residual += args.ldr, sums += stride) {
    V::store(y, V::add(V::load(sums), V::load(residual)));
    V::store(y + V::W, V::add(V::load(sums + V::W), V::load(residual + V::W)));
  }
}

// Computes y = activation(gate + bias) * (up + bias).
template <class V>
[[gnu::noinline]] void finishGated(const GatedGemmArgs& args, int64_t row, int column, int count, const float* gate,
                                   const float* up) {
  for (int i = 0; i < count; i += V::W) {
    const int lanes = count - i < V::W ? count - i : V::W;
    auto g = V::load(gate + i);
    auto u = V::load(up + i);
    if (args.bias) {
      g = V::add(g, loadHead<V>(args.bias + column + i, lanes, 0.0f));
      u = V::add(u, loadHead<V>(args.bias + args.n + column + i, lanes, 0.0f));
    }
    storeHead<V>(args.y + row * args.ldy + column + i, lanes, V::mul(activate<V>(args.activation, g), u));
  }
}

template <class V>
inline void finishGatedTile(const GatedGemmArgs& args, int64_t row, int rows, int panel, float* gate, float* up,
                            int stride) {
  constexpr int NR = kPanelWidth<V>;
  const int column = panel * NR;
  if (args.adapters) {
    addAdapters<V>(args.adapters + row, rows, 2 * panel, gate, stride);
    addAdapters<V>(args.adapters + row, rows, 2 * panel + 1, up, stride);
  }
  const int count = args.n - column < NR ? args.n - column : NR;
  if (count < NR || args.bias || args.activation != Activation::kSilu) {
    for (int m = 0; m < rows; m++) finishGated<V>(args, row + m, column, count, gate + m * stride, up + m * stride);
    return;
  }
  float* y = args.y + row * args.ldy + column;
  for (int m = 0; m < rows; m++, y += args.ldy, gate += stride, up += stride) {
    V::store(y, V::mul(activate<V>(Activation::kSilu, V::load(gate)), V::load(up)));
    V::store(y + V::W, V::mul(activate<V>(Activation::kSilu, V::load(gate + V::W)), V::load(up + V::W)));
  }
}

// Calls run(row, rows) for tiles of nearly equal height, at most `tileRows`, that cover [begin, end).
template <class Run>
void forEachRowTile(int tileRows, int begin, int end, Run run) {
  const int count = end - begin;
  const int tiles = (count + tileRows - 1) / tileRows;
  int row = begin;
  for (int t = 0; t < tiles; t++) {
    const int rows = (end - row + (tiles - t) - 1) / (tiles - t);
    run(row, rows);
    row += rows;
  }
}

// Number of rows whose activations stay in the second-level cache while the panels pass by.
inline int rowBlock(int k) {
  const int rows = (192 * 1024) / (k * 4);
  return rows < 24 ? 24 : rows;
}

// What the adapters of a tile's rows need next; see Ahead.
template <class Args>
inline Ahead aheadOf(const Args& args, int row, int rows, int panel, int width, int step, int calls) {
  return args.adapters ? Ahead(args.adapters + row, rows, args.firstPanel + panel, width, step, calls) : Ahead();
}

template <class V, class S>
void gemmOf(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  if (rowEnd <= rowBegin) return;  // a tile of no rows would read some
  constexpr int NR = kPanelWidth<V>;
  const int steps = S::steps(args.k);
  const size_t panelBytes = size_t(steps) * S::kStepBytes;
  const int64_t stride = S::stride(args);
  const char* packed = static_cast<const char*>(args.packed);
  float tile[kMaxTileFloats];
  const auto finish = [&](int row, int rows, int panel, int panels) {
    for (int p = 0; p < panels; p++) finishTile<V>(args, row, rows, panel + p, tile + p * NR, panels * NR);
  };
  const int calls = (steps + kStepsOfCall - 1) / kStepsOfCall;
  int panel = panelBegin;
  if (rowEnd - rowBegin <= S::kWideRows) {
    const int rows = rowEnd - rowBegin;
    int wide;
    const auto wideSums = wideSumsFor<V, S>(rows, wide);
    for (; panel + wide <= panelEnd; panel += wide) {
      Ahead ahead = aheadOf(args, rowBegin, rows, panel, wide, wide, calls);
      wideSums(S::row(args, rowBegin), stride, packed + panel * panelBytes, steps, tile, &ahead);
      finish(rowBegin, rows, panel, wide);
    }
  }
  const int block = rowBlock(args.k);
  for (int first = rowBegin; first < rowEnd; first += block) {
    const int last = rowEnd - first < block ? rowEnd : first + block;
    for (int p = panel; p < panelEnd; p++)
      forEachRowTile(V::kTileRows, first, last, [&](int row, int rows) {
        Ahead ahead = aheadOf(args, row, rows, p, 1, 1, calls);
        sumsFor<V, S>(rows)(S::row(args, row), stride, packed + p * panelBytes, steps, tile, &ahead);
        finish(row, rows, p, 1);
      });
  }
}

template <class V, class S>
void gatedGemmOf(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int steps = S::steps(args.k);
  const size_t panelBytes = size_t(steps) * S::kStepBytes;
  const int64_t stride = S::stride(args);
  const char* packed = static_cast<const char*>(args.packed);
  float tile[2 * kMaxTileFloats];
  const int calls = (steps + kStepsOfCall - 1) / kStepsOfCall;
  const int block = rowBlock(args.k);
  for (int first = rowBegin; first < rowEnd; first += block) {
    const int last = rowEnd - first < block ? rowEnd : first + block;
    for (int panel = panelBegin; panel < panelEnd; panel++) {
      const char* gatePanel = packed + size_t(2) * panel * panelBytes;
      forEachRowTile(V::kTileRows, first, last, [&](int row, int rows) {
        const auto* x = S::row(args, row);
        Ahead ahead = aheadOf(args, row, rows, 2 * panel, 2, 2, calls);
        if (rows <= S::kWideRows) {
          sumsOfTwo<V, S>(rows)(x, stride, gatePanel, steps, tile, &ahead);
          return finishGatedTile<V>(args, row, rows, panel, tile, tile + NR, 2 * NR);
        }
        float* up = tile + rows * NR;
        sumsFor<V, S>(rows)(x, stride, gatePanel, steps, tile, &ahead);
        sumsFor<V, S>(rows)(x, stride, gatePanel + panelBytes, steps, up, &ahead);
        finishGatedTile<V>(args, row, rows, panel, tile, up, NR);
      });
    }
  }
}

}  // namespace
}  // namespace skein

// Packed GEMM: activations [rows, k] in f32 times packed weights.
//
// A panel holds NR = 2 W outputs, k-major:
//
//   f32   k=0: w[0][0] w[1][0] .. w[NR-1][0]   k=1: w[0][1] ..              NR floats a step of k
//   bf16  k=0: (w[0] w[W]) (w[1] w[W+1]) ..    words of two, so that a shift and a mask make two vectors
//
// A tile is M rows x P panels: M x P x 2 accumulators in registers, each one chain of fma over ascending k. Few rows take
// several panels side by side, so that there are always enough independent chains to fill the fma units; the chain of
// one output is the same in every tile.
#pragma once
#include "kernels/math.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

template <class V>
constexpr int kPanelWidth = 2 * V::W;

inline int panelsOf(int n, int width) { return (n + width - 1) / width; }

template <class V, DType D>
[[gnu::always_inline]] inline void loadPanelStep(const void* panel, int64_t step, typename V::F& low, typename V::F& high) {
  if constexpr (D == DType::kF32) {
    const float* p = static_cast<const float*>(panel) + step * kPanelWidth<V>;
    low = V::load(p);
    high = V::load(p + V::W);
  } else {
    V::loadBf16Pair(static_cast<const uint16_t*>(panel) + step * kPanelWidth<V>, low, high);
  }
}

// tile[m * P * NR + p * NR ..] = sums over k of M rows and P adjacent panels. No bias, no activation.
template <class V, DType D, int M, int P>
void sums(const float* x, int64_t ldx, const void* panels, int k, float* tile) {
  using F = typename V::F;
  constexpr int NR = kPanelWidth<V>;
  constexpr size_t kElement = D == DType::kF32 ? 4 : 2;
  // Bytes ahead of a step of k that its panel is called for: measured for each.
  constexpr size_t kAhead = D == DType::kF32 ? 1024 : 2048;
  F acc[M][P][2];
SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++)
SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) acc[m][p][0] = acc[m][p][1] = V::set1(0.0f);

  const char* panel[P];
SKEIN_UNROLL(8)
  for (int p = 0; p < P; p++) panel[p] = static_cast<const char*>(panels) + size_t(p) * k * NR * kElement;

  for (int kk = 0; kk < k; kk++) {
SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) {
      F low, high;
      loadPanelStep<V, D>(panel[p], kk, low, high);
      __builtin_prefetch(panel[p] + size_t(kk) * NR * kElement + kAhead);
SKEIN_UNROLL(16)
      for (int m = 0; m < M; m++) {
        const F a = V::set1(x[m * ldx + kk]);
        acc[m][p][0] = V::fma(a, low, acc[m][p][0]);
        acc[m][p][1] = V::fma(a, high, acc[m][p][1]);
      }
    }
  }
SKEIN_UNROLL(16)
  for (int m = 0; m < M; m++)
SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) {
      V::store(tile + (m * P + p) * NR, acc[m][p][0]);
      V::store(tile + (m * P + p) * NR + V::W, acc[m][p][1]);
    }
}

template <class V>
using SumsFn = void (*)(const float*, int64_t, const void*, int, float*);

// The tile function for `rows` rows and P panels; a table, so that the instantiations are listed once.
template <class V, DType D, int P>
SumsFn<V> sumsFor(int rows) {
  static constexpr SumsFn<V> table[] = {
      nullptr,         sums<V, D, 1, P>, sums<V, D, 2, P>,  sums<V, D, 3, P>,  sums<V, D, 4, P>,
      sums<V, D, 5, P>, sums<V, D, 6, P>, sums<V, D, 7, P>,  sums<V, D, 8, P>,  sums<V, D, 9, P>,
      sums<V, D, 10, P>, sums<V, D, 11, P>, sums<V, D, 12, P>};
  static_assert(V::kTileRows <= 12);
  return table[rows];
}

// Rows up to which a tile takes several panels. Three rows of two bf16 panels would not fit into the registers.
template <DType D>
constexpr int kWideRows = D == DType::kF32 ? 3 : 2;

// Panels side by side for a tile of few rows: about as many accumulators as the tallest tile has.
template <class V, DType D>
SumsFn<V> wideSumsFor(int rows, int& panels) {
  panels = rows == 1 ? 4 : 2;
  if (rows == 1) return sums<V, D, 1, 4>;
  return rows == 2 ? sums<V, D, 2, 2> : sums<V, D, 3, 2>;
}
constexpr int kMaxTileFloats = 12 * 32;  // rows x panel width of the tallest tile; wide tiles are smaller

// y = activation(sum + bias) + residual for `count` columns from `column` on of one row.
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

// The same for `rows` rows of one panel, whose sums lie `stride` apart. What nearly every product has needs no choices
// inside the loop; they would cost a seventh of a short product.
template <class V>
inline void finishTile(const GemmArgs& args, int64_t row, int rows, int panel, const float* sums, int stride) {
  constexpr int NR = kPanelWidth<V>;
  const int column = panel * NR;
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

// y = activation(gate + bias) * (up + bias)
template <class V>
[[gnu::noinline]] void finishGated(const GatedGemmArgs& args, int64_t row, int column, int count, const float* gate, const float* up) {
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
inline void finishGatedTile(const GatedGemmArgs& args, int64_t row, int rows, int panel, const float* gate, const float* up,
                            int stride) {
  constexpr int NR = kPanelWidth<V>;
  const int column = panel * NR;
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

// Calls run(row, rows) for tiles of nearly equal height that cover [begin, end).
template <class V, class Run>
void forEachRowTile(int begin, int end, Run run) {
  const int count = end - begin;
  const int tiles = (count + V::kTileRows - 1) / V::kTileRows;
  int row = begin;
  for (int t = 0; t < tiles; t++) {
    const int rows = (end - row + (tiles - t) - 1) / (tiles - t);
    run(row, rows);
    row += rows;
  }
}

// Rows whose activations stay in the second-level cache while the panels pass by.
inline int rowBlock(int k) {
  const int rows = (192 * 1024) / (k * 4);
  return rows < 24 ? 24 : rows;
}

template <class V, DType D>
void gemmOf(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const size_t panelBytes = size_t(args.k) * NR * bytesOf(D);
  const char* packed = static_cast<const char*>(args.packed);
  float tile[kMaxTileFloats];
  const auto finish = [&](int row, int rows, int panel, int panels) {
    for (int p = 0; p < panels; p++) finishTile<V>(args, row, rows, panel + p, tile + p * NR, panels * NR);
  };
  int panel = panelBegin;
  if (rowEnd - rowBegin <= kWideRows<D>) {
    const int rows = rowEnd - rowBegin;
    int wide;
    const auto wideSums = wideSumsFor<V, D>(rows, wide);
    for (; panel + wide <= panelEnd; panel += wide) {
      wideSums(args.x + rowBegin * args.ldx, args.ldx, packed + panel * panelBytes, args.k, tile);
      finish(rowBegin, rows, panel, wide);
    }
  }
  const int block = rowBlock(args.k);
  for (int first = rowBegin; first < rowEnd; first += block) {
    const int last = rowEnd - first < block ? rowEnd : first + block;
    for (int p = panel; p < panelEnd; p++)
      forEachRowTile<V>(first, last, [&](int row, int rows) {
        sumsFor<V, D, 1>(rows)(args.x + row * args.ldx, args.ldx, packed + p * panelBytes, args.k, tile);
        finish(row, rows, p, 1);
      });
  }
}

template <class V, DType D>
void gatedGemmOf(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const size_t panelBytes = size_t(args.k) * NR * bytesOf(D);
  const char* packed = static_cast<const char*>(args.packed);
  float tile[2 * kMaxTileFloats];
  const int block = rowBlock(args.k);
  for (int first = rowBegin; first < rowEnd; first += block) {
    const int last = rowEnd - first < block ? rowEnd : first + block;
    for (int panel = panelBegin; panel < panelEnd; panel++) {
      const char* gatePanel = packed + size_t(2) * panel * panelBytes;
      forEachRowTile<V>(first, last, [&](int row, int rows) {
        const float* x = args.x + row * args.ldx;
        if (rows <= kWideRows<D>) {
          sumsFor<V, D, 2>(rows)(x, args.ldx, gatePanel, args.k, tile);
          return finishGatedTile<V>(args, row, rows, panel, tile, tile + NR, 2 * NR);
        }
        float* up = tile + rows * NR;
        sumsFor<V, D, 1>(rows)(x, args.ldx, gatePanel, args.k, tile);
        sumsFor<V, D, 1>(rows)(x, args.ldx, gatePanel + panelBytes, args.k, up);
        finishGatedTile<V>(args, row, rows, panel, tile, up, NR);
      });
    }
  }
}

}  // namespace
}  // namespace skein

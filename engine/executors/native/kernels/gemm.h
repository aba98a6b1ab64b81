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
  // Most rows of a tile of two panels: as many as fit into the registers.
  static constexpr int kWideRows = V::W == 16 ? 6 : D == DType::kF32 ? 3 : 2;
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

// Rows of a tile whose operands are addressed from one pointer. A pointer for each of twelve rows is more than x86 has registers: the
// compiler kept some of them in vectors, and moved them back in every step.
#if defined(__x86_64__) && !defined(SKEIN_EMULATED)
constexpr int kRowsOfPointer = 3;
#else
constexpr int kRowsOfPointer = 1;
#endif

// The pointers to the rows of a tile, at one step.
template <class Input, int M>
struct RowPointers {
  static constexpr int kCount = (M + kRowsOfPointer - 1) / kRowsOfPointer;
  const Input* first[kCount];
  int64_t ldx;

  RowPointers(const Input* x, int64_t stride) : ldx(stride) {
    SKEIN_UNROLL(16)
    for (int i = 0; i < kCount; i++) first[i] = x + int64_t(i) * kRowsOfPointer * ldx;
  }
  [[gnu::always_inline]] const Input* of(int m) const { return first[m / kRowsOfPointer] + m % kRowsOfPointer * ldx; }
  [[gnu::always_inline]] void next() {
    SKEIN_UNROLL(16)
    for (int i = 0; i < kCount; i++) {
      first[i]++;
      if constexpr (kRowsOfPointer > 1) asm("" : "+r"(first[i]));  // the compiler would make pointers of its own
    }
  }
};

// What a tile calls into the second-level cache while it computes, `bytes` in each step: a share of the panels that follow. While many
// rows pass over panels that are there, memory would have nothing to do.
struct Following {
  const char* at;
  int64_t bytes;
};

// Lines that a step of a tile asks for of what follows. One row takes panels as fast as memory gives them.
template <class S, int M>
constexpr int kFollowingLines = kRowsOfPointer > 1 && M > 1 ? (S::kStepBytes + 63) / 64 : 0;

// Computes tile[m * P * NR + p * NR ..]: sums over `steps` steps of M rows and P adjacent panels. No bias, no
// activation.
template <class V, class S, int M, int P>
void sums(const typename S::Input* x, int64_t ldx, const char* panels, int steps, float* tile, Ahead* ahead,
          Following following) {
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

  RowPointers<typename S::Input, M> rows(x, ldx);
  for (int s = 0; s < steps; s++, rows.next(), following.at += following.bytes) {
    if (s % kStepsOfCall == 0) ahead->some();
    SKEIN_UNROLL(2)
    for (int i = 0; i < kFollowingLines<S, M>; i++) __builtin_prefetch(following.at + 64 * i, 0, 2);
    typename S::Operand weights[P][2];
    SKEIN_UNROLL(8)
    for (int p = 0; p < P; p++) {
      const char* step = panel[p] + size_t(s) * S::kStepBytes;
      S::load(step, weights[p][0], weights[p][1]);
      __builtin_prefetch(step + S::kAhead);
      if constexpr (S::kStepBytes > 64) __builtin_prefetch(step + S::kAhead + 64);
    }
    SKEIN_UNROLL(16)
    for (int m = 0; m < M; m++) {
      const typename S::Operand a = S::broadcast(rows.of(m));
      SKEIN_UNROLL(8)
      for (int p = 0; p < P; p++) {
        acc[m][p][0] = S::add(acc[m][p][0], a, weights[p][0]);
        acc[m][p][1] = S::add(acc[m][p][1], a, weights[p][1]);
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
using SumsFn = void (*)(const typename S::Input*, int64_t, const char*, int, float*, Ahead*, Following);

// Returns the function of a tile of `rows` rows and one panel.
template <class V, class S>
SumsFn<S> sumsOfOne(int rows) {
  static constexpr auto kTiles =
      tilesOf<SumsFn<S>, 1, V::kTileRows>([]<int M>(TileRows<M>) -> SumsFn<S> { return sums<V, S, M, 1>; });
  static_assert(V::kTileRows <= 12);
  return kTiles.of[rows];
}

// The same for at most S::kWideRows rows and two panels side by side.
template <class V, class S>
SumsFn<S> sumsOfTwo(int rows) {
  static constexpr auto kTiles =
      tilesOf<SumsFn<S>, 1, S::kWideRows>([]<int M>(TileRows<M>) -> SumsFn<S> { return sums<V, S, M, 2>; });
  return kTiles.of[rows];
}

constexpr int kMaxTileFloats = 12 * 32;  // rows x panel width of the tallest tile; wide tiles are no larger

// How `count` rows are cut into tiles. Few rows take several panels side by side. With 16 lanes, more rows than the tallest tile has do so
// too: half as many rows at once, which may all lie in the same lines of the first-level cache.
struct TileShape {
  int rows, panels;
};
template <class V, class S>
constexpr TileShape tileShape(int count) {
  constexpr bool kWideForMany = V::W == 16 && 2 * S::kWideRows >= V::kTileRows;
  if (count == 1) return {1, 4};
  if (count <= S::kWideRows || (kWideForMany && count > V::kTileRows)) return {S::kWideRows, 2};
  return {V::kTileRows, 1};
}

template <class V, class S>
SumsFn<S> sumsFor(int rows, int panels) {
  return panels == 4 ? sums<V, S, 1, 4> : panels == 2 ? sumsOfTwo<V, S>(rows) : sumsOfOne<V, S>(rows);
}

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

// Does the same for `rows` rows of a whole panel, whose sums lie `stride` apart. Without choices inside the loop, which would cost a
// seventh of a short product.
template <class V, Activation A>
void finishWhole(const GemmArgs& args, int64_t row, int rows, int column, const float* sums, int stride) {
  using F = typename V::F;
  const F none = V::set1(0.0f);
  const F low = args.bias ? V::load(args.bias + column) : none,
          high = args.bias ? V::load(args.bias + column + V::W) : none;
  float* y = args.y + row * args.ldy + column;
  const float* residual = args.residual ? args.residual + row * args.ldr + column : nullptr;
  for (int m = 0; m < rows; m++, y += args.ldy, sums += stride) {
    F a = V::load(sums), b = V::load(sums + V::W);
    if (args.bias) a = V::add(a, low), b = V::add(b, high);
    a = activate<V>(A, a), b = activate<V>(A, b);
    if (residual) {
      a = V::add(a, V::load(residual)), b = V::add(b, V::load(residual + V::W));
      residual += args.ldr;
    }
    V::store(y, a);
    V::store(y + V::W, b);
  }
}

// Finishes `rows` rows of one panel.
template <class V>
inline void finishTile(const GemmArgs& args, int64_t row, int rows, int panel, float* sums, int stride) {
  constexpr int NR = kPanelWidth<V>;
  const int column = panel * NR;
  if (args.adapters) addAdapters<V>(args.adapters + row, rows, args.firstPanel + panel, sums, stride);
  const int count = args.n - column < NR ? args.n - column : NR;
  if (count == NR && args.activation == Activation::kNone)
    return finishWhole<V, Activation::kNone>(args, row, rows, column, sums, stride);
  if (count == NR && args.activation == Activation::kGelu)
    return finishWhole<V, Activation::kGelu>(args, row, rows, column, sums, stride);
  for (int m = 0; m < rows; m++) finishColumns<V>(args, row + m, column, count, sums + m * stride);
}

// Calls for what finishTile reads and writes, before the tile is computed.
template <class V>
inline void prefetchOutputs(const GemmArgs& args, int64_t row, int rows, int column) {
  const auto prefetch = [&](const float* first, int64_t ld) {
    for (int m = 0; m < rows; m++)
      for (int i = 0; i < kPanelWidth<V>; i += 16) __builtin_prefetch(first + (row + m) * ld + column + i);
  };
  if (args.residual) prefetch(args.residual, args.ldr);
  if (args.y != args.residual) prefetch(args.y, args.ldy);
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

// Calls run(first, last) for blocks of [begin, end), nearly equal, of rows whose activations stay in the second-level cache while the
// panels pass by.
template <class Run>
void forEachRowBlock(int k, int begin, int end, Run run) {
  const int fitting = (192 * 1024) / (k * 4), most = fitting < 24 ? 24 : fitting;
  forEachRowTile(most, begin, end, [&](int row, int rows) { run(row, row + rows); });
}

// What the adapters of a tile's rows need next; see Ahead.
template <class Args>
inline Ahead aheadOf(const Args& args, int row, int rows, int panel, int width, int step, int calls) {
  return args.adapters ? Ahead(args.adapters + row, rows, args.firstPanel + panel, width, step, calls) : Ahead();
}

// What the tile of the rows [row, row + rows) of [first, last) calls for while it takes `bytes` of panels in steps: its share of as many bytes
// after them, or nothing new where a few rows take several panels at the rate of memory.
inline Following followingOf(const char* panels, size_t bytes, int steps, int wide, int row, int rows, int first,
                             int last) {
  const int count = last - first;
  if (rows == count && wide > 1) return {panels, int64_t(bytes) / steps};
  return {panels + bytes + bytes * size_t(row - first) / size_t(count),
          int64_t(bytes) * rows / (int64_t(count) * steps)};
}

template <class V, class S>
void gemmOf(const GemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int steps = S::steps(args.k);
  const size_t panelBytes = size_t(steps) * S::kStepBytes;
  const int64_t stride = S::stride(args);
  const char* packed = static_cast<const char*>(args.packed);
  const int calls = (steps + kStepsOfCall - 1) / kStepsOfCall;
  const TileShape shape = tileShape<V, S>(rowEnd - rowBegin);
  float tile[kMaxTileFloats];
  forEachRowBlock(args.k, rowBegin, rowEnd, [&](int first, int last) {
    for (int panel = panelBegin, wide; panel < panelEnd; panel += wide) {
      wide = panel + shape.panels <= panelEnd ? shape.panels : 1;
      forEachRowTile(wide == 1 ? V::kTileRows : shape.rows, first, last, [&](int row, int rows) {
        Ahead ahead = aheadOf(args, row, rows, panel, wide, wide, calls);
        if (rows > 1) prefetchOutputs<V>(args, row, rows, panel * NR);
        const char* panels = packed + panel * panelBytes;
        const Following following = followingOf(panels, wide * panelBytes, steps, wide, row, rows, first, last);
        sumsFor<V, S>(rows, wide)(S::row(args, row), stride, panels, steps, tile, &ahead, following);
        for (int p = 0; p < wide; p++) finishTile<V>(args, row, rows, panel + p, tile + p * NR, wide * NR);
      });
    }
  });
}

template <class V, class S>
void gatedGemmOf(const GatedGemmArgs& args, int rowBegin, int rowEnd, int panelBegin, int panelEnd) {
  constexpr int NR = kPanelWidth<V>;
  const int steps = S::steps(args.k);
  const size_t panelBytes = size_t(steps) * S::kStepBytes;
  const int64_t stride = S::stride(args);
  const char* packed = static_cast<const char*>(args.packed);
  const int calls = (steps + kStepsOfCall - 1) / kStepsOfCall;
  const TileShape shape = tileShape<V, S>(rowEnd - rowBegin);
  float tile[2 * kMaxTileFloats];
  forEachRowBlock(args.k, rowBegin, rowEnd, [&](int first, int last) {
    for (int panel = panelBegin; panel < panelEnd; panel++) {
      const char* gatePanel = packed + size_t(2) * panel * panelBytes;
      forEachRowTile(shape.rows, first, last, [&](int row, int rows) {
        const auto* x = S::row(args, row);
        Ahead ahead = aheadOf(args, row, rows, 2 * panel, 2, 2, calls);
        const Following following = followingOf(gatePanel, 2 * panelBytes, steps, 2, row, rows, first, last);
        if (shape.panels > 1) {
          sumsOfTwo<V, S>(rows)(x, stride, gatePanel, steps, tile, &ahead, following);
          return finishGatedTile<V>(args, row, rows, panel, tile, tile + NR, 2 * NR);
        }
        float* up = tile + rows * NR;
        sumsOfOne<V, S>(rows)(x, stride, gatePanel, steps, tile, &ahead, following);
        sumsOfOne<V, S>(rows)(x, stride, gatePanel + panelBytes, steps, up, &ahead, following);
        finishGatedTile<V>(args, row, rows, panel, tile, up, NR);
      });
    }
  });
}

}  // namespace
}  // namespace skein

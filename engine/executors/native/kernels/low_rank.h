// The two products of a low-rank change, for rows whose adapters differ:
//
//   t = A x  [rank]                    lowerRows: rows anywhere in memory, all of one adapter
//   y += B t                           addAdapters: onto the sums of a tile, where the product itself has just left them
//
// Both are products in f32 of x as it is. A chain is the same in every tile, so a row's bits depend on the row and its adapter alone.
//
// A panel of A holds NR = 2 W outputs, step by step; outputs of which a vector has room are a narrow panel of two k a step:
//
//   wide     step s: low  A[0 .. W-1][s]   high  A[W .. NR-1][s]      the chain of an output is one
//   narrow   step s: low  A[0 .. W-1][2s]  high  A[0 .. W-1][2s+1]    two, of even and of odd k, that are added at last
//
// B lies in blocks, each with the rows of one part in one panel of the product's weight:
//
//   panel p of the weight   | q q q q q k k k |     two blocks:   [rank of q][NR], [rank of k][NR], zeros where the part has no row
//
// Of 16 bits, bf16 has the low and the high number of a lane in one word.
#pragma once
#include <type_traits>

#include "kernels/half.h"
#include "kernels/math.h"
#include "kernels/unroll.h"

namespace skein {
namespace {

// Numbers of one form: a step is two vectors.
template <class V, AdapterType T>
struct LowRankSteps {
  static constexpr int kBytes = 2 * V::W * (T == AdapterType::kF32 ? 4 : 2);
  static constexpr int kAhead = T == AdapterType::kF32 ? 2048 : 1024;
  [[gnu::always_inline]] static void load(const char* p, typename V::F& low, typename V::F& high) {
    if constexpr (T == AdapterType::kF32) {
      low = V::load(reinterpret_cast<const float*>(p));
      high = V::load(reinterpret_cast<const float*>(p) + V::W);
    } else if constexpr (T == AdapterType::kBf16) {
      V::loadBf16Pair(reinterpret_cast<const uint16_t*>(p), low, high);
    } else {
      low = V::loadHalf(reinterpret_cast<const uint8_t*>(p));
      high = V::loadHalf(reinterpret_cast<const uint8_t*>(p) + 2 * V::W);
    }
  }
  [[gnu::always_inline]] static void prefetch(const char* p) {
    for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i);
  }
};

// Rows of the tallest tile: 8 x 2 or 4 x 2 accumulators.
template <class V>
constexpr int kLowRankRows = V::W == 16 ? 8 : 4;

// Calls run(first, M) for tiles of M = 8, 4, 2 and 1 rows that cover [0, rows).
template <class V, class Run>
[[gnu::always_inline]] inline void forEachLowRankTile(int rows, Run run) {
  int row = 0;
  if constexpr (kLowRankRows<V> == 8)
    for (; row + 8 <= rows; row += 8) run(row, std::integral_constant<int, 8>());
  for (; row + 4 <= rows; row += 4) run(row, std::integral_constant<int, 4>());
  for (; row + 2 <= rows; row += 2) run(row, std::integral_constant<int, 2>());
  if (row < rows) run(row, std::integral_constant<int, 1>());
}

template <class V, AdapterType T, int M, bool kNarrow>
[[gnu::noinline]] void lowerTile(const float* const* x, const char* panel, int k, float* const* t, int column) {
  using S = LowRankSteps<V, T>;
  typename V::F acc[M][2], low, high;
  SKEIN_UNROLL(8)
  for (int m = 0; m < M; m++) acc[m][0] = acc[m][1] = V::set1(0.0f);
  const int steps = kNarrow ? k / 2 : k;
  for (int s = 0; s < steps; s++) {
    S::load(panel + size_t(s) * S::kBytes, low, high);
    S::prefetch(panel + size_t(s) * S::kBytes + S::kAhead);
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) {
      const auto first = V::set1(x[m][kNarrow ? 2 * s : s]);
      const auto second = kNarrow ? V::set1(x[m][2 * s + 1]) : first;
      acc[m][0] = V::fma(first, low, acc[m][0]);
      acc[m][1] = V::fma(second, high, acc[m][1]);
    }
  }
  if (kNarrow && k % 2 != 0) {
    S::load(panel + size_t(steps) * S::kBytes, low, high);
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) acc[m][0] = V::fma(V::set1(x[m][k - 1]), low, acc[m][0]);
  }
  SKEIN_UNROLL(8)
  for (int m = 0; m < M; m++) {
    if constexpr (kNarrow) {
      V::store(t[m] + column, V::add(acc[m][0], acc[m][1]));
    } else {
      V::store(t[m] + column, acc[m][0]);
      V::store(t[m] + column + V::W, acc[m][1]);
    }
  }
}

inline int lowRankSteps(bool narrow, int k) { return narrow ? (k + 1) / 2 : k; }

template <class V, AdapterType T>
void lowerRowsOf(const AdapterProduct& product, int k, const float* const* x, float* const* t, int rows) {
  constexpr int NR = 2 * V::W;
  const char* panel = static_cast<const char*>(product.a);
  for (int column = 0; column < product.rank; column += NR) {
    const bool narrow = product.rank - column <= V::W;
    forEachLowRankTile<V>(rows, [&](int row, auto m) {
      if (narrow) lowerTile<V, T, decltype(m)::value, true>(x + row, panel, k, t + row, column);
      else lowerTile<V, T, decltype(m)::value, false>(x + row, panel, k, t + row, column);
    });
    panel += size_t(lowRankSteps(narrow, k)) * LowRankSteps<V, T>::kBytes;
  }
}

template <class V>
void lowerRows(const AdapterProduct& product, int32_t k, const float* const* x, float* const* t, int32_t rows) {
  switch (product.aType) {
    case AdapterType::kF32: return lowerRowsOf<V, AdapterType::kF32>(product, k, x, t, rows);
    case AdapterType::kBf16: return lowerRowsOf<V, AdapterType::kBf16>(product, k, x, t, rows);
    case AdapterType::kF16: return lowerRowsOf<V, AdapterType::kF16>(product, k, x, t, rows);
  }
}

// Memory of adapters, and of weights, that is needed soon. A product calls some() again and again while it computes, so that it streams in
// meanwhile: in one burst, it would wait for all of it.
class Ahead {
 public:
  // None. Not `= default`: Ahead() would then write zeros over all pieces, for each tile.
  Ahead() {}
  // What `count` rows need for packed panels [panel, panel + width) when they stand `step` panels further on, to be fetched in `calls` calls.
  Ahead(const AdapterRow* rows, int count, int panel, int width, int step, int calls) {
    size_t bytes = 0;
    const auto add = [&](const char* from, const char* to) {
      if (from >= to) return;
      pieces_[count_++] = {from, to};
      bytes += size_t(to - from);
    };
    for (int i = 0; i < count; i++) {
      if (!rows[i].leads) continue;
      const AdapterProduct& product = *rows[i].product;
      const auto clamped = [&](int p) { return p < product.panels ? p : product.panels; };
      add(product.panelStart[clamped(panel + step)], product.panelStart[clamped(panel + step + width)]);
      const char* next = product.panelStart[product.panels];
      add(next + product.nextBytes * size_t(panel) / size_t(product.panels),
          next + product.nextBytes * size_t(clamped(panel + width)) / size_t(product.panels));
    }
    linesOfCall_ = int(bytes / 64 / size_t(calls)) + 1;
    if (count_ > 0) at_ = pieces_[0].from;
  }

  // The share of rows [row, row + rows), of `all`, in `bytes` of weights that are needed next, to be fetched in `calls` calls.
  void alsoWeights(const uint8_t* weights, int64_t bytes, int row, int rows, int all, int calls) {
    weights_ = weights + bytes * row / all;
    endOfWeights_ = weights + bytes * (row + rows) / all;
    bytesOfCall_ = ((endOfWeights_ - weights_) / 64 / calls + 1) * 64;
  }

  [[gnu::always_inline]] void some() {
    if (weights_ < endOfWeights_) {
      const uint8_t* const end = weights_ + bytesOfCall_;
      for (; weights_ < end; weights_ += 64) __builtin_prefetch(weights_);
    }
    if (piece_ >= count_) return;
    for (int i = 0; i < linesOfCall_; i++) {
      __builtin_prefetch(at_, 0, 2);
      at_ += 64;
      if (at_ < pieces_[piece_].to) continue;
      if (++piece_ >= count_) return;
      at_ = pieces_[piece_].from;
    }
  }

 private:
  struct Piece {
    const char *from, *to;
  };
  const uint8_t *weights_ = nullptr, *endOfWeights_ = nullptr;
  int64_t bytesOfCall_ = 0;
  const char* at_ = nullptr;
  int piece_ = 0, count_ = 0, linesOfCall_ = 0;
  Piece pieces_[32];  // two for each row of a tile, the tallest has 16
};

// Adds lanes [begin, end) to those of a sum. The others belong to other parts: infinity times their zeros would be NaN.
[[gnu::noinline]] inline void addPart(const float* lanes, int begin, int end, float* sum) {
  for (int i = begin; i < end; i++) sum[i] += lanes[i];
}

// Adds to the sums of M rows, `stride` apart, what a block of B gives.
template <class V, AdapterType T, int M>
[[gnu::noinline]] void raiseTile(const AdapterRow* rows, const AdapterBlock& block, float* sums, int stride) {
  using S = LowRankSteps<V, T>;
  const char* weights = static_cast<const char*>(block.weights);
  typename V::F acc[M][2], low, high;
  const float* t[M];
  SKEIN_UNROLL(8)
  for (int m = 0; m < M; m++) {
    acc[m][0] = acc[m][1] = V::set1(0.0f);
    t[m] = rows[m].t + block.first;
  }
  for (int j = 0; j < block.rank; j++) {
    S::load(weights + size_t(j) * S::kBytes, low, high);
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) {
      const auto a = V::set1(t[m][j]);
      acc[m][0] = V::fma(a, low, acc[m][0]);
      acc[m][1] = V::fma(a, high, acc[m][1]);
    }
  }
  const bool whole = block.begin == 0 && block.end == 2 * V::W;
  SKEIN_UNROLL(8)
  for (int m = 0; m < M; m++) {
    float* to = sums + m * stride;
    if (whole) {
      V::store(to, V::add(V::load(to), acc[m][0]));
      V::store(to + V::W, V::add(V::load(to + V::W), acc[m][1]));
      continue;
    }
    float lanes[2 * V::W];
    V::store(lanes, acc[m][0]);
    V::store(lanes + V::W, acc[m][1]);
    addPart(lanes, block.begin, block.end, to);
  }
}

// Adds what adapters give to the sums of `count` rows and one panel; rows next to each other that have one adapter share its numbers.
template <class V>
[[gnu::noinline]] void addAdapters(const AdapterRow* rows, int count, int panel, float* sums, int stride) {
  for (int row = 0, end; row < count; row = end) {
    const AdapterProduct* product = rows[row].product;
    for (end = row + 1; end < count && rows[end].product == product;) end++;
    if (!product) continue;
    for (int b = product->firstBlock[panel]; b < product->firstBlock[panel + 1]; b++) {
      const AdapterBlock& block = product->blocks[b];
      forEachLowRankTile<V>(end - row, [&](int first, auto m) {
        constexpr int M = decltype(m)::value;
        const AdapterRow* from = rows + row + first;
        float* to = sums + (row + first) * stride;
        switch (product->bType) {
          case AdapterType::kF32: return raiseTile<V, AdapterType::kF32, M>(from, block, to, stride);
          case AdapterType::kBf16: return raiseTile<V, AdapterType::kBf16, M>(from, block, to, stride);
          case AdapterType::kF16: return raiseTile<V, AdapterType::kF16, M>(from, block, to, stride);
        }
      });
    }
  }
}

// Writes number x into a lane of the low or the high vector of a step.
template <class V>
inline void putLowRank(AdapterType type, char* step, int lane, bool high, float x) {
  if (type == AdapterType::kF32) {
    reinterpret_cast<float*>(step)[(high ? V::W : 0) + lane] = x;
  } else if (type == AdapterType::kBf16) {
    reinterpret_cast<uint16_t*>(step)[2 * lane + high] = toBf16(x);
  } else {
    reinterpret_cast<uint16_t*>(step)[(high ? V::W : 0) + lane] = toHalf(x);
  }
}

template <class V>
inline size_t lowRankStepBytes(AdapterType type) {
  return 2 * V::W * (type == AdapterType::kF32 ? 4 : 2);
}

template <class V>
size_t loweringBytes(AdapterType type, int32_t rank, int32_t k) {
  size_t steps = 0;
  for (int column = 0; column < rank; column += 2 * V::W) steps += size_t(lowRankSteps(rank - column <= V::W, k));
  return steps * lowRankStepBytes<V>(type);
}

// Into zeroed memory.
template <class V>
void packLowering(AdapterType type, const float* const* a, int32_t rank, int32_t k, void* packed) {
  char* panel = static_cast<char*>(packed);
  const size_t bytes = lowRankStepBytes<V>(type);
  for (int column = 0; column < rank; column += 2 * V::W) {
    const bool narrow = rank - column <= V::W;
    for (int j = 0; j < 2 * V::W && column + j < rank; j++) {
      const float* row = a[column + j];
      for (int i = 0; i < k; i++) {
        if (narrow) putLowRank<V>(type, panel + size_t(i / 2) * bytes, j, i % 2 != 0, row[i]);
        else putLowRank<V>(type, panel + size_t(i) * bytes, j % V::W, j >= V::W, row[i]);
      }
    }
    panel += size_t(lowRankSteps(narrow, k)) * bytes;
  }
}

template <class V>
size_t blockBytesOf(AdapterType type, int32_t rank) {
  return size_t(rank) * lowRankStepBytes<V>(type);
}

template <class V>
void packBlock(AdapterType type, const float* b, int32_t rank, int32_t begin, int32_t end, void* packed) {
  for (int i = begin; i < end; i++) {
    for (int j = 0; j < rank; j++) {
      char* step = static_cast<char*>(packed) + size_t(j) * lowRankStepBytes<V>(type);
      putLowRank<V>(type, step, i % V::W, i >= V::W, b[int64_t(i - begin) * rank + j]);
    }
  }
}

}  // namespace
}  // namespace skein

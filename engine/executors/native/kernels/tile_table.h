// Tables whose products of bf16 and quantised weights, and whose attention over a bf16 cache, are those of tiles; all else is another
// table's, which has vectors as wide as V's.
#pragma once
#include "kernels/attention_by_tiles.h"
#include "kernels/bf16_packing.h"
#include "kernels/tile_products.h"

namespace skein {
namespace {

// Base: a function that returns the table of the rest. T: the tiles.
template <class V, class T, auto Base>
struct TileKernels {
  static size_t roundedBytes(DType dtype, int32_t rows, int32_t k) {
    return dtype == DType::kF32 ? 0 : TiledRows::bytes(rows, k);
  }
  static void roundRow(DType dtype, const float* x, int32_t k, int32_t row, int32_t rows, void* rounded) {
    if (dtype != DType::kF32) roundTiledRow<V>(x, k, row, rows, rounded);
  }
  static void gemm(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd) {
    const auto run = args.dtype == DType::kF32 ? Base().gemm : tileGemm<V, T, false>;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void gatedGemm(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin,
                        int32_t panelEnd) {
    const auto run = args.dtype == DType::kF32 ? Base().gatedGemm : tileGatedGemm<V, T, false>;
    run(args, rowBegin, rowEnd, panelBegin, panelEnd);
  }
  static void attentionSplit(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                             float* scratch, float* partial) {
    const auto run = args.kv->dtype == DType::kBf16 ? attentionSplitByTiles<V, T> : Base().attentionSplit;
    run(args, kvHead, rowBegin, rowEnd, split, scratch, partial);
  }
  static size_t attentionScratchFloats(int32_t headDim, int32_t pairs) {
    return tileAttentionScratchFloats(headDim, pairs, Base());
  }
};

template <class V, class T, auto Base>
KernelTable withTiles(const char* name) {
  using Kernels = TileKernels<V, T, Base>;
  KernelTable table = Bf16Packing<V, Base>::table();
  table.name = name;
  table.tileRows = kMostTileRows;
  table.roundedBytes = Kernels::roundedBytes;
  table.roundRow = Kernels::roundRow;
  table.gemm = Kernels::gemm;
  table.gatedGemm = Kernels::gatedGemm;
  table.storedGemm = tileGemm<V, T, true>;
  table.storedGatedGemm = tileGatedGemm<V, T, true>;
  table.attentionSplit = Kernels::attentionSplit;
  table.attentionScratchFloats = Kernels::attentionScratchFloats;
  table.attentionStep = kTileStep;
  return table;
}

}  // namespace
}  // namespace skein

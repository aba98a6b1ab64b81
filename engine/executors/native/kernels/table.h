// Builds the kernel table of one set of vector traits.
#pragma once
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/pack_stored.h"
#include "kernels/products.h"
#include "kernels/rows.h"
#include "kernels/scan.h"
#include "kernels/states.h"
#include "kernels/stored_products.h"
#include "kernels/vocab.h"
#include "kernels/wide_row.h"

namespace skein {
namespace {

template <class V>
constexpr KernelTable makeTable(const char* name) {
  return KernelTable{
      .name = name,
      .panelWidth = kPanelWidth<V>,
      .tileRows = V::kTileRows,
      .packedBytes = packedBytes<V>,
      .packWeights = packWeights<V>,
      .packedGatedBytes = packedGatedBytes<V>,
      .packGatedWeights = packGatedWeights<V>,
      .roundedBytes = roundedBytes<V>,
      .roundRow = roundRow<V>,
      .gemm = gemm<V>,
      .gatedGemm = gatedGemm<V>,
      .storedGemm = storedGemm<V>,
      .storedGatedGemm = storedGatedGemm<V>,
      .packStored = packStored<V>,
      .lowerRows = lowerRows<V>,
      .loweringBytes = loweringBytes<V>,
      .packLowering = packLowering<V>,
      .blockBytes = blockBytesOf<V>,
      .packBlock = packBlock<V>,
      .rmsNorm = rmsNorm<V>,
      .scaleRow = scaleRow<V>,
      .softCapRow = softCapRow<V>,
      .xieluRow = xieluRow<V>,
      .gateRow = gateRow<V>,
      .shortConvRow = shortConvRow<V>,
      .gatedDelta = gatedDelta<V>,
      .selectiveScan = selectiveScan<V>,
      .layerNorm = layerNorm<V>,
      .meanRows = meanRows<V>,
      .unitRow = unitRow<V>,
      .embeddingRow = embeddingRow<V>,
      .addEmbeddingRow = addEmbeddingRow<V>,
      .ropeAngles = ropeAngles<V>,
      .rope = rope<V>,
      .storeKv = storeKv<V>,
      .attentionSplit = attentionSplit<V>,
      .attentionScratchFloats = attentionScratchFloats<V>,
      .attentionStep = kStepTokens,
      .attentionMerge = attentionMerge<V>,
      .argmax = argmax<V>,
      .sumExp = sumExp<V>,
      .expRow = expRow<V>,
      .chunkExp = chunkExp<V>,
      .chunkExpAbove = chunkExpAbove<V>,
      .indicesFrom = indicesFrom<V>,
      .wideRow = kWideRowKernels,
  };
}

}  // namespace
}  // namespace skein

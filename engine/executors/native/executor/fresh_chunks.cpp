#include "executor/fresh_chunks.h"

#include <algorithm>

namespace skein {

FreshChunks::FreshChunks(const ExecutorConfig& config) : config_(config), window_(config.window()) {
  if (!window_.on()) return;
  // Each chunk has at least two rows, and in the worst case begins and ends inside a block.
  const int32_t chunks = std::min(config.maxNumSequences, config.maxNumTokens / 2);
  maxBlocks_ = config.maxNumTokens / config.tokensPerBlock + 2 * chunks;
  chunks_.reserve(static_cast<size_t>(chunks));
  chunkOf_.resize(static_cast<size_t>(config.maxNumSequences));
  slots_.resize(static_cast<size_t>(config.maxNumTokens));
  keptRows_.reserve(static_cast<size_t>(config.maxNumTokens));
}

void FreshChunks::prepare(const BatchView& batch) {
  if (!window_.on()) return;
  chunks_.clear();
  keptRows_.clear();
  usedBlocks_ = 0;
  for (int32_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    const int64_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    if (writesOverWhatItReads(rows, batch.contextLength[sequence])) add(batch, sequence);
  }
  if (!any()) return;
  std::fill(chunkOf_.begin(), chunkOf_.end(), -1);
  std::fill(slots_.begin(), slots_.end(), -1);
  for (size_t index = 0; index < chunks_.size(); ++index) {
    const FreshChunk& chunk = chunks_[index];
    chunkOf_[static_cast<size_t>(chunk.sequence)] = static_cast<int32_t>(index);
    const int32_t begin = batch.queryStart[chunk.sequence], end = batch.queryStart[chunk.sequence + 1];
    const int32_t length = batch.contextLength[chunk.sequence];
    const int32_t ringTokens = window_.ringBlocks * config_.tokensPerBlock;
    for (int32_t row = begin; row < end; ++row) {
      const int32_t position = length - (end - row), block = position / config_.tokensPerBlock;
      slots_[static_cast<size_t>(row)] =
          (chunk.place + block - chunk.firstBlock) * config_.tokensPerBlock + position % config_.tokensPerBlock;
      if (block < window_.sinkBlocks || position + ringTokens >= length) keptRows_.push_back(row);
    }
  }
}

// True if the step would write over keys that it reads. Its first row looks back at recent - 1 tokens before it; its
// last row takes the slot of the token ringTokens before it.
bool FreshChunks::writesOverWhatItReads(int64_t rows, int64_t length) const {
  const int64_t ringTokens = int64_t(window_.ringBlocks) * config_.tokensPerBlock;
  const int64_t turnsFrom = ringTokens + int64_t(window_.sinkBlocks) * config_.tokensPerBlock;
  return length > turnsFrom && rows > ringTokens - window_.recent + 1;
}

void FreshChunks::add(const BatchView& batch, int32_t sequence) {
  const int32_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
  const int32_t length = batch.contextLength[sequence], first = length - rows;
  const int32_t firstBlock = first / config_.tokensPerBlock, endBlock = (length - 1) / config_.tokensPerBlock + 1;
  chunks_.push_back({sequence, firstBlock, endBlock, usedBlocks_, first % config_.tokensPerBlock != 0});
  usedBlocks_ += endBlock - firstBlock;
}

}  // namespace skein

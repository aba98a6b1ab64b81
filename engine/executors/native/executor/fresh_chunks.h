// Chunks that would write over keys which their own earlier rows still attend to.
//
// With an attention window a sequence's blocks take turns, so a chunk's late tokens take the slots of tokens that its
// early rows see. The keys and values of such a chunk, rounded as in the pool, lie in blocks of the workspace while a
// layer's attention runs. Afterwards those that are still in the window go into the pool:
//
//   tokensPerBlock 4, window 8, chunk 10..21
//
//   positions   | 4 5 6 7 | 8 9 : 10 11 | 12 13 14 15 | 16 17 18 19 | 20 21 . . |
//   read from   | pool    | fresh: 8 9 copied from the pool, then the chunk     |
//   goes to the pool afterwards                 14 15   16 17 18 19   20 21       the ring's 8 slots
//
// Layers run one at a time, so all share the memory. A step that writes over nothing it reads (every generation step,
// every sequence whose blocks do not take turns yet) does not use it.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"

namespace skein {

struct FreshChunk {
  int32_t sequence;
  int32_t firstBlock, endBlock;  // blocks of the sequence
  int32_t place;                 // of the first of these blocks in the workspace, in blocks
  bool beginsInBlock;            // true if the first block holds older tokens too
};

class FreshChunks {
 public:
  // Takes all the memory that prepare() will ever need. Keeps a reference to config.
  explicit FreshChunks(const ExecutorConfig& config);
  void prepare(const BatchView& batch);

  bool any() const { return !chunks_.empty(); }
  const std::vector<FreshChunk>& chunks() const { return chunks_; }
  // The chunk of a sequence of the batch, or null.
  const FreshChunk* of(int64_t sequence) const {
    const int32_t index = any() ? chunkOf_[static_cast<size_t>(sequence)] : -1;
    return index < 0 ? nullptr : &chunks_[static_cast<size_t>(index)];
  }
  // Slot of the workspace for a row's keys and values, or -1. Call only if any().
  int64_t slotOf(int64_t row) const { return slots_[static_cast<size_t>(row)]; }
  // Rows of chunks whose keys and values stay in the window.
  const std::vector<int32_t>& keptRows() const { return keptRows_; }
  // Most blocks of the workspace that chunks take.
  int32_t maxBlocks() const { return maxBlocks_; }

 private:
  bool writesOverWhatItReads(int64_t rows, int64_t length) const;
  void add(const BatchView& batch, int32_t sequence);

  const ExecutorConfig& config_;
  AttentionWindow window_;
  int32_t maxBlocks_ = 0;
  int32_t usedBlocks_ = 0;
  std::vector<FreshChunk> chunks_;
  std::vector<int32_t> chunkOf_;
  std::vector<int32_t> slots_;
  std::vector<int32_t> keptRows_;
};

}  // namespace skein

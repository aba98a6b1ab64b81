// LoRA adapters in slots, and what they add to the products of one batch.
//
//   y = activation(W x + bias + B (A x)) + residual       A [rank x columns], B [rows x rank], of each row's adapter
//
//   batch rows      0 1 2 3 4 | 5 | 6 | 7          sequences: a prompt, three that generate
//   adapter slots       0     | 2 |-1 | 2
//   runs            [0, 5) of 0   [5, 6) of 2   [7, 8) of 2         neighbours of one adapter are one run
//
// A x and B (A x) are products of the same kernels as W x, in f32 of the input as it is: a row's bits depend on nothing but the row
// and its adapter. Rows without an adapter take the path that they take without adapters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/memory.h"
#include "executor/plan.h"
#include "executor/thread_pool.h"
#include "kernels/kernels.h"

namespace skein {

// The change of some rows of one product's weight.
struct AdapterPart {
  int32_t op;        // index into the plan's ops
  int32_t firstRow;  // of the weight, which may stack several matrices
  int32_t rows;
  int32_t rank;
  ArrayView<const float> a;  // [rank x columns]
  ArrayView<const float> b;  // [rows x rank]
};

class Adapters {
 public:
  Adapters(const ExecutorConfig& config, const KernelTable& kernels);

  // Packs an adapter into a slot, in the place of what was there. Throws a sentence for a slot, an op or a shape that does not fit;
  // the slot is then as it was.
  void put(int32_t slot, const std::vector<AdapterPart>& parts);
  void clear(int32_t slot);
  // Throws a sentence if a sequence names a slot that is empty.
  void check(const BatchView& batch) const;

  // Finds the runs of rows with adapters in a batch that has passed check().
  void prepare(const BatchView& batch);
  // What is added to each row of a product, by row: see GemmArgs::deltas. Null if no row's adapter changes this product. Valid until the
  // next call.
  const float* const* deltasOf(int32_t op, const float* input, int64_t rows, ThreadPool& pool);

  // Bytes of the slots' weights, and of the memory for the running product.
  size_t weightBytes() const;
  size_t workspaceBytes() const { return workspace_.size(); }

 private:
  struct Part {
    int32_t op, firstRow, rows, rank, columns;
    size_t a, b;            // offsets of the packed matrices
    bool overlaps = false;  // some part of its op and adapter changes rows of another one
  };
  struct Slot {
    bool used = false;
    std::vector<Part> parts;         // by op, then by first row
    std::vector<int32_t> firstOfOp;  // [ops + 1]
    Mapping memory;
  };
  struct Run {
    int32_t slot;
    int64_t begin, end;
  };
  // Some rows of a run, with one part of their adapter.
  struct Piece {
    const Part* part;
    const uint8_t* memory;
    int64_t begin, end;
    int64_t area;  // of A x
  };

  void checkPart(const AdapterPart& part) const;
  static void markOverlaps(Slot& slot, size_t op);
  // Throws a sentence for a slot that there is not.
  Slot& at(int32_t slot);
  void collect(int32_t op);

  const ExecutorConfig& config_;
  const KernelTable& kernels_;
  int32_t maxWidth_ = 0;  // of the weights' rows that a product of tokens has
  std::vector<Slot> slots_;
  std::vector<Run> runs_;
  std::vector<Piece> pieces_;
  std::vector<const float*> deltas_;  // [maxNumTokens]
  Mapping workspace_;
  float* delta_ = nullptr;    // [maxNumTokens x maxWidth_]
  float* lowered_ = nullptr;  // A x: [areas x maxNumTokens x maxLoraRank]
};

}  // namespace skein

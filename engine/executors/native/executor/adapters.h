// LoRA adapters in slots, and the rows of one batch that have one.
//
//   y = activation(W x + B t + bias) + residual       t = A x,  A [rank x columns], B [rows x rank], of each row's adapter
//
//   batch rows      0 1 2 3 4 | 5 | 6 | 7 | 8      sequences: a prompt, four that generate
//   adapter slots       0     | 2 |-1 | 0 | 2
//   groups          slot 0: 0 1 2 3 4 7            slot 2: 5 8           so A is read once a step for each adapter
//
// t is computed in front of a product, in pieces of a group; B t by the product itself, onto the sums of each of its tiles. All of it is
// in f32 of the input as it is: a row's bits depend on nothing but the row and its adapter. Rows without an adapter take the path
// that they take without adapters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/adapter_slot.h"
#include "executor/batch.h"
#include "executor/memory.h"
#include "executor/plan.h"
#include "executor/thread_pool.h"
#include "kernels/kernels.h"

namespace skein {

class Adapters {
 public:
  Adapters(const ExecutorConfig& config, const KernelTable& kernels);

  // Packs an adapter into a slot, in the place of what was there. Throws a sentence for a slot, an op or a shape that does not fit;
  // the slot is then as it was.
  void put(int32_t slot, const std::vector<AdapterPart>& parts);
  void clear(int32_t slot);
  // Throws a sentence if a sequence names a slot that is empty.
  void check(const BatchView& batch) const;

  // Groups the rows with adapters of a batch that has passed check().
  void prepare(const BatchView& batch);
  // The rows of a batch with what their adapters change in a product, t computed: see GemmArgs::adapters. Null if no row's adapter
  // changes it. Valid until the next call.
  const AdapterRow* rowsOf(int32_t op, const float* input, int64_t rows, ThreadPool& pool);

  // Bytes of the slots' weights, and of the memory for the running product.
  size_t weightBytes() const;
  size_t workspaceBytes() const { return workspace_.size(); }

 private:
  // Rows of one slot: entries [begin, end) of order_.
  struct Group {
    int32_t slot;
    int64_t begin, end;
  };
  // Some of them, which one task computes.
  struct Piece {
    const AdapterProduct* product;
    int64_t begin, end;
  };

  void checkPart(const AdapterPart& part) const;
  // Throws a sentence for a slot that there is not.
  AdapterSlot& at(int32_t slot);
  bool collect(int32_t op, int64_t rows);

  const ExecutorConfig& config_;
  const KernelTable& kernels_;
  std::vector<AdapterSlot> slots_;
  std::vector<Group> groups_;
  std::vector<int32_t> groupOfSlot_;  // -1: none
  std::vector<int64_t> order_;        // rows with adapters, group by group
  std::vector<Piece> pieces_;
  std::vector<AdapterRow> rows_;  // [maxNumTokens]
  int64_t stride_ = 0;            // floats between two rows of t
  Mapping workspace_;             // t of each row: [maxNumTokens x stride]
};

}  // namespace skein

// One adapter, packed for the products of a plan.
//
//   memory   | A | B B B .. | A | B ..      the products in the order of the plan; A of all parts of a product,
//              op 3           op 5          then the blocks of B, panel by panel
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/memory.h"
#include "executor/plan.h"
#include "kernels/kernels.h"

namespace skein {

// Begins of what vectors read.
constexpr size_t kAlignBytes = 64;

// The change of some rows of one product's weight.
struct AdapterPart {
  int32_t op;        // index into the plan's ops
  int32_t firstRow;  // of the weight, which may stack several matrices
  int32_t rows;
  int32_t rank;
  ArrayView<const float> a;  // [rank x columns]
  ArrayView<const float> b;  // [rows x rank]
};

// Parts of an adapter that one product may have: the parts of a stacked weight, and the whole of it.
constexpr int32_t kMostAdapterParts = 4;

// A product that an adapter may change: a linear one of tokens.
bool takesAdapter(const NetworkPlan& plan, const PlanOp& op);

class AdapterSlot {
 public:
  AdapterSlot() = default;
  // Packs parts that fit the plan; throws a sentence if one product has too many.
  AdapterSlot(const NetworkPlan& plan, const KernelTable& kernels, const std::vector<AdapterPart>& parts);

  bool used() const { return !productOfOp_.empty(); }
  size_t bytes() const { return memory_.size(); }
  // Null: the adapter does not change this op.
  const AdapterProduct* product(int32_t op) const {
    const int32_t index = productOfOp_[static_cast<size_t>(op)];
    return index < 0 ? nullptr : &products_[static_cast<size_t>(index)];
  }

 private:
  struct Layout;

  void fill(const KernelTable& kernels, const Layout& layout);

  std::vector<int32_t> productOfOp_;  // [ops]
  std::vector<AdapterProduct> products_;
  std::vector<AdapterBlock> blocks_;      // of all products
  std::vector<int32_t> firstBlocks_;      // of all products, each [panels + 1]
  std::vector<const char*> panelStarts_;  // likewise
  Mapping memory_;
};

}  // namespace skein

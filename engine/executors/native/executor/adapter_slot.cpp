#include "executor/adapter_slot.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/half.h"

namespace skein {
namespace {

// Panels whose blocks are prefetched together with A of their product.
constexpr int32_t kFirstPanels = 2;
using Parts = std::vector<const AdapterPart*>;

// Rows of a weight that one of its packed panels has. The panels of a gated weight in one part take turns: gate, up, gate, .. No
// panel has rows of two parts.
struct PanelRows {
  int32_t begin, end;
};

std::vector<PanelRows> panelsOf(const PlanOp& op, const PlanWeight& weight, int32_t width) {
  std::vector<PanelRows> panels;
  const bool gated = op.kind == OpKind::kGatedLinear && weight.parts.size() == 1;
  int32_t first = 0;
  for (const WeightPart& part : weight.parts) {
    const int32_t n = gated ? part.rows / 2 : part.rows;
    for (int32_t row = 0; row < n; row += width) {
      const int32_t end = std::min(n, row + width);
      panels.push_back({first + row, first + end});
      if (gated) panels.push_back({n + row, n + end});
    }
    first += part.rows;
  }
  return panels;
}

bool isBf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0xffffu) == 0;
}

bool isHalf(float x) {
  const float rounded = fromHalf(toHalf(x));
  return std::memcmp(&rounded, &x, sizeof x) == 0;
}

bool areAll(const Parts& parts, ArrayView<const float> AdapterPart::* matrix, bool (*fits)(float)) {
  return std::all_of(parts.begin(), parts.end(), [&](const AdapterPart* part) {
    const ArrayView<const float>& values = part->*matrix;
    return std::all_of(values.data, values.data + values.length, fits);
  });
}

// The smallest form that has all values exactly.
AdapterType typeOf(const Parts& parts, ArrayView<const float> AdapterPart::* matrix) {
  if (areAll(parts, matrix, isBf16)) return AdapterType::kBf16;
  return areAll(parts, matrix, isHalf) ? AdapterType::kF16 : AdapterType::kF32;
}

}  // namespace

bool takesAdapter(const NetworkPlan& plan, const PlanOp& op) {
  return (op.kind == OpKind::kLinear || op.kind == OpKind::kGatedLinear) &&
         plan.values[static_cast<size_t>(op.input)].rows == RowKind::kTokens;
}

// Places of everything, as offsets into the memory, before that is taken.
struct AdapterSlot::Layout {
  struct Block {
    const float* b;
    size_t at;
    AdapterType type;
  };
  std::vector<Block> blocks;
  std::vector<size_t> a;            // of each product
  std::vector<Parts> parts;         // of each product
  std::vector<size_t> firstBlocks;  // of each product, into firstBlocks_
  std::vector<size_t> panelStarts;  // like panelStarts_
  size_t bytes = 0;

  size_t take(size_t count) {
    const size_t at = bytes;
    bytes += roundUp(count, kAlignBytes);
    return at;
  }
};

AdapterSlot::AdapterSlot(const NetworkPlan& plan, const KernelTable& kernels, const std::vector<AdapterPart>& parts) {
  std::vector<Parts> ofOp(plan.ops.size());
  for (const AdapterPart& part : parts) ofOp[static_cast<size_t>(part.op)].push_back(&part);
  productOfOp_.assign(plan.ops.size(), -1);
  Layout layout;
  for (size_t op = 0; op < plan.ops.size(); ++op) {
    Parts& own = ofOp[op];
    if (own.empty()) continue;
    if (own.size() > static_cast<size_t>(kMostAdapterParts))
      throw std::runtime_error("op " + std::to_string(op) + " has " + std::to_string(own.size()) +
                               " parts, but at most " + std::to_string(kMostAdapterParts) + " are taken.");
    std::stable_sort(own.begin(), own.end(),
                     [](const AdapterPart* one, const AdapterPart* other) { return one->firstRow < other->firstRow; });
    const PlanWeight& weight = plan.weights[static_cast<size_t>(plan.ops[op].weight)];
    AdapterProduct product{};
    product.aType = typeOf(own, &AdapterPart::a);
    product.bType = typeOf(own, &AdapterPart::b);
    for (const AdapterPart* part : own) product.rank += part->rank;
    layout.a.push_back(layout.take(kernels.loweringBytes(product.aType, product.rank, weight.columns)));
    layout.firstBlocks.push_back(firstBlocks_.size());
    firstBlocks_.push_back(static_cast<int32_t>(blocks_.size()));
    layout.panelStarts.push_back(layout.bytes);
    for (const PanelRows& panel : panelsOf(plan.ops[op], weight, kernels.panelWidth)) {
      ++product.panels;
      int32_t first = 0;
      for (const AdapterPart* part : own) {
        const int32_t begin = std::max(panel.begin, part->firstRow);
        const int32_t end = std::min(panel.end, part->firstRow + part->rows);
        if (begin < end) {
          const size_t at = layout.take(kernels.blockBytes(product.bType, part->rank));
          layout.blocks.push_back({part->b.data + int64_t(begin - part->firstRow) * part->rank, at, product.bType});
          blocks_.push_back({nullptr, first, part->rank, begin - panel.begin, end - panel.begin});
        }
        first += part->rank;
      }
      firstBlocks_.push_back(static_cast<int32_t>(blocks_.size()));
      layout.panelStarts.push_back(layout.bytes);
    }
    productOfOp_[op] = static_cast<int32_t>(products_.size());
    products_.push_back(product);
    layout.parts.push_back(own);
  }
  fill(kernels, layout);
}

// Takes the memory, and packs everything into its place.
void AdapterSlot::fill(const KernelTable& kernels, const Layout& layout) {
  // Room at the end: prefetches may pass the end.
  memory_ = Mapping::anonymous(roundUp(layout.bytes + 4096, 4096), "An adapter");
  for (const size_t start : layout.panelStarts)
    panelStarts_.push_back(reinterpret_cast<const char*>(memory_.data()) + start);
  for (size_t i = 0; i < products_.size(); ++i) {
    AdapterProduct& product = products_[i];
    std::vector<const float*> rows;
    int64_t columns = 0;
    for (const AdapterPart* part : layout.parts[i]) {
      columns = part->a.length / part->rank;
      for (int32_t row = 0; row < part->rank; ++row) rows.push_back(part->a.data + row * columns);
    }
    uint8_t* a = memory_.data() + layout.a[i];
    kernels.packLowering(product.aType, rows.data(), product.rank, static_cast<int32_t>(columns), a);
    product.a = a;
    product.firstBlock = firstBlocks_.data() + layout.firstBlocks[i];
    product.blocks = blocks_.data();
    product.panelStart = panelStarts_.data() + layout.firstBlocks[i];
    // The next product needs all of its A, and the blocks of the first panels.
    if (i + 1 < products_.size()) {
      const size_t next = layout.firstBlocks[i + 1];
      const int32_t panels = std::min(products_[i + 1].panels, kFirstPanels);
      product.nextBytes = layout.panelStarts[next + static_cast<size_t>(panels)] - layout.a[i + 1];
    }
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    AdapterBlock& block = blocks_[i];
    const auto& [b, at, type] = layout.blocks[i];
    kernels.packBlock(type, b, block.rank, block.begin, block.end, memory_.data() + at);
    block.weights = memory_.data() + at;
  }
}

}  // namespace skein

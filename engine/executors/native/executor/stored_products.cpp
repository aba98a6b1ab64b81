// Products whose weights stay stored (stored_weights.h). Blocks have kernels of their own. Panels of single numbers are packed from their
// rows just before they are multiplied, a few at a time into memory that the second-level cache holds, for the kernels of packed ones.
#include <algorithm>
#include <array>

#include "executor/executor.h"

namespace skein {
namespace {

constexpr size_t kStoredPanelBytes = 256 << 10;
// As many as few rows of activations take side by side.
constexpr int32_t kMostStoredPanels = 4;
// No instruction set has wider ones.
constexpr int32_t kWidestPanel = 32;

int32_t halvesOf(const GemmArgs&) { return 1; }
int32_t halvesOf(const GatedGemmArgs&) { return 2; }
void run(const KernelTable& kernels, const GemmArgs& args, const ProductShare& share) {
  kernels.gemm(args, share.rowBegin, share.rowEnd, share.panelBegin, share.panelEnd);
}
void run(const KernelTable& kernels, const GatedGemmArgs& args, const ProductShare& share) {
  kernels.gatedGemm(args, share.rowBegin, share.rowEnd, share.panelBegin, share.panelEnd);
}
void runStored(const KernelTable& kernels, const GemmArgs& args, const ProductShare& share) {
  kernels.storedGemm(args, share.rowBegin, share.rowEnd, share.panelBegin, share.panelEnd);
}
void runStored(const KernelTable& kernels, const GatedGemmArgs& args, const ProductShare& share) {
  kernels.storedGatedGemm(args, share.rowBegin, share.rowEnd, share.panelBegin, share.panelEnd);
}

int32_t panelsAtOnce(size_t panelBytes, int32_t halves) {
  return static_cast<int32_t>(std::clamp<size_t>(kStoredPanelBytes / (panelBytes * static_cast<size_t>(halves)), 1,
                                                 static_cast<size_t>(kMostStoredPanels)));
}

void packPanel(const KernelTable& kernels, const StoredMatrix& matrix, int32_t first, int32_t left, void* panel) {
  std::array<const uint8_t*, kWidestPanel> rows;
  // Outputs beyond the last one are never written: they have its row.
  for (int32_t j = 0; j < kernels.panelWidth; ++j)
    rows[static_cast<size_t>(j)] = matrix.row(first + std::min(j, left - 1));
  kernels.packStored(matrix.type, rows.data(), matrix.columns, panel);
}

template <typename Args>
void multiplyNumbers(const KernelTable& kernels, const Args& args, const ProductShare& share, uint8_t* memory) {
  const int32_t halves = halvesOf(args), width = kernels.panelWidth;
  const size_t panelBytes = kernels.packedBytes(args.dtype, width, args.k);
  const int32_t together = panelsAtOnce(panelBytes, halves);
  for (int32_t begin = share.panelBegin; begin < share.panelEnd; begin += together) {
    const int32_t end = std::min(share.panelEnd, begin + together);
    for (int32_t panel = begin; panel < end; ++panel) {
      for (int32_t half = 0; half < halves; ++half) {
        uint8_t* to = memory + static_cast<size_t>((panel - begin) * halves + half) * panelBytes;
        packPanel(kernels, *args.stored, half * args.n + panel * width, args.n - panel * width, to);
      }
    }
    // Panels keep their numbers, by which the kernels find columns, biases and adapters: panel 0 would lie before the memory.
    Args packed = args;
    const size_t before = static_cast<size_t>(begin) * static_cast<size_t>(halves) * panelBytes;
    packed.packed = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(memory) - before);
    run(kernels, packed, {share.rowBegin, share.rowEnd, begin, end});
  }
}

template <typename Args>
void multiplyShare(const KernelTable& kernels, const Args& args, const ProductShare& share, float* memory) {
  if (args.stored == nullptr) return run(kernels, args, share);
  if (isQuantized(args.dtype)) return runStored(kernels, args, share);
  multiplyNumbers(kernels, args, share, reinterpret_cast<uint8_t*>(memory));
}

}  // namespace

size_t storedPanelFloats(const ExecutorConfig& config, const KernelTable& kernels, const PackedWeights& weights) {
  size_t bytes = 0;
  if (!config.staysStored) return 0;
  for (const PlanOp& op : config.plan.ops) {
    for (const OpProduct& product : productsOf(op)) {
      for (const DType dtype : weights.dtypes(product.weight)) {
        if (isQuantized(dtype)) continue;
        const int32_t k = config.plan.weights[static_cast<size_t>(product.weight)].columns;
        const size_t panel = kernels.packedBytes(dtype, kernels.panelWidth, k);
        for (const int32_t halves : {1, 2})
          bytes = std::max(bytes, panel * static_cast<size_t>(halves * panelsAtOnce(panel, halves)));
      }
    }
  }
  return roundUp(bytes, kLineBytes) / sizeof(float);
}

void Executor::multiply(const GemmArgs& args, const ProductShare& share, int32_t thread) {
  multiplyShare(kernels_, args, share, storedPanels_ + storedPanelFloats_ * static_cast<size_t>(thread));
}

void Executor::multiply(const GatedGemmArgs& args, const ProductShare& share, int32_t thread) {
  multiplyShare(kernels_, args, share, storedPanels_ + storedPanelFloats_ * static_cast<size_t>(thread));
}

}  // namespace skein

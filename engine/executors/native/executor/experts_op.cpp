// The experts op: a pass over some rows lays them out by expert, multiplies them by their experts' matrices and adds up what comes back.
//
//   rows           route, sort      pairs, by expert        gate, up        down                   sums of each row
//   | row 0 |                       | 1 | 0 1 | 2 | 0 .     -> inner ->     -> [pairs][width]      share x pair + share x pair + ..
//   | row 1 |     ------------>
//
// What a pair gets depends on its row and its expert, and a row's pairs are added up in ascending expert: its bits are
// the same with any other rows.
#include <algorithm>
#include <cstring>

#include "executor/each_row.h"
#include "executor/executor.h"

namespace skein {
namespace {

// Bytes of rows that one task keeps in its core's second-level cache, besides the weights that stream by.
constexpr size_t kTaskRowBytes = 256 << 10;
// Tasks of a thread for few pairs, which take a few microseconds each, and for more, which are cut where experts begin: the last task of
// a thread is what the others wait for.
constexpr int32_t kFewPairs = 16, kTasksOfFewPairs = 4, kTasksOfPairs = 32;
// A score is looked at a few times.
constexpr int64_t kElementsPerScore = 8;
// As much work as this many elements that are only copied.
constexpr int64_t kElementsPerClamp = 8;
// Most rows whose gate and up are clamped at once: three panels of them fit, of 32 columns at most.
constexpr int32_t kRowsOfClamp = 96;
static_assert(3 * 32 * kRowsOfClamp <= kClampedFloats);
// Columns of a sum that stay in registers and the nearest cache.
constexpr int64_t kSumColumns = 256;

// out = share[0] * pair[0] + share[1] * pair[1] + .. + residual, each product and each sum rounded by itself.
void addUpRow(const float* const* pairs, const float* shares, int32_t used, const float* residual, int64_t n,
              float* out) {
  float sums[kSumColumns];
  for (int64_t begin = 0; begin < n; begin += kSumColumns) {
    const int64_t count = std::min(kSumColumns, n - begin);
    for (int64_t c = 0; c < count; ++c) sums[c] = shares[0] * pairs[0][begin + c];
    for (int32_t i = 1; i < used; ++i) {
      const float* row = pairs[i] + begin;
      for (int64_t c = 0; c < count; ++c) sums[c] += shares[i] * row[c];
    }
    for (int64_t c = 0; c < count; ++c) out[begin + c] = residual != nullptr ? sums[c] + residual[begin + c] : sums[c];
  }
}

// The end of products whose gate and up are clamped: gate * (up + 1), then times the sigmoid of alpha * gate. gate: overwritten.
void clampRow(const KernelTable& kernels, const PlanOp& op, float* gate, const float* up, int32_t count, float* y) {
  const float alpha = op.clampAlpha, limit = op.clampLimit;
  for (int32_t column = 0; column < count; ++column) {
    // What is no number stays none.
    const float g = gate[column] > limit ? limit : gate[column];
    const float u = up[column] > limit ? limit : up[column] < -limit ? -limit : up[column];
    y[column] = g * (u + 1.0f);
    gate[column] = alpha * g;
  }
  kernels.gateRow(y, gate, Activation::kSigmoid, count);
}

// Where a product would begin to write for its row `row` and column `column` to lie at `memory`.
float* beginOf(float* memory, int64_t row, int64_t stride, int64_t column) {
  const size_t before = static_cast<size_t>(row * stride + column) * sizeof(float);
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(memory) - before);
}

}  // namespace

void Executor::runExperts(const PlanOp& op, const BatchView& batch) {
  const int64_t rows = rowsOf(op.input, batch);
  const int64_t ofPass = rowsOfPass(op);
  for (int64_t begin = 0; begin < rows; begin += ofPass) runExpertPass(op, begin, std::min(ofPass, rows - begin));
}

void Executor::runExpertPass(const PlanOp& op, int64_t begin, int64_t rows) {
  ExpertRows& pass = expertRows_;
  const int64_t experts = width(op.scores), k = width(op.input), n = width(op.output);
  const int32_t inner = config_.plan.weights[static_cast<size_t>(op.downs[0])].columns;
  const float* scores = value(op.scores) + begin * experts;
  const float* input = value(op.input) + begin * k;
  const auto vector = [&](int32_t weight) {
    return weight < 0 ? nullptr : static_cast<const float*>(weights_.raw(weight));
  };
  pass.begin(op, static_cast<int32_t>(rows), vector(op.choiceBias), vector(op.shareScales));
  eachRow(rows, experts * kElementsPerScore,
          [&](int64_t row) { pass.route(static_cast<int32_t>(row), scores + row * experts); });
  pass.sort();
  expertReads_.readAhead(currentOp_, pass, pool_);
  const bool isMixed = runExpertProduct(op, {false, 0, static_cast<int32_t>(k), inner},
                                        [&](int32_t pair) { return input + pass.rowOf(pair) * k; });
  if (isMixed) {
    runExpertProduct(op, {false, 1, static_cast<int32_t>(k), inner},
                     [&](int32_t pair) { return input + pass.rowOf(pair) * k; });
    joinHalves(op, inner);
  }
  runExpertProduct(op, {true, 0, inner, static_cast<int32_t>(n)},
                   [&](int32_t pair) { return expertInner_ + int64_t(pair) * inner; });
  float* output = value(op.output) + begin * n;
  const float* residual = op.residual < 0 ? nullptr : value(op.residual) + begin * n;
  eachRow(rows, n * op.rule.used, [&](int64_t row) {
    const int32_t* pairs = pass.pairsOf(static_cast<int32_t>(row));
    std::array<const float*, kMostUsedExperts> sums;
    for (int32_t i = 0; i < op.rule.used; ++i) sums[static_cast<size_t>(i)] = expertSums_ + int64_t(pairs[i]) * n;
    addUpRow(sums.data(), pass.sharesOf(static_cast<int32_t>(row)), op.rule.used,
             residual == nullptr ? nullptr : residual + row * n, n, output + row * n);
  });
}

// Computes one product of all experts with rows. Returns true if some of them have another part after this one.
template <typename RowOf>
bool Executor::runExpertProduct(const PlanOp& op, const ExpertProduct& product, const RowOf& rowOf) {
  const std::vector<ExpertWeights>& experts = expertsOfOp_[currentOp_];
  ExpertRows& pass = expertRows_;
  const auto partsOf = [&](int32_t expert) -> const std::vector<PackedPart>& {
    const ExpertWeights& weights = experts[static_cast<size_t>(expert)];
    return product.isDown ? weights.down : weights.gateUp;
  };
  const size_t part = product.part;
  bool hasMore = false;
  size_t offset = 0, rowBytes = 1;
  uint8_t* base = reinterpret_cast<uint8_t*>(expertPairs_);
  for (int32_t expert = 0; expert < static_cast<int32_t>(experts.size()); ++expert) {
    const std::vector<PackedPart>& parts = partsOf(expert);
    expertOffset_[static_cast<size_t>(expert)] = offset;
    if (pass.rowsOf(expert) == 0 || parts.size() <= part) continue;
    hasMore = hasMore || parts.size() > part + 1;
    const size_t bytes = bytesOfRows(kernels_, parts[part].dtype, pass.rowsOf(expert), product.k);
    rowBytes = std::max(rowBytes, bytes / static_cast<size_t>(pass.rowsOf(expert)));
    offset += roundUp(bytes, kLineBytes);
  }
  eachRow(pass.pairs(), product.k, [&](int64_t index) {
    const int32_t pair = static_cast<int32_t>(index), expert = pass.expertOf(pair);
    if (partsOf(expert).size() <= part) return;
    const DType dtype = partsOf(expert)[part].dtype;
    const int32_t row = pair - pass.firstPair(expert);
    uint8_t* rows = base + expertOffset_[static_cast<size_t>(expert)];
    const float* from = rowOf(pair);
    if (kernels_.roundedBytes(dtype, 1, product.k) > 0)
      return kernels_.roundRow(dtype, from, product.k, row, pass.rowsOf(expert), rows);
    const size_t bytes = static_cast<size_t>(product.k) * sizeof(float);
    std::memcpy(rows + static_cast<size_t>(row) * bytes, from, bytes);
  });
  const int32_t panels = static_cast<int32_t>(ceilDivide(product.n, kernels_.panelWidth));
  const int64_t perThread = pass.pairs() <= kFewPairs ? kTasksOfFewPairs : kTasksOfPairs;
  const int32_t blockRows =
      static_cast<int32_t>(std::max<size_t>(1, kTaskRowBytes / (rowBytes * size_t(kernels_.tileRows)))) *
      kernels_.tileRows;
  const int32_t wanted = config_.threads == 1 ? 1 : static_cast<int32_t>(config_.threads * perThread);
  const std::vector<ExpertTask>& tasks = pass.cut(panels, wanted, blockRows);
  pool_.run(static_cast<int32_t>(tasks.size()), [&](int32_t index, int32_t thread) {
    const ExpertTask& task = tasks[static_cast<size_t>(index)];
    if (partsOf(task.expert).size() <= part) return;
    multiplyExpert(op, product, partsOf(task.expert)[part], partsOf(task.expert).size() == 1, task, thread);
  });
  return hasMore;
}

void Executor::multiplyExpert(const PlanOp& op, const ExpertProduct& product, const PackedPart& part, bool isWhole,
                              const ExpertTask& task, int32_t thread) {
  const int32_t rows = expertRows_.rowsOf(task.expert);
  const int64_t firstPair = expertRows_.firstPair(task.expert);
  const uint8_t* input =
      reinterpret_cast<const uint8_t*>(expertPairs_) + expertOffset_[static_cast<size_t>(task.expert)];
  const bool isRounded = kernels_.roundedBytes(part.dtype, 1, product.k) > 0;
  const float* x = reinterpret_cast<const float*>(input);
  const void* rounded = isRounded ? input : nullptr;
  const std::vector<int32_t>& biases = product.isDown ? op.downBiases : op.gateUpBiases;
  const float* bias =
      biases.empty() ? nullptr : static_cast<const float*>(weights_.raw(biases[static_cast<size_t>(task.expert)]));
  const bool isClamped = !product.isDown && op.clampLimit > 0;
  if (!product.isDown && isWhole && !op.ungated && !isClamped) {
    const GatedGemmArgs args{.x = x,
                             .ldx = product.k,
                             .packed = part.packed,
                             .dtype = part.dtype,
                             .n = product.n,
                             .k = product.k,
                             .bias = bias,
                             .y = expertInner_ + firstPair * product.n,
                             .ldy = product.n,
                             .activation = op.activation,
                             .rounded = rounded,
                             .roundedRows = rows,
                             .stored = part.stored};
    return multiply(args, {task.rowBegin, task.rowEnd, task.panelBegin, task.panelEnd}, thread);
  }
  // Gate and up of two parts that are clamped lie side by side.
  const bool isGate = !product.isDown && product.part == 0;
  const int64_t stride = isClamped ? 2 * product.n : product.n, column = isClamped ? part.firstColumn : 0;
  float* y = product.isDown ? expertSums_ : isClamped ? expertUp_ : isGate ? expertInner_ : expertUp_;
  GemmArgs args{.x = x,
                .ldx = product.k,
                .packed = part.packed,
                .dtype = part.dtype,
                .n = isClamped ? part.columns : product.n,
                .k = product.k,
                .bias = bias == nullptr ? nullptr : bias + (isClamped ? column : int64_t(product.part) * product.n),
                .residual = nullptr,
                .ldr = 0,
                .y = y + firstPair * stride + column,
                .ldy = stride,
                .activation = isGate && !isClamped ? op.activation : Activation::kNone,
                .rounded = rounded,
                .roundedRows = rows,
                .stored = part.stored};
  if (isClamped && isWhole) return multiplyClamped(op, args, task, expertInner_ + firstPair * product.n, thread);
  multiply(args, {task.rowBegin, task.rowEnd, task.panelBegin, task.panelEnd}, thread);
}

// Gate and up of a task, a few panels at a time in memory that the second-level cache holds, and what clamping makes of them. The panel in
// which gate ends and up begins may be of both.
void Executor::multiplyClamped(const PlanOp& op, GemmArgs args, const ExpertTask& task, float* y, int32_t thread) {
  const int32_t inner = args.n / 2, width = kernels_.panelWidth;
  float* gate = expertClamped_ + kClampedFloats * static_cast<size_t>(thread);
  for (int32_t row = task.rowBegin; row < task.rowEnd; row += kRowsOfClamp) {
    const int32_t end = std::min(task.rowEnd, row + kRowsOfClamp);
    const int32_t wide = static_cast<int32_t>(kClampedFloats) / ((end - row) * width);
    const int32_t together = std::max(1, (wide - 1) / 2), stride = (2 * together + 1) * width;
    for (int32_t panel = task.panelBegin; panel < task.panelEnd; panel += together) {
      const int32_t panelEnd = std::min(task.panelEnd, panel + together), column = panel * width;
      const int32_t count = std::min(panelEnd * width, inner) - column, up = (inner + column) / width;
      float* ups = gate + together * width;
      args.ldy = stride;
      args.y = beginOf(gate, row, stride, column);
      multiply(args, {row, end, panel, panelEnd}, thread);
      args.y = beginOf(ups, row, stride, up * width);
      multiply(args, {row, end, up, static_cast<int32_t>(ceilDivide(inner + column + count, width))}, thread);
      ups += inner + column - up * width;
      for (int32_t i = 0; i < end - row; ++i)
        clampRow(kernels_, op, gate + i * stride, ups + i * stride, count, y + int64_t(row + i) * inner + column);
    }
  }
}

// The end of gated products whose halves are in formats of their own (runMixedGatedLinear()), or of clamped ones in two parts.
void Executor::joinHalves(const PlanOp& op, int32_t inner) {
  const std::vector<ExpertWeights>& experts = expertsOfOp_[currentOp_];
  const bool isClamped = op.clampLimit > 0;
  eachRow(expertRows_.pairs(), int64_t(inner) * (isClamped ? kElementsPerClamp : 1), [&](int64_t pair) {
    if (experts[static_cast<size_t>(expertRows_.expertOf(static_cast<int32_t>(pair)))].gateUp.size() == 1) return;
    float* y = expertInner_ + pair * inner;
    if (isClamped) {
      float* gate = expertUp_ + pair * 2 * inner;
      return clampRow(kernels_, op, gate, gate + inner, inner, y);
    }
    const float* up = expertUp_ + pair * inner;
    for (int32_t column = 0; column < inner; ++column) y[column] *= up[column];
  });
}

}  // namespace skein

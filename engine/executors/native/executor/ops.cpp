// The ops of a plan, each cut into tasks for the thread pool.
//
// A matrix product is cut along its panels (a task's weights are read once). Many rows are parted among the threads first:
// the tasks of a part are one thread's share (thread_pool.h), so it computes the same rows from op to op and finds them in
// its own caches. A part whose inputs outgrow a core's cache is cut into blocks of rows too:
//
//                panels 0 .. P
//              +-------+-------+-------+
//   rows 0..R  | task0 | task1 | task2 |   part 0
//              +-------+-------+-------+
//   rows R..2R | task3 | task4 | task5 |   part 1
//              +-------+-------+-------+
#include <algorithm>
#include <cstring>

#include "executor/each_row.h"
#include "executor/executor.h"
#include "executor/stopwatch.h"
#include "executor/streamed_copy.h"

namespace skein {
namespace {

// Bytes that one element of a product's input takes, roughly.
int64_t inputBytes(DType weights) { return !isQuantized(weights) ? 4 : weights == DType::kInt8 ? 2 : 1; }

// Bytes of x that one task keeps in its core's second-level cache, besides the weights that stream by.
constexpr int64_t kRowBlockBytes = 256 << 10;
// Least number of rows for which a part of its own is worth reading all weights once more.
constexpr int64_t kRowsOfPart = 48;
// Limits for few rows, whose tasks take a few microseconds each.
constexpr int64_t kFewRows = 8, kTasksPerThreadOfFewRows = 4;
// Least floats of an exchange that are streamed: fewer are fetched as fast.
constexpr int64_t kStreamedFloats = 2 << 10;

}  // namespace

template <typename Function>
void Executor::eachTile(int64_t rows, DType weights, int32_t n, int32_t k, const Function& fn) {
  if (rows == 0) return;
  const int64_t tileRows = kernels_.tileRows;
  const int64_t parts = std::clamp<int64_t>(rows / kRowsOfPart, 1, config_.threads);
  const int64_t rowsOfPart = ceilDivide(rows, parts);
  const int64_t rowsWanted = std::max<int64_t>(1, kRowBlockBytes / (k * inputBytes(weights) * tileRows)) * tileRows;
  const int64_t blocksOfPart = ceilDivide(rowsOfPart, rowsWanted);
  const int64_t rowsOfBlock = ceilDivide(rowsOfPart, blocksOfPart);
  // Many rows take two panels side by side.
  const int64_t panels = ceilDivide(n, kernels_.panelWidth), together = parts > 1 ? 2 : 1;
  const int64_t units = ceilDivide(panels, together);
  const int64_t perThread = rows <= kFewRows ? kTasksPerThreadOfFewRows : kTasksPerThread;
  const int64_t ranges = config_.threads == 1 ? 1 : std::min(units, config_.threads * perThread / parts);
  pool_.run(static_cast<int32_t>(ranges * blocksOfPart * parts), [&](int32_t task, int32_t thread) {
    const int64_t block = task / ranges, part = block / blocksOfPart, range = task % ranges;
    const int64_t row = part * rowsOfPart + block % blocksOfPart * rowsOfBlock;
    const int64_t end = std::min({rows, (part + 1) * rowsOfPart, row + rowsOfBlock});
    if (row >= end) return;
    const auto panelAt = [&](int64_t index) { return std::min(panels, index * units / ranges * together); };
    fn(static_cast<int32_t>(row), static_cast<int32_t>(end), static_cast<int32_t>(panelAt(range)),
       static_cast<int32_t>(panelAt(range + 1)), thread);
  });
}

// Does the work that all ops of this iteration share: new blocks are zeroed (a former request's NaN times 0 is NaN),
// the angles of each token are computed once for all layers, attention is cut into tasks.
void Executor::prepare(const BatchView& batch) {
  if (batch.numNewBlocks > 0) {
    pool_.run(config_.plan.numLayers(), [&](int32_t index, int32_t) {
      const KvLayer kv = layer(index);
      const size_t bytes = kv.bytesPerBlock();
      for (int64_t i = 0; i < batch.numNewBlocks; ++i) {
        std::memset(static_cast<uint8_t*>(kv.base) + bytes * static_cast<size_t>(batch.newBlocks[i]), 0, bytes);
      }
    });
  }
  adapters_.prepare(batch);
  schedules_.prepare(batch);
  fresh_.prepare(batch);
  if (config_.plan.rotaryDim > 0 || !config_.plan.ropeTables.empty()) prepareAngles(batch);
}

float* Executor::anglesOf(int32_t table, int64_t token) const {
  const int64_t first = static_cast<int64_t>(ropeOffset_[static_cast<size_t>(table + 1)]);
  return ropeAngles_ + first + token * config_.plan.rotaryDimOf(table);
}

void Executor::prepareAngles(const BatchView& batch) {
  const int32_t half = config_.plan.rotaryDim / 2;
  for (int64_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    const int64_t row = batch.ropeRows[sequence];
    for (int64_t t = batch.queryStart[sequence]; t < batch.queryStart[sequence + 1]; ++t) {
      float* cosine = anglesOf(-1, t);
      const float* frequencies = batch.ropeFrequencies.data + row * half;
      const float scale = batch.ropeScales[row];
      kernels_.ropeAngles(frequencies, half, scale, batch.positions[t], cosine, cosine + half);
      if (batch.gridPositions.length > 0 && !config_.plan.ropeAxes.empty())
        turnByGrid(frequencies, scale, batch.gridPositions.data + 2 * t, cosine);
      for (int32_t table = 0; table < static_cast<int32_t>(config_.plan.ropeTables.size()); ++table) {
        float* own = anglesOf(table, t);
        const float* ofTable = config_.plan.ropeTables[static_cast<size_t>(table)].data();
        const int32_t ownHalf = config_.plan.rotaryDimOf(table) / 2;
        kernels_.ropeAngles(ofTable, ownHalf, 1.0f, batch.positions[t], own, own + ownHalf);
      }
      if (!sinkQueries_) continue;
      float* ofSinks = sinkAngles_ + t * 2 * half;
      const int32_t cachePosition = config_.window().cachePosition(batch.positions[t]);
      kernels_.ropeAngles(frequencies, half, scale, cachePosition, ofSinks, ofSinks + half);
    }
  }
}

// Replaces the angles of frequencies that turn by height or width. Where a token's positions are the same on all axes, so are the angles.
void Executor::turnByGrid(const float* frequencies, float scale, const int32_t* grid, float* cosine) {
  const std::vector<int32_t>& axes = config_.plan.ropeAxes;
  const int32_t half = static_cast<int32_t>(axes.size());
  for (int32_t i = 0; i < half; ++i) {
    const int32_t axis = axes[static_cast<size_t>(i)];
    if (axis > 0) kernels_.ropeAngles(frequencies + i, 1, scale, grid[axis - 1], cosine + i, cosine + half + i);
  }
}

void Executor::runOp(const PlanOp& op, const BatchView& batch) {
  switch (op.kind) {
    case OpKind::kEmbedding: return runEmbedding(op, batch);
    case OpKind::kAddEmbedding: return runAddEmbedding(op, batch);
    case OpKind::kRmsNorm: return runRmsNorm(op, batch);
    case OpKind::kRmsNormHeads: return runRmsNormHeads(op, batch);
    case OpKind::kLayerNormHeads: return runLayerNormHeads(op, batch);
    case OpKind::kSoftCap: return runSoftCap(op, batch);
    case OpKind::kXielu: return runXielu(op, batch);
    case OpKind::kAddScaled: return runAddScaled(op, batch);
    case OpKind::kGate: return runGate(op, batch);
    case OpKind::kShortConv: return runShortConv(op, batch);
    case OpKind::kGatedDelta: return runGatedDelta(op, batch);
    case OpKind::kSelectiveScan: return runSelectiveScan(op, batch);
    case OpKind::kScale: return runScale(op, batch);
    case OpKind::kClamp: return runClamp(op, batch);
    case OpKind::kLayerNorm: return runLayerNorm(op, batch);
    case OpKind::kLinear: return runLinear(op, batch);
    case OpKind::kGatedLinear: return runGatedLinear(op, batch);
    case OpKind::kRopeAndCache: return runRopeAndCache(op, batch);
    case OpKind::kAttention: return runAttention(op, batch);
    case OpKind::kSelectRows: return runSelectRows(op, batch);
    case OpKind::kJoin: return runJoin(op, batch);
    case OpKind::kMeanPool: return runMeanPool(op, batch);
    case OpKind::kNormalize: return runNormalize(op, batch);
    case OpKind::kExchange: return runExchange(op, batch);
    case OpKind::kExperts: return runExperts(op, batch);
    case OpKind::kDistanceRows: return runDistanceRows(op);
    case OpKind::kDistanceProducts: return relative_.keepProducts(op, value(op.input), width(op.input), pool_);
    case OpKind::kDistanceBiases: return relative_.keepBiases(op, static_cast<const float*>(weights_.raw(op.weight)));
    case OpKind::kAddPromptRows: return runAddPromptRows(op, batch);
    case OpKind::kRowInput: return runRowInput(op, batch);
    case OpKind::kKeepRows: return runKeepRows(op, batch);
  }
}

void Executor::runEmbedding(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.output);
  const DType dtype = weights_.dtype(op.weight);
  float* output = value(op.output);
  eachRow(batch.numTokens, n, [&](int64_t row) {
    if (batch.tokenIds[row] >= config_.plan.vocabSize) return;
    std::vector<uint8_t> converted;
    kernels_.embeddingRow(dtype, weights_.row(op.weight, batch.tokenIds[row], converted), static_cast<int32_t>(n),
                          output + row * n);
    if (op.scale != 1.0f) kernels_.scaleRow(output + row * n, op.scale, static_cast<int32_t>(n));
  });
  eachPromptRow(batch, [&](int64_t row, const float* own) {
    std::memcpy(output + row * n, own, static_cast<size_t>(n) * sizeof(float));
  });
}

void Executor::runAddPromptRows(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.output);
  float* output = value(op.output);
  eachPromptRow(batch, [&](int64_t row, const float* own) {
    for (int64_t i = 0; i < n; ++i) output[row * n + i] += own[op.firstColumn + i];
  });
}

// Calls `each` for every token that names a row of its prompt's own, with that row.
template <class Each>
void Executor::eachPromptRow(const BatchView& batch, Each each) const {
  const int64_t stride = config_.plan.promptRowWidth();
  for (const PromptTableRows& rows : batch.promptTables) {
    for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      const int64_t own = int64_t(batch.tokenIds[row]) - config_.plan.vocabSize;
      if (own >= 0) each(row, rows.table.data + own * stride);
    }
  }
}

void Executor::runAddEmbedding(const PlanOp& op, const BatchView& batch) {
  if (op.lookup == LookupKind::kPlaces) return addPlaces(op, batch);
  const int64_t n = width(op.output);
  const DType dtype = weights_.dtype(op.weight);
  const ArrayView<const int32_t>& ids = op.lookup == LookupKind::kTokenIds    ? batch.tokenIds
                                        : op.lookup == LookupKind::kPositions ? batch.positions
                                                                              : batch.tokenTypes;
  // Rows of a prompt's own table count as token 0.
  const int32_t most = op.lookup == LookupKind::kTokenIds ? config_.plan.vocabSize : INT32_MAX;
  float* output = value(op.output);
  eachRow(batch.numTokens, n, [&](int64_t row) {
    std::vector<uint8_t> converted;
    const void* source = weights_.row(op.weight, ids[row] < most ? ids[row] : 0, converted);
    if (op.scale == 1.0f) return kernels_.addEmbeddingRow(dtype, source, static_cast<int32_t>(n), output + row * n);
    std::vector<float> scaled(static_cast<size_t>(n));
    kernels_.embeddingRow(dtype, source, static_cast<int32_t>(n), scaled.data());
    kernels_.scaleRow(scaled.data(), op.scale, static_cast<int32_t>(n));
    kernels_.addEmbeddingRow(DType::kF32, scaled.data(), static_cast<int32_t>(n), output + row * n);
  });
}

// Adds the sum of a token's rows of the table, each times its share and summed in their order.
void Executor::addPlaces(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.output);
  const DType dtype = weights_.dtype(op.weight);
  float* output = value(op.output);
  eachRow(batch.numTokens, n, [&](int64_t row) {
    std::vector<uint8_t> converted;
    std::vector<float> sum(static_cast<size_t>(n)), one(static_cast<size_t>(n));
    for (int64_t at = row * kPlacesOfToken; at < (row + 1) * kPlacesOfToken; ++at) {
      kernels_.embeddingRow(dtype, weights_.row(op.weight, batch.places[at], converted), static_cast<int32_t>(n),
                            one.data());
      kernels_.scaleRow(one.data(), batch.placeShares[at] * op.scale, static_cast<int32_t>(n));
      kernels_.addEmbeddingRow(DType::kF32, one.data(), static_cast<int32_t>(n), sum.data());
    }
    kernels_.addEmbeddingRow(DType::kF32, sum.data(), static_cast<int32_t>(n), output + row * n);
  });
}

void Executor::runDistanceRows(const PlanOp& op) {
  const int64_t n = width(op.output);
  const DType dtype = weights_.dtype(op.weight);
  float* output = value(op.output);
  eachRow(config_.plan.numBuckets, n, [&](int64_t row) {
    std::vector<uint8_t> converted;
    kernels_.embeddingRow(dtype, weights_.row(op.weight, row, converted), static_cast<int32_t>(n), output + row * n);
  });
}

void Executor::runLayerNorm(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  const float* weight = static_cast<const float*>(weights_.raw(op.weight));
  const float* bias = op.bias < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.bias));
  float* output = value(op.output);
  eachNormedRow(op, batch, [&](int64_t row) {
    kernels_.layerNorm(input + row * n, weight, bias, op.epsilon, static_cast<int32_t>(n), output + row * n);
  });
}

// The mean of rows [rows x n] of which the one at i counts i + 1 times, summed in double precision.
static void weightedMean(const float* x, int32_t rows, int64_t n, float* y) {
  const double total = 0.5 * rows * (double(rows) + 1);
  for (int64_t column = 0; column < n; ++column) {
    double sum = 0;
    for (int32_t row = 0; row < rows; ++row) sum += double(row + 1) * x[row * n + column];
    y[column] = static_cast<float>(sum / total);
  }
}

// Row r of the output is the mean over the tokens of sequence r.
void Executor::runMeanPool(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  float* output = value(op.output);
  const int64_t mean = std::max<int64_t>(1, batch.numTokens / std::max<int64_t>(1, batch.numSequences));
  eachRow(batch.numSequences, n * mean, [&](int64_t sequence) {
    const int32_t begin = batch.queryStart[sequence], end = batch.queryStart[sequence + 1];
    if (op.weighted) return weightedMean(input + begin * n, end - begin, n, output + sequence * n);
    kernels_.meanRows(input + begin * n, end - begin, static_cast<int32_t>(n), output + sequence * n);
  });
}

void Executor::runNormalize(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  float* output = value(op.output);
  eachRow(rowsOf(op.input, batch), n,
          [&](int64_t row) { kernels_.unitRow(input + row * n, static_cast<int32_t>(n), output + row * n); });
}

void Executor::runRmsNorm(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  const float* weight = static_cast<const float*>(weights_.raw(op.weight));
  const float* residual = op.residual < 0 ? nullptr : value(op.residual);
  float* output = value(op.output);
  eachNormedRow(op, batch, [&](int64_t row) {
    kernels_.rmsNorm(input + row * n, weight, op.epsilon, residual ? residual + row * n : nullptr,
                     static_cast<int32_t>(n), output + row * n);
  });
}

void Executor::runRmsNormHeads(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const bool isPlain = op.weight < 0;
  const int32_t headWidth = isPlain ? op.columns : config_.plan.weights[static_cast<size_t>(op.weight)].columns;
  const float* weight = isPlain ? ones_.data() : static_cast<const float*>(weights_.raw(op.weight));
  float* heads = value(op.input) + op.firstColumn;
  eachRow(rowsOf(op.input, batch), int64_t(op.heads) * headWidth, [&](int64_t row) {
    for (int32_t i = 0; i < op.heads; ++i) {
      float* head = heads + row * n + int64_t(i) * headWidth;
      kernels_.rmsNorm(head, weight, op.epsilon, nullptr, headWidth, head);
    }
  });
}

// Each head has weights of its own, and no bias.
void Executor::runLayerNormHeads(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const int32_t columns = config_.plan.weights[static_cast<size_t>(op.weight)].columns, headWidth = columns / op.heads;
  const float* weight = static_cast<const float*>(weights_.raw(op.weight));
  float* heads = value(op.input) + op.firstColumn;
  eachRow(rowsOf(op.input, batch), columns, [&](int64_t row) {
    for (int32_t at = 0; at < columns; at += headWidth) {
      float* head = heads + row * n + at;
      kernels_.layerNorm(head, weight + at, nullptr, op.epsilon, headWidth, head);
    }
  });
}

template <typename Function>
void Executor::eachSpan(const PlanOp& op, const BatchView& batch, const Function& fn) {
  const int64_t n = width(op.input);
  const int64_t columns = op.columns > 0 ? op.columns : n;
  float* rows = value(op.input) + op.firstColumn;
  eachRow(rowsOf(op.input, batch), columns, [&](int64_t row) { fn(rows + row * n, static_cast<int32_t>(columns)); });
}

void Executor::runScale(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  float* rows = value(op.input) + op.firstColumn;
  eachRow(rowsOf(op.input, batch), op.columns,
          [&](int64_t row) { kernels_.scaleRow(rows + row * n, op.scale, op.columns); });
}

// A NaN stays one.
void Executor::runClamp(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  float* rows = value(op.input) + op.firstColumn;
  eachRow(rowsOf(op.input, batch), op.columns, [&](int64_t row) {
    float* x = rows + row * n;
    for (int32_t i = 0; i < op.columns; ++i) x[i] = std::min(std::max(x[i], op.least), op.most);
  });
}

void Executor::runXielu(const PlanOp& op, const BatchView& batch) {
  eachSpan(op, batch, [&](float* values, int32_t count) { kernels_.xieluRow(values, op.xielu, count); });
}

void Executor::runAddScaled(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  const float* weight = static_cast<const float*>(weights_.raw(op.weight));
  float* output = value(op.output);
  eachRow(rowsOf(op.input, batch), n, [&](int64_t row) {
    for (int64_t i = 0; i < n; ++i) output[row * n + i] += input[row * n + i] * weight[i];
  });
}

void Executor::runSoftCap(const PlanOp& op, const BatchView& batch) {
  eachSpan(op, batch, [&](float* values, int32_t count) { kernels_.softCapRow(values, op.softCap, count); });
}

// If the next op is a product that needs its input rounded, the thread that made a row rounds it at once.
template <typename Function>
void Executor::eachNormedRow(const PlanOp& op, const BatchView& batch, const Function& norm) {
  const int64_t rows = rowsOf(op.output, batch), n = width(op.output);
  const PlanOp* next = currentOp_ + 1 < config_.plan.ops.size() ? &config_.plan.ops[currentOp_ + 1] : nullptr;
  if (!next || next->input != op.output || !roundsInput(*next)) return eachRow(rows, n, norm);
  const DType dtype = packedOfOp_[currentOp_ + 1][0].dtype;
  const float* normed = value(op.output);
  eachRow(rows, n, [&](int64_t row) {
    norm(row);
    kernels_.roundRow(dtype, normed + row * n, static_cast<int32_t>(n), static_cast<int32_t>(row),
                      static_cast<int32_t>(rows), rounded_);
  });
  roundedOp_ = currentOp_ + 1;
}

// True if the op is a product whose weights need its input rounded, those of its first part at least.
bool Executor::roundsInput(const PlanOp& op) const {
  return (op.kind == OpKind::kLinear || op.kind == OpKind::kGatedLinear) &&
         kernels_.roundedBytes(weights_.dtype(op.weight), 1, static_cast<int32_t>(width(op.input))) > 0;
}

// Input of part `part` of a product, rounded once for all its panels and rows; null if its weights need no rounding.
const void* Executor::roundedInput(const PlanOp& op, size_t part, const BatchView& batch) {
  const DType dtype = packedOfOp_[currentOp_][part].dtype;
  if (kernels_.roundedBytes(dtype, 1, static_cast<int32_t>(width(op.input))) == 0) return nullptr;
  if (part == 0 && roundedOp_ == currentOp_) return rounded_;
  const int64_t rows = rowsOf(op.input, batch), k = width(op.input);
  const float* input = value(op.input);
  eachRow(rows, k, [&](int64_t row) {
    kernels_.roundRow(dtype, input + row * k, static_cast<int32_t>(k), static_cast<int32_t>(row),
                      static_cast<int32_t>(rows), rounded_);
  });
  return rounded_;
}

// The adapters that change the running product, by row; null: none.
const AdapterRow* Executor::adapterRows(const PlanOp& op, const BatchView& batch) {
  if (config_.plan.values[static_cast<size_t>(op.input)].rows != RowKind::kTokens) return nullptr;
  return adapters_.rowsOf(static_cast<int32_t>(currentOp_), value(op.input), batch.numTokens, pool_);
}

// The parts of a stacked weight that is stored in several formats are products of their own, of neighbouring columns.
void Executor::runLinear(const PlanOp& op, const BatchView& batch) {
  const int32_t k = static_cast<int32_t>(width(op.input));
  const AdapterRow* adapters = adapterRows(op, batch);
  for (size_t i = 0; i < packedOfOp_[currentOp_].size(); ++i) {
    const PackedPart& part = packedOfOp_[currentOp_][i];
    // A rank computes as many columns of the output as it has rows of the weight.
    const int32_t column = op.firstColumn + part.firstColumn;
    const float* bias = op.bias < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.bias)) + part.firstColumn;
    const GemmArgs args{.x = value(op.input),
                        .ldx = k,
                        .packed = part.packed,
                        .dtype = part.dtype,
                        .n = part.columns,
                        .k = k,
                        .bias = bias,
                        .residual = op.residual < 0 ? nullptr : value(op.residual) + column,
                        .ldr = width(op.output),
                        .y = value(op.output) + column,
                        .ldy = width(op.output),
                        .activation = op.activation,
                        .rounded = roundedInput(op, i, batch),
                        .roundedRows = static_cast<int32_t>(rowsOf(op.input, batch)),
                        .adapters = adapters,
                        .firstPanel = part.firstPanel,
                        .stored = part.stored};
    eachTile(rowsOf(op.input, batch), part.dtype, part.columns, k,
             [&](int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd, int32_t thread) {
               multiply(args, {rowBegin, rowEnd, panelBegin, panelEnd}, thread);
             });
  }
}

// A gate and an up matrix in formats of their own are two products, whose rows are multiplied at the end: the operations of a gated
// product, in its order.
void Executor::runMixedGatedLinear(const PlanOp& op, const BatchView& batch) {
  const std::vector<PackedPart>& parts = packedOfOp_[currentOp_];
  const int32_t k = static_cast<int32_t>(width(op.input)), n = parts[0].columns;
  const int64_t rows = rowsOf(op.input, batch), ldy = width(op.output);
  float* gate = value(op.output) + op.firstColumn;
  const AdapterRow* adapters = adapterRows(op, batch);
  for (size_t i = 0; i < 2; ++i) {
    const GemmArgs args{.x = value(op.input),
                        .ldx = k,
                        .packed = parts[i].packed,
                        .dtype = parts[i].dtype,
                        .n = n,
                        .k = k,
                        .bias = op.bias < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.bias)) + i * n,
                        .residual = nullptr,
                        .ldr = 0,
                        .y = i == 0 ? gate : up_,
                        .ldy = i == 0 ? ldy : n,
                        .activation = i == 0 ? op.activation : Activation::kNone,
                        .rounded = roundedInput(op, i, batch),
                        .roundedRows = static_cast<int32_t>(rows),
                        .adapters = adapters,
                        .firstPanel = parts[i].firstPanel,
                        .stored = parts[i].stored};
    eachTile(rows, parts[i].dtype, n, k,
             [&](int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd, int32_t thread) {
               multiply(args, {rowBegin, rowEnd, panelBegin, panelEnd}, thread);
             });
  }
  eachRow(rows, n, [&](int64_t row) {
    float* y = gate + row * ldy;
    const float* up = up_ + row * n;
    for (int32_t column = 0; column < n; ++column) y[column] *= up[column];
  });
}

void Executor::runGatedLinear(const PlanOp& op, const BatchView& batch) {
  if (packedOfOp_[currentOp_].size() > 1) return runMixedGatedLinear(op, batch);
  const PackedPart& part = packedOfOp_[currentOp_][0];
  const int32_t k = static_cast<int32_t>(width(op.input));
  const GatedGemmArgs args{.x = value(op.input),
                           .ldx = k,
                           .packed = part.packed,
                           .dtype = part.dtype,
                           .n = part.columns,
                           .k = k,
                           .bias = op.bias < 0 ? nullptr : static_cast<const float*>(weights_.raw(op.bias)),
                           .y = value(op.output) + op.firstColumn,
                           .ldy = width(op.output),
                           .activation = op.activation,
                           .rounded = roundedInput(op, 0, batch),
                           .roundedRows = static_cast<int32_t>(rowsOf(op.input, batch)),
                           .adapters = adapterRows(op, batch),
                           .stored = part.stored};
  eachTile(rowsOf(op.input, batch), part.dtype, part.columns, k,
           [&](int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd, int32_t thread) {
             multiply(args, {rowBegin, rowEnd, panelBegin, panelEnd}, thread);
           });
}

// Norms heads in place, where the op norms them after they have turned.
void Executor::normTurned(const PlanOp& op, int32_t weight, int32_t heads, float* first) const {
  if (weight < 0) return;
  const float* scales = static_cast<const float*>(weights_.raw(weight));
  const int32_t headDim = config_.plan.headsOf(op).headDim;
  for (float* head = first; head < first + int64_t(heads) * headDim; head += headDim)
    kernels_.rmsNorm(head, scales, op.epsilon, nullptr, headDim, head);
}

void Executor::runRopeAndCache(const PlanOp& op, const BatchView& batch) {
  const LayerHeads& heads = config_.plan.headsOf(op);
  const int32_t half = config_.plan.rotaryDimOf(op.table) / 2;
  const int64_t stride = width(op.input);
  float* qkv = value(op.input);
  const KvLayer kv = layer(op.layer), freshKv = freshLayer(op.layer);
  const bool anyFresh = fresh_.any() && !op.queriesOnly;
  if (anyFresh) beginFreshChunks(op.layer, batch);
  // The keys of 32 tokens of a prompt share cache lines: two threads would take the lines from each other.
  const bool isPrompts = batch.numTokens >= 2 * static_cast<int64_t>(batch.numSequences);
  eachRow(
      batch.numTokens, stride,
      [&](int64_t row) {
        float* q = qkv + row * stride;
        float* k = q + heads.queryWidth();
        const float* v = k + heads.keyWidth();
        const float* cosine = anglesOf(op.table, row);
        if (sinkQueries_) {
          const int64_t rowFloats = heads.queryWidth();
          float* sinkQ = sinkQueries_ + row * rowFloats;
          const float* ofSinks = sinkAngles_ + row * 2 * half;
          std::memcpy(sinkQ, q, static_cast<size_t>(rowFloats) * sizeof(float));
          kernels_.rope(sinkQ, heads.numHeads, heads.headDim, half, ofSinks, ofSinks + half);
          normTurned(op, op.queryNorm, heads.numHeads, sinkQ);
        }
        // The heads of k follow those of q and are rotated by the same angles.
        const int32_t turned = heads.numHeads + (op.queriesOnly ? 0 : heads.numKvHeads);
        if (half > 0) kernels_.rope(q, turned, heads.headDim, half, cosine, cosine + half);
        normTurned(op, op.queryNorm, heads.numHeads, q);
        if (op.queriesOnly) return;
        normTurned(op, op.keyNorm, heads.numKvHeads, k);
        const int64_t freshSlot = anyFresh ? fresh_.slotOf(row) : -1;
        if (freshSlot < 0) kernels_.storeKv(kv, k, v, batch.slots[row]);
        else kernels_.storeKv(freshKv, k, v, freshSlot);
      },
      isPrompts ? kStepTokens : 1);
}

void Executor::beginFreshChunks(int32_t index, const BatchView& batch) {
  const KvLayer kv = layer(index);
  const size_t bytes = kv.bytesPerBlock();
  const AttentionWindow window = config_.window();
  pool_.run(static_cast<int32_t>(fresh_.chunks().size()), [&](int32_t i, int32_t) {
    const FreshChunk& chunk = fresh_.chunks()[static_cast<size_t>(i)];
    uint8_t* first = freshBlocks_ + bytes * static_cast<size_t>(chunk.place);
    const int32_t numBlocks = chunk.endBlock - chunk.firstBlock;
    std::memset(first + bytes * static_cast<size_t>(numBlocks - 1), 0, bytes);
    if (!chunk.beginsInBlock) return;
    const int32_t* table = batch.blockTables.data + chunk.sequence * batch.maxBlocks;
    const size_t block = static_cast<size_t>(table[window.entryOf(chunk.firstBlock)]);
    std::memcpy(first, static_cast<const uint8_t*>(kv.base) + bytes * block, bytes);
  });
}

void Executor::keepFreshRows(const PlanOp& op, const BatchView& batch) {
  const LayerHeads& heads = config_.plan.headsOf(op);
  const int64_t stride = width(op.input);
  const float* qkv = value(op.input);
  const KvLayer kv = layer(op.layer);
  const std::vector<int32_t>& rows = fresh_.keptRows();
  eachRow(static_cast<int64_t>(rows.size()), stride, [&](int64_t i) {
    const int64_t row = rows[static_cast<size_t>(i)];
    const float* k = qkv + row * stride + heads.queryWidth();
    kernels_.storeKv(kv, k, k + heads.keyWidth(), batch.slots[row]);
  });
}

// Gives the columns that this rank has computed to the readers, and takes those of the others, as many rows at a time as a
// slot holds: all ranks cut the rows alike.
//
//   value   | rank 0's columns | rank 1's columns | rank 2's |      each copied to the same place of the readers' value
void Executor::runExchange(const PlanOp& op, const BatchView& batch) {
  GroupMemory& group = *config_.group;
  const int64_t rows = rowsOf(op.input, batch), n = width(op.input);
  const ExchangePart* own = nullptr;
  int32_t widest = 1;
  for (const ExchangePart& part : op.parts) {
    widest = std::max(widest, part.count);
    if (part.rank == group.rank()) own = &part;
  }
  const auto isMine = [&](int32_t reader) { return reader == group.rank(); };
  const bool sends = own != nullptr && !std::all_of(op.readers.begin(), op.readers.end(), isMine);
  const bool takes = std::any_of(op.readers.begin(), op.readers.end(), isMine);
  const bool mayReceive = !begun_.empty() && !hasReceived_;
  const GroupMemory::Beside beside = mayReceive ? [this] { return receiveEarly(); } : GroupMemory::Beside();
  const auto waited = [&](const auto& wait) {
    const Stopwatch watch(profiling_ ? &profile_.waiting : nullptr);
    return wait();
  };
  const int64_t rowsOfSlot = static_cast<int64_t>(kSlotBytes / sizeof(float)) / widest;
  for (int64_t begin = 0; begin < rows; begin += rowsOfSlot) {
    const int64_t count = std::min(rowsOfSlot, rows - begin);
    float* first = value(op.input) + begin * n;
    if (sends) {
      const size_t bytes = static_cast<size_t>(own->count) * sizeof(float);
      float* slot = waited([&] { return group.beginPublication(op.channel, op.readers, beside); });
      giveColumns(slot, first + own->first, count, own->count, n);
      group.publish(op.channel, bytes * static_cast<size_t>(count));
    }
    if (!takes) continue;
    std::vector<const ExchangePart*> left;
    for (const ExchangePart& part : op.parts)
      if (!isMine(part.rank)) left.push_back(&part);
    while (!left.empty()) {
      // Those that have come are copied while the others are waited for.
      const auto hasCome = [&](const ExchangePart* part) { return group.hasPublication(part->rank, op.channel); };
      const auto found = std::find_if(left.begin(), left.end(), hasCome);
      const auto next = found == left.end() ? left.begin() : found;
      const ExchangePart& part = **next;
      left.erase(next);
      const size_t bytes = static_cast<size_t>(part.count) * sizeof(float);
      const float* slot = waited([&] { return group.awaitPublication(part.rank, op.channel, beside); });
      eachRow(count, part.count,
              [&](int64_t row) { std::memcpy(first + row * n + part.first, slot + row * part.count, bytes); });
      group.take(part.rank, op.channel);
    }
  }
}

// Copies some columns of rows of width n into a slot, which others have read last.
void Executor::giveColumns(float* slot, const float* columns, int64_t rows, int64_t count, int64_t n) {
  if (count % kLineFloats == 0 && rows * count >= kStreamedFloats) {
    return eachRowRange(rows, count, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) streamFloats(slot + row * count, columns + row * n, count);
      endStreaming();
    });
  }
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  eachRow(rows, count, [&](int64_t row) { std::memcpy(slot + row * count, columns + row * n, bytes); });
}

void Executor::runSelectRows(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input);
  const float* input = value(op.input);
  float* output = value(op.output);
  const int32_t rows = op.rowsOfOutput;
  if (op.meanOfRows) {
    return eachRow(batch.numLogitRows, n * rows, [&](int64_t row) {
      kernels_.meanRows(input + batch.logitRows[row] * n, rows, static_cast<int32_t>(n), output + row * n);
    });
  }
  for (int64_t row = 0; row < batch.numLogitRows; ++row) {
    std::memcpy(output + row * n * rows, input + batch.logitRows[row] * n,
                static_cast<size_t>(n * rows) * sizeof(float));
  }
}

void Executor::runRowInput(const PlanOp& op, const BatchView& batch) {
  const size_t floats = static_cast<size_t>(batch.numTokens * width(op.output));
  std::memcpy(value(op.output), batch.rowInputs.data, floats * sizeof(float));
}

void Executor::runKeepRows(const PlanOp& op, const BatchView& batch) {
  if (batch.keptRows.length == 0) return;
  const size_t floats = static_cast<size_t>(batch.numTokens * width(op.input));
  std::memcpy(batch.keptRows.data, value(op.input), floats * sizeof(float));
}

void Executor::runJoin(const PlanOp& op, const BatchView& batch) {
  const int64_t n = width(op.input), m = width(op.by);
  const float *first = value(op.input), *last = value(op.by);
  float* output = value(op.output);
  eachRow(rowsOf(op.input, batch), n + m, [&](int64_t row) {
    float* joined = output + row * (n + m);
    std::memcpy(joined, first + row * n, static_cast<size_t>(n) * sizeof(float));
    std::memcpy(joined + n, last + row * m, static_cast<size_t>(m) * sizeof(float));
  });
}

}  // namespace skein

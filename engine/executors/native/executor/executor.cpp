#include "executor/executor.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "coded_error.h"
#include "executor/finite.h"
#include "executor/stopwatch.h"

namespace skein {
namespace {

constexpr size_t kAlignFloats = 64 / sizeof(float);

ExecutorConfig checked(ExecutorConfig config) {
  checkConfig(config);
  findParts(config);
  return config;
}

KvLayer layerShape(const ExecutorConfig& config, const LayerHeads& heads) {
  return {nullptr, config.kvDtype, config.tokensPerBlock, heads.numKvHeads, heads.headDim};
}

// The greatest of what the layers need.
template <typename Need>
size_t mostOfLayers(const ExecutorConfig& config, const Need& need) {
  size_t most = 0;
  for (const LayerHeads& heads : config.plan.layers) most = std::max(most, static_cast<size_t>(need(heads)));
  return most;
}

// Floats that the rounded input of one product takes at most.
size_t roundedFloats(const ExecutorConfig& config, const KernelTable& kernels, const PackedWeights& weights) {
  size_t bytes = 0;
  for (const PlanOp& op : config.plan.ops) {
    if (op.kind != OpKind::kLinear && op.kind != OpKind::kGatedLinear) continue;  // experts have memory of their own
    const PlanValue& input = config.plan.values[static_cast<size_t>(op.input)];
    const int32_t rows = config.capacity(input.rows);
    for (const DType dtype : weights.dtypes(op.weight))
      bytes = std::max(bytes, kernels.roundedBytes(dtype, rows, input.width));
  }
  return roundUp(bytes, sizeof(float)) / sizeof(float);
}

// Floats that the up half of a gated product takes at most where its halves are products of their own.
size_t upFloats(const ExecutorConfig& config) {
  size_t floats = 0;
  for (const PlanOp& op : config.plan.ops) {
    if (op.kind != OpKind::kGatedLinear) continue;
    const std::vector<WeightPart>& parts = config.plan.weights[static_cast<size_t>(op.weight)].parts;
    const PlanValue& output = config.plan.values[static_cast<size_t>(op.output)];
    const int32_t rows = config.capacity(output.rows);
    if (parts.size() > 1) floats = std::max(floats, static_cast<size_t>(rows) * static_cast<size_t>(parts[1].rows));
  }
  return floats;
}

// True if queries are needed twice: towards the sinks a query counts from its position in the cache, so with RoPE it is
// rotated a second time.
bool needsSinkQueries(const ExecutorConfig& config) { return config.window().sinks > 0 && config.plan.rotaryDim > 0; }

WorkspaceLayout layOutWorkspace(const ExecutorConfig& config, const KernelTable& kernels,
                                const AttentionSchedules& schedules, const PackedWeights& weights,
                                const FreshChunks& fresh) {
  WorkspaceLayout layout{};
  const auto take = [&](size_t count) {
    const size_t offset = layout.floats;
    layout.floats += roundUp(count, kAlignFloats);
    return offset;
  };
  for (const PlanSlot& slot : config.plan.slots) {
    const int32_t rows = config.capacity(slot.rows);
    // Adds one vector of room after the last row: kernels may read what follows it, but never use it.
    layout.slots.push_back(take(static_cast<size_t>(rows) * static_cast<size_t>(slot.width) + kAlignFloats));
  }
  size_t angles = 0;
  for (int32_t table = -1; table < static_cast<int32_t>(config.plan.ropeTables.size()); ++table) {
    layout.ropes.push_back(angles);
    angles += static_cast<size_t>(config.maxNumTokens) * static_cast<size_t>(config.plan.rotaryDimOf(table));
  }
  layout.ropeAngles = take(angles);
  size_t partials = 0, sharedFloats = 0;
  for (const AttentionSchedule& schedule : schedules.all()) {
    const size_t ofUnit = roundUp(schedule.partialFloats(), kAlignFloats);
    partials = std::max(partials, ofUnit);
    sharedFloats = std::max(sharedFloats, ofUnit * static_cast<size_t>(schedule.sharedAreas()));
  }
  size_t attentionFloats = 0;
  for (const AttentionSchedule& schedule : schedules.all())
    attentionFloats =
        std::max(attentionFloats, kernels.attentionScratchFloats(schedule.heads().headDim, schedule.mostPairs()));
  layout.attentionScratchFloats = roundUp(attentionFloats, kAlignFloats);
  layout.queryScratchFloats =
      roundUp(static_cast<size_t>(AttentionSchedule::kRowBlock) *
                  mostOfLayers(config, [](const LayerHeads& heads) { return heads.queryWidth(); }),
              kAlignFloats);
  layout.threadScratchFloats = layout.attentionScratchFloats + layout.queryScratchFloats + partials;
  layout.threadScratch = take(layout.threadScratchFloats * static_cast<size_t>(config.threads));
  layout.sharedPartials = take(sharedFloats);
  layout.rounded = take(roundedFloats(config, kernels, weights));
  layout.storedPanelFloats = storedPanelFloats(config, kernels, weights);
  layout.storedPanels = take(layout.storedPanelFloats * static_cast<size_t>(config.threads));
  layout.up = take(upFloats(config));
  const ExpertFloats experts = expertFloats(config, kernels, weights);
  layout.expertPairs = take(experts.pairs);
  layout.expertInner = take(experts.inner);
  layout.expertUp = take(experts.up);
  layout.expertClamped = take(experts.clamped);
  layout.expertSums = take(experts.sums);
  const size_t blockBytes =
      mostOfLayers(config, [&](const LayerHeads& heads) { return layerShape(config, heads).bytesPerBlock(); });
  layout.freshBlocks = take(blockBytes / sizeof(float) * static_cast<size_t>(fresh.maxBlocks()));
  if (needsSinkQueries(config)) {
    const size_t tokens = static_cast<size_t>(config.maxNumTokens);
    layout.sinkAngles = take(tokens * static_cast<size_t>(config.plan.rotaryDim));
    layout.sinkQueries =
        take(tokens * mostOfLayers(config, [](const LayerHeads& heads) { return heads.queryWidth(); }));
  }
  layout.relative = take(RelativeTables::floats(config));
  return layout;
}

// Where each layer's cache begins in the pool, and after the last where it ends; each begins at a page of its own.
std::vector<size_t> kvOffsets(const ExecutorConfig& config, const std::string& what) {
  std::vector<size_t> offsets{0};
  for (const LayerHeads& heads : config.plan.layers) {
    const size_t bytes = checkedProduct(layerShape(config, heads).bytesPerBlock(),
                                        static_cast<size_t>(config.numBlocks), what.c_str());
    offsets.push_back(checkedSum(offsets.back(), roundUp(bytes, 4096), what.c_str()));
  }
  return offsets;
}

// Checks one head's part of a block. Quants are finite if their scales are.
bool isFinite(const KvLayer& kv, const char* head) {
  const size_t elements = kv.quantBytes() / kv.elementBytes();
  switch (kv.dtype) {
    case DType::kF32: return allFinite(reinterpret_cast<const uint32_t*>(head), elements, kExponentOfF32);
    case DType::kBf16: return allFinite(reinterpret_cast<const uint16_t*>(head), elements, kExponentOfBf16);
    default:
      return allFinite(reinterpret_cast<const uint32_t*>(head + kv.quantBytes()),
                       size_t(2) * static_cast<size_t>(kv.tokensPerBlock), kExponentOfF32);
  }
}

}  // namespace

Executor::Executor(ExecutorConfig config)
    : config_(checked(std::move(config))),
      turns_(config_.threads),
      kernels_(kernelsOf(config_.isa)),
      pool_(config_.threads, config_.places),
      weights_(config_, kernels_, pool_),
      expertReads_(config_, weights_),
      adapters_(config_, kernels_),
      schedules_(config_),
      fresh_(config_) {
  for (const PlanOp& op : config_.plan.ops) {
    if (op.kind == OpKind::kRmsNormHeads && op.weight < 0 && static_cast<size_t>(op.columns) > ones_.size())
      ones_.resize(static_cast<size_t>(op.columns), 1.0f);
    const std::vector<OpProduct> products = productsOf(op);
    packedOfOp_.push_back(products.size() == 1 ? weights_.packedFor(products[0]) : std::vector<PackedPart>());
    expertsOfOp_.emplace_back();
    for (size_t i = 0; op.kind == OpKind::kExperts && i < products.size(); i += 2)
      expertsOfOp_.back().push_back({weights_.packedFor(products[i]), weights_.packedFor(products[i + 1])});
  }
  for (const std::vector<ExpertWeights>& experts : expertsOfOp_)
    if (experts.size() > expertOffset_.size()) expertOffset_.resize(experts.size());
  const std::vector<PlanOp>& ops = config_.plan.ops;
  // A rank of an early stage, which selects no rows, may get the rows of logits of another.
  const auto select = std::find_if(ops.begin(), ops.end(), [&](const PlanOp& op) {
    return op.kind == OpKind::kSelectRows || op.kind == OpKind::kMeanPool ||
           (op.kind == OpKind::kExchange &&
            config_.plan.values[static_cast<size_t>(op.input)].rows == RowKind::kLogits);
  });
  firstLogitOp_ = static_cast<size_t>(select - ops.begin());
  isStaged_ =
      config_.plan.ranks > 1 && config_.plan.rank == 0 && select != ops.end() && select->kind == OpKind::kExchange;
  passRows_.resize(static_cast<size_t>(config_.maxLogitRows));
  passTargets_.resize(static_cast<size_t>(config_.maxLogitRows));
  if (config_.plan.ranks > 1 && config_.group == nullptr)
    throw std::runtime_error("The plan of one rank needs the memory of its group.");
  takeKvPool();
  takeStatePool();
  turnConvWeights();
  takeWorkspace();
  runSetUp();
  for (int32_t thread = 0; config_.plan.hasLogits() && config_.plan.logits >= 0 && thread < config_.threads; ++thread) {
    samplers_.push_back(std::make_unique<RowSampler>(kernels_, config_.plan.vocabSize));
  }
  try {
    provider_ = std::thread([this] { provideMemory(); });
  } catch (const std::system_error&) {
    // Without a spare thread the first iterations wait for their pages.
  }
}

Executor::~Executor() {
  if (provider_.joinable()) provider_.join();
}

// Provides memory for the first iterations. Of the weights it is all, since every iteration reads them; of the workspace,
// where rows of tokens come first and then those of logits, it is as much as nearly every batch needs; of the KV pool it is
// the blocks that are handed out first.
void Executor::provideMemory() const {
  constexpr size_t kProvidedWorkspaceBytes = size_t(48) << 20, kProvidedKvBytes = size_t(64) << 20;
  weights_.provide();
  workspace_->provide(0, std::min(workspace_->size(), kProvidedWorkspaceBytes), true);
  const size_t layers = config_.plan.layers.size();
  for (size_t layer = 0; layer < layers; ++layer) {
    const size_t ofLayer = std::min(kvOffset_[layer + 1] - kvOffset_[layer], kProvidedKvBytes / layers);
    // Pages come from the node of the thread that zeroes the layer's blocks: see prepare().
    pool_.stayBeside(static_cast<int32_t>(layer * static_cast<size_t>(config_.threads) / layers));
    kvPool_.provide(kvOffset_[layer], ofLayer, true);
  }
}

// Takes one region in which the layers' pools lie one after the other.
void Executor::takeKvPool() {
  const std::string what = "The KV pool (" + std::to_string(config_.plan.numLayers()) + " layers x " +
                           std::to_string(config_.numBlocks) + " blocks of " + std::to_string(config_.tokensPerBlock) +
                           " tokens)";
  kvOffset_ = kvOffsets(config_, what);
  kvPool_ = Mapping::anonymous(kvOffset_.back(), what);
}

void Executor::takeWorkspace() {
  const WorkspaceLayout layout = layOutWorkspace(config_, kernels_, schedules_, weights_, fresh_);
  const std::string what = "The workspace for " + std::to_string(config_.maxNumTokens) + " tokens and " +
                           std::to_string(config_.maxLogitRows) + " rows of logits";
  workspace_ =
      std::make_shared<Mapping>(Mapping::anonymous(checkedProduct(layout.floats, sizeof(float), what.c_str()), what));
  float* base = reinterpret_cast<float*>(workspace_->data());
  slotOffset_ = layout.slots;
  ropeAngles_ = base + layout.ropeAngles;
  ropeOffset_ = layout.ropes;
  threadScratch_ = base + layout.threadScratch;
  sharedPartials_ = base + layout.sharedPartials;
  rounded_ = base + layout.rounded;
  storedPanels_ = base + layout.storedPanels;
  storedPanelFloats_ = layout.storedPanelFloats;
  up_ = base + layout.up;
  expertPairs_ = base + layout.expertPairs;
  expertInner_ = base + layout.expertInner;
  expertUp_ = base + layout.expertUp;
  expertClamped_ = base + layout.expertClamped;
  expertSums_ = base + layout.expertSums;
  if (needsSinkQueries(config_)) {
    sinkAngles_ = base + layout.sinkAngles;
    sinkQueries_ = base + layout.sinkQueries;
  }
  freshBlocks_ = reinterpret_cast<uint8_t*>(base + layout.freshBlocks);
  relative_ = RelativeTables(config_, base + layout.relative);
  attentionScratchFloats_ = layout.attentionScratchFloats;
  queryScratchFloats_ = layout.queryScratchFloats;
  threadScratchFloats_ = layout.threadScratchFloats;
}

// The ops over distances, which come first: what they make stays as it is.
void Executor::runSetUp() {
  const std::vector<PlanOp>& ops = config_.plan.ops;
  const auto first = std::find_if(ops.begin(), ops.end(), [&](const PlanOp& op) { return !config_.plan.isSetUp(op); });
  firstStepOp_ = static_cast<size_t>(first - ops.begin());
  if (firstStepOp_ == 0) return;
  const ComputeTurns::Hold turn(turns_);
  runOps(0, firstStepOp_, BatchView{});
}

float* Executor::value(int32_t index) const {
  const size_t slot = static_cast<size_t>(config_.plan.values[static_cast<size_t>(index)].slot);
  return reinterpret_cast<float*>(workspace_->data()) + slotOffset_[slot];
}

int64_t Executor::rowsOf(int32_t index, const BatchView& batch) const {
  const RowKind rows = config_.plan.values[static_cast<size_t>(index)].rows;
  if (rows == RowKind::kDistances) return config_.plan.numBuckets;
  return rows == RowKind::kTokens ? batch.numTokens : batch.numLogitRows;
}

KvLayer Executor::layer(int32_t index) const {
  KvLayer kv = layerShape(config_, config_.plan.layers[static_cast<size_t>(index)]);
  kv.base = kvPool_.data() + kvOffset_[static_cast<size_t>(index)];
  return kv;
}

KvLayer Executor::freshLayer(int32_t index) const {
  KvLayer kv = layerShape(config_, config_.plan.layers[static_cast<size_t>(index)]);
  kv.base = freshBlocks_;
  return kv;
}

MemoryReport Executor::memory() const {
  return {weights_.bytes() + adapters_.weightBytes(), kvPool_.size() + statePool_.size() + stateLog_.size(),
          workspace_->size() + adapters_.workspaceBytes(), expertReads_.bytes()};
}

MemoryReport Executor::measure(ExecutorConfig given) {
  const ExecutorConfig config = checked(std::move(given));
  const KernelTable& kernels = kernelsOf(config.isa);
  const AttentionSchedules schedules(config);
  const PackedWeights weights(config, kernels);
  return {.weightBytes = weights.bytes(),
          .kvCacheBytes = kvOffsets(config, "The KV pool").back() + statePoolBytes(config),
          .workspaceBytes =
              layOutWorkspace(config, kernels, schedules, weights, FreshChunks(config)).floats * sizeof(float),
          .experts = expertBytesOf(config, weights)};
}

void Executor::setProfiling(bool on) {
  profiling_ = on;
  profile_ = {};
}

void Executor::announce() {
  if (config_.group != nullptr && config_.group->rank() == 0) config_.group->ring();
}

void Executor::forward(const BatchView& batch) {
  announce();
  run(batch);
}

// The others wait for what this rank would have sent: an error ends the group.
template <typename Body>
void Executor::guarded(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    config_.group->abort("Rank " + std::to_string(config_.plan.rank) + " of " + std::to_string(config_.plan.ranks) +
                         " failed in a step: " + error.what());
    throw CodedError(kGroupLost, error.what());
  }
}

void Executor::run(const BatchView& batch) {
  if (config_.group == nullptr) return compute(batch);
  guarded([&] { compute(batch); });
}

void Executor::runStage(const BatchView& batch) {
  guarded([&] { runFront(batch); });
  begun_.push_back(&batch);
}

void Executor::receive() {
  guarded([&] {
    const BatchView& oldest = *begun_.front();
    if (!hasReceived_) {
      // Set first: a wait for the output must not receive it on its own, which would take what the wait is for.
      hasReceived_ = true;
      runBack(oldest);
    }
    logitRows_ = oldest.numLogitRows;
  });
  begun_.pop_front();
  hasReceived_ = false;
}

bool Executor::outputHasCome() const {
  const PlanOp& op = config_.plan.ops[firstLogitOp_];
  return config_.group->hasPublication(op.parts.front().rank, op.channel);
}

bool Executor::receiveEarly() {
  if (begun_.empty() || hasReceived_) return false;
  if (!outputHasCome()) return true;
  // The sender is at this output and sends all of it, so that this ends, whatever waits.
  const size_t waiting = currentOp_;
  hasReceived_ = true;
  runBack(*begun_.front());
  currentOp_ = waiting;
  return false;
}

void Executor::compute(const BatchView& batch) {
  const ComputeTurns::Hold turn(turns_);
  runFront(batch);
  runBack(batch);
}

void Executor::runFront(const BatchView& batch) {
  const ComputeTurns::Hold turn(turns_);
  logitRows_ = 0;
  {
    const Stopwatch watch(profiling_ ? &profile_.prepare : nullptr);
    prepare(batch);
  }
  runOps(firstStepOp_, firstLogitOp_, batch);
}

// Runs the ops after the last layer, for the rows whose logits leave the executor and then for those that are sampled.
void Executor::runBack(const BatchView& batch) {
  const ComputeTurns::Hold turn(turns_);
  returnTokenRows(batch);
  runOps(firstLogitOp_, config_.plan.ops.size(), batch);
  logitRows_ = batch.numLogitRows;
  returnSampledRows(batch);
}

void Executor::runOps(size_t begin, size_t end, const BatchView& batch) {
  for (currentOp_ = begin; currentOp_ < end; ++currentOp_) {
    ComputeTurns::yield(turns_);
    const PlanOp& op = config_.plan.ops[currentOp_];
    double& seconds =
        op.kind == OpKind::kLinear && config_.plan.values[static_cast<size_t>(op.output)].rows == RowKind::kLogits
            ? profile_.logits
            : profile_.ops[static_cast<size_t>(op.kind)];
    const Stopwatch watch(profiling_ ? &seconds : nullptr);
    runOp(op, batch);
  }
}

void Executor::sample(const SamplingView& sampling, const SamplingOutputView& output) {
  const ComputeTurns::Hold turn(turns_);
  const Stopwatch watch(profiling_ ? &profile_.sampling : nullptr);
  float* rows = logits();
  const int64_t vocabSize = config_.plan.vocabSize;
  output.topStart[0] = 0;
  for (int64_t row = 0; row < sampling.numRows; ++row) {
    output.topStart[row + 1] = output.topStart[row] + std::max(0, sampling.numTopLogProbs[row]);
  }
  pool_.run(static_cast<int32_t>(sampling.numRows), [&](int32_t row, int32_t thread) {
    samplers_[static_cast<size_t>(thread)]->sample(sampling, output, row, rows + row * vocabSize);
  });
}

void Executor::copyBlocks(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target) {
  const ComputeTurns::Hold turn(turns_);
  pool_.run(config_.plan.numLayers(), [&](int32_t index, int32_t) {
    const KvLayer kv = layer(index);
    const size_t bytes = kv.bytesPerBlock();
    uint8_t* base = static_cast<uint8_t*>(kv.base);
    for (int64_t i = 0; i < source.length; ++i) {
      std::memmove(base + bytes * static_cast<size_t>(target[i]), base + bytes * static_cast<size_t>(source[i]), bytes);
    }
  });
}

bool Executor::areFinite(const ArrayView<const int32_t>& blocks) {
  std::atomic<bool> finite{true};
  pool_.run(config_.plan.numLayers(), [&](int32_t index, int32_t) {
    const KvLayer kv = layer(index);
    for (int64_t i = 0; i < blocks.length && finite.load(std::memory_order_relaxed); ++i) {
      bool ok = true;
      for (int32_t head = 0; head < kv.kvHeads; ++head) ok = ok && isFinite(kv, kv.head(blocks[i], head));
      if (!ok) finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite.load();
}

size_t Executor::blockOffset(size_t layer) const {
  size_t bytes = 0;
  for (size_t i = 0; i < layer; ++i) bytes += layerShape(config_, config_.plan.layers[i]).bytesPerBlock();
  return bytes;
}

size_t Executor::bytesPerBlock() const {
  return blockOffset(config_.plan.layers.size());
}

void Executor::readBlocks(const ArrayView<const int32_t>& blocks, uint8_t* target) {
  const ComputeTurns::Hold turn(turns_);
  const size_t stride = bytesPerBlock();
  pool_.run(config_.plan.numLayers(), [&](int32_t index, int32_t) {
    const KvLayer kv = layer(index);
    const size_t bytes = kv.bytesPerBlock();
    uint8_t* out = target + blockOffset(static_cast<size_t>(index));
    const uint8_t* base = static_cast<const uint8_t*>(kv.base);
    for (int64_t i = 0; i < blocks.length; ++i, out += stride) {
      std::memcpy(out, base + bytes * static_cast<size_t>(blocks[i]), bytes);
    }
  });
}

void Executor::writeBlocks(const ArrayView<const int32_t>& blocks, const uint8_t* source) {
  const ComputeTurns::Hold turn(turns_);
  const size_t stride = bytesPerBlock();
  pool_.run(config_.plan.numLayers(), [&](int32_t index, int32_t) {
    const KvLayer kv = layer(index);
    const size_t bytes = kv.bytesPerBlock();
    const uint8_t* in = source + blockOffset(static_cast<size_t>(index));
    uint8_t* base = static_cast<uint8_t*>(kv.base);
    for (int64_t i = 0; i < blocks.length; ++i, in += stride) {
      std::memcpy(base + bytes * static_cast<size_t>(blocks[i]), in, bytes);
    }
  });
}

}  // namespace skein

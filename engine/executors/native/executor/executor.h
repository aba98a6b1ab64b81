// Runs a network over packed batches: memory, the ops over the thread pool, sampling. It uses nothing of JavaScript.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "executor/adapters.h"
#include "executor/attention_schedule.h"
#include "executor/batch.h"
#include "executor/compute_turns.h"
#include "executor/expert_reads.h"
#include "executor/expert_rows.h"
#include "executor/fresh_chunks.h"
#include "executor/memory.h"
#include "executor/packed_weights.h"
#include "executor/plan.h"
#include "executor/relative_tables.h"
#include "executor/sampling.h"
#include "executor/state_log.h"
#include "executor/thread_pool.h"

namespace skein {

struct MemoryReport {
  size_t weightBytes, kvCacheBytes, workspaceBytes;
  ExpertBytes experts;  // a part of the weights
};

// Offsets and total size of the workspace, in floats.
struct WorkspaceLayout {
  std::vector<size_t> slots;
  std::vector<size_t> ropes;  // of the batch's angles and of each table's, after ropeAngles
  size_t ropeAngles, threadScratch, sharedPartials, rounded, storedPanels, up, expertPairs, expertInner, expertUp,
      expertClamped, expertSums, freshBlocks, sinkAngles, sinkQueries, relative;
  size_t attentionScratchFloats;  // of one thread
  size_t queryScratchFloats;      // of one thread: query rows of sequences that share cached blocks
  size_t threadScratchFloats;     // of one thread: both, and the partial results of one unit
  size_t storedPanelFloats;       // of one thread
  size_t floats;
};

// The rows and panels of a product that one task computes.
struct ProductShare {
  int32_t rowBegin, rowEnd, panelBegin, panelEnd;
};

// Floats that a thread needs for panels of stored weights: stored_products.cpp.
size_t storedPanelFloats(const ExecutorConfig& config, const KernelTable& kernels, const PackedWeights& weights);

// Seconds spent per kind of op since profiling was switched on.
struct Profile {
  std::array<double, kOpKinds> ops{};
  double logits = 0;  // linear ops over rows of logits
  double sampling = 0;
  double waiting = 0;  // for other ranks; a part of the time of the exchanges
  double prepare = 0;  // zeroed blocks, angles, the attention schedule
};

class Executor {
 public:
  // Checks the configuration, maps the weights and takes all memory. Throws std::exception with one sentence.
  explicit Executor(ExecutorConfig config);
  ~Executor();

  const ExecutorConfig& config() const { return config_; }
  // The batch must have passed checkBatch(). In a group all ranks compute: rank 0 rings for the others, and an error, after
  // which they would wait for this rank, ends the group.
  void forward(const BatchView& batch);
  // The parts of a forward: the ring, if this is rank 0, and the rest.
  void announce();
  void run(const BatchView& batch);
  // True if this is rank 0 of several stages, so that the ops that end in the output are those of others. Then the ops of
  // several batches may be run before the output of the first is received:
  //
  //   announce 0, runStage 0 | announce 1, runStage 1 | receive 0 | announce 2, runStage 2 | receive 1 ...
  //
  // While a stage's ops wait for others, the output of the oldest batch is received if it comes: those who send it would
  // otherwise never take what this rank sends. So a batch's memory must stay until it is received.
  bool isStaged() const { return isStaged_; }
  void runStage(const BatchView& batch);
  // Waits for the output of the oldest batch whose ops have been run.
  void receive();
  // Output of the last forward, usually logits: [logitRows() x outputWidth].
  float* logits() const { return value(config_.plan.logits); }
  int64_t logitRows() const { return logitRows_; }
  // After the caller has put rows back that it had kept.
  void setLogitRows(int64_t rows) { logitRows_ = rows; }
  // The views must have passed checkSampling().
  void sample(const SamplingView& sampling, const SamplingOutputView& output);
  // The arrays must have passed checkCopy().
  void copyBlocks(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target);
  // Copies the states of whole slots, one after the other. The arrays must have passed checkCopy().
  void copyStates(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target);
  // True if all states in these slots are finite. The array must have passed checkBlocks().
  bool areStatesFinite(const ArrayView<const int32_t>& slots);
  // Bytes of the states in a slot; 0: the network has none.
  size_t bytesPerStateSlot() const { return slotFloats_ * sizeof(float); }
  // The states of whole slots to memory outside and back, one slot after the other. As readBlocks() and writeBlocks().
  void readStates(const ArrayView<const int32_t>& slots, uint8_t* target);
  void writeStates(const ArrayView<const int32_t>& slots, const uint8_t* source);
  // True if all keys and values of these blocks are finite, in every layer. The array must have passed checkBlocks().
  bool areFinite(const ArrayView<const int32_t>& blocks);
  // Bytes of a block in all layers.
  size_t bytesPerBlock() const;
  // Whole blocks to memory outside and back, bytesPerBlock() for each: all layers of the first block, then those of the
  // second. The arrays must have passed checkBlocks(), and the memory must be as long.
  void readBlocks(const ArrayView<const int32_t>& blocks, uint8_t* target);
  void writeBlocks(const ArrayView<const int32_t>& blocks, const uint8_t* source);
  // LoRA adapters. Only between steps.
  Adapters& adapters() { return adapters_; }
  MemoryReport memory() const;
  // What is read of experts that memory does not hold.
  const ExpertReads& expertReads() const { return expertReads_; }
  // See PackedWeights::sums().
  const std::vector<PackedSum>& packedSums() const { return weights_.sums(); }
  // Result that memory() of an executor with this configuration would have, without taking any memory.
  static MemoryReport measure(ExecutorConfig config);
  // Keeps the logits' memory alive for as long as JavaScript holds a view of it.
  const std::shared_ptr<Mapping>& workspace() const { return workspace_; }

  // The executor's place in the turns of the process; each call that computes takes turns by itself.
  ComputeTurns::Client& turns() { return turns_; }

  void setProfiling(bool on);
  const Profile& profile() const { return profile_; }

 private:
  // Makes the system provide the pages that the first iterations use.
  void provideMemory() const;
  void takeKvPool();
  void takeWorkspace();
  void runSetUp();
  void takeStatePool();
  void turnConvWeights();
  static size_t statePoolBytes(const ExecutorConfig& config);

  float* value(int32_t index) const;
  int64_t width(int32_t index) const { return config_.plan.values[static_cast<size_t>(index)].width; }
  int64_t rowsOf(int32_t index, const BatchView& batch) const;
  KvLayer layer(int32_t index) const;
  float* stateOf(int32_t state, int64_t slot) const;
  // Runs an op over the tokens of each sequence, a task for each of its heads, whose states are [keyDim][valueDim].
  // argsOf(sequence, head): what the kernel takes for the sequence's rows, but the state. loggedOf(args, log, head): the same for rows
  // that a draft left in the log.
  template <typename Args, typename ArgsOf, typename LoggedOf>
  void passHeads(const PlanOp& op, const BatchView& batch, void (*kernel)(const Args&, int32_t, int32_t),
                 const ArgsOf& argsOf, const LoggedOf& loggedOf);

  template <typename Body>
  void guarded(const Body& body);
  void compute(const BatchView& batch);
  void runFront(const BatchView& batch);
  void runBack(const BatchView& batch);
  bool outputHasCome() const;
  // Receives the oldest batch's output if it has come. Returns true if there is one that has not.
  bool receiveEarly();
  void prepare(const BatchView& batch);
  void prepareAngles(const BatchView& batch);
  void turnByGrid(const float* frequencies, float scale, const int32_t* grid, float* cosine);
  // Cosines of a token's angles by one of the RoPE tables (-1: the batch's), followed by the sines.
  float* anglesOf(int32_t table, int64_t token) const;
  void runOps(size_t begin, size_t end, const BatchView& batch);
  void returnTokenRows(const BatchView& batch);
  void runPass(BatchView& pass);
  void returnSampledRows(const BatchView& batch);
  void returnRow(const ReturnedRows& rows, int64_t index, int64_t logitRow, int32_t thread) const;
  void runOp(const PlanOp& op, const BatchView& batch);
  void runEmbedding(const PlanOp& op, const BatchView& batch);
  void runAddEmbedding(const PlanOp& op, const BatchView& batch);
  void addPlaces(const PlanOp& op, const BatchView& batch);
  void runAddPromptRows(const PlanOp& op, const BatchView& batch);
  template <class Each>
  void eachPromptRow(const BatchView& batch, Each each) const;
  void runRmsNorm(const PlanOp& op, const BatchView& batch);
  void runRmsNormHeads(const PlanOp& op, const BatchView& batch);
  void runSoftCap(const PlanOp& op, const BatchView& batch);
  void runXielu(const PlanOp& op, const BatchView& batch);
  void runAddScaled(const PlanOp& op, const BatchView& batch);
  void runGate(const PlanOp& op, const BatchView& batch);
  void runShortConv(const PlanOp& op, const BatchView& batch);
  void runGatedDelta(const PlanOp& op, const BatchView& batch);
  void runSelectiveScan(const PlanOp& op, const BatchView& batch);
  void runScale(const PlanOp& op, const BatchView& batch);
  void runClamp(const PlanOp& op, const BatchView& batch);
  // Logs the inputs of rows that are drafts: columns [first, first + count) of `values`, to which `place` is added in the log.
  void logDrafts(const PlanOp& op, const BatchView& batch, const float* values, int64_t stride, int64_t count,
                 int64_t place);
  void runLayerNormHeads(const PlanOp& op, const BatchView& batch);
  void normTurned(const PlanOp& op, int32_t weight, int32_t heads, float* first) const;
  void runLayerNorm(const PlanOp& op, const BatchView& batch);
  void runLinear(const PlanOp& op, const BatchView& batch);
  void runGatedLinear(const PlanOp& op, const BatchView& batch);
  void runMixedGatedLinear(const PlanOp& op, const BatchView& batch);
  void runExperts(const PlanOp& op, const BatchView& batch);
  void runExpertPass(const PlanOp& op, int64_t begin, int64_t rows);
  template <typename RowOf>
  bool runExpertProduct(const PlanOp& op, const ExpertProduct& product, const RowOf& rowOf);
  void multiplyExpert(const PlanOp& op, const ExpertProduct& product, const PackedPart& part, bool isWhole,
                      const ExpertTask& task, int32_t thread);
  void multiplyClamped(const PlanOp& op, GemmArgs args, const ExpertTask& task, float* y, int32_t thread);
  void joinHalves(const PlanOp& op, int32_t inner);
  // Calls fn(values, count) for the columns of each row that an op changes in place.
  template <typename Function>
  void eachSpan(const PlanOp& op, const BatchView& batch, const Function& fn);
  // Runs norm(row) for each row of the op's output, and rounds each row at once if the product after the op needs
  // that.
  template <typename Function>
  void eachNormedRow(const PlanOp& op, const BatchView& batch, const Function& norm);
  bool roundsInput(const PlanOp& op) const;
  const void* roundedInput(const PlanOp& op, size_t part, const BatchView& batch);
  const AdapterRow* adapterRows(const PlanOp& op, const BatchView& batch);
  void runRopeAndCache(const PlanOp& op, const BatchView& batch);
  // Fills the blocks of fresh chunks around the chunks: older tokens before them, zeros after them.
  void beginFreshChunks(int32_t layer, const BatchView& batch);
  // Writes the part of fresh chunks that the window keeps into the pool.
  void keepFreshRows(const PlanOp& op, const BatchView& batch);
  KvLayer freshLayer(int32_t layer) const;
  // Where a layer's part of a block begins, outside of the pool: after those of the layers before it.
  size_t blockOffset(size_t layer) const;
  void runAttention(const PlanOp& op, const BatchView& batch);
  void runSelectRows(const PlanOp& op, const BatchView& batch);
  void runRowInput(const PlanOp& op, const BatchView& batch);
  void runKeepRows(const PlanOp& op, const BatchView& batch);
  void runJoin(const PlanOp& op, const BatchView& batch);
  void runMeanPool(const PlanOp& op, const BatchView& batch);
  void runNormalize(const PlanOp& op, const BatchView& batch);
  void runExchange(const PlanOp& op, const BatchView& batch);
  void runDistanceRows(const PlanOp& op);
  void giveColumns(float* slot, const float* columns, int64_t rows, int64_t count, int64_t n);
  // Runs fn(row) for each row, on one thread if the rows are too few to be worth a barrier. Tasks begin at multiples of
  // `together` rows.
  template <typename Function>
  void eachRow(int64_t rows, int64_t rowElements, const Function& fn, int64_t together = 1);
  // The same with fn(rowBegin, rowEnd) for the rows of each task.
  template <typename Function>
  void eachRowRange(int64_t rows, int64_t rowElements, const Function& fn, int64_t together = 1);
  // Computes a share of a product: by packed weights, or by stored ones with the memory of a thread.
  void multiply(const GemmArgs& args, const ProductShare& share, int32_t thread);
  void multiply(const GatedGemmArgs& args, const ProductShare& share, int32_t thread);
  // Runs fn(rowBegin, rowEnd, panelBegin, panelEnd, thread) over a matrix product of rows x panels with inner dimension k.
  template <typename Function>
  void eachTile(int64_t rows, DType weights, int32_t n, int32_t k, const Function& fn);

  ExecutorConfig config_;
  ComputeTurns::Client turns_;
  const KernelTable& kernels_;
  ThreadPool pool_;
  PackedWeights weights_;
  std::vector<std::vector<PackedPart>> packedOfOp_;      // by op, none for ops without packed weights
  std::vector<std::vector<ExpertWeights>> expertsOfOp_;  // by op, none for ops without experts
  ExpertReads expertReads_;
  std::vector<float> ones_;  // the weight of heads that are normed without one
  ExpertRows expertRows_;                                // of the running op
  std::vector<size_t> expertOffset_;                     // where each expert's rows begin in expertPairs_, in bytes
  Mapping kvPool_;
  std::vector<size_t> kvOffset_;     // of each layer's cache in the pool, and after the last its end, in bytes
  Mapping statePool_;                // [slot][states of all layers]
  size_t slotFloats_ = 0;
  std::vector<size_t> stateOffset_;  // of each state in a slot, in floats
  StateLog stateLog_;
  std::vector<float> replayedInputs_;  // of one convolution [sequence][taps - 1][columns]
  std::vector<std::vector<float>>
      lostStates_;  // by thread: a state that is not kept, and a row of output that is never read
  std::map<int32_t, std::vector<float>> convWeights_;  // [taps][columns] of each convolution, by weight
  std::shared_ptr<Mapping> workspace_;
  std::vector<size_t> slotOffset_;  // in floats
  float* ropeAngles_ = nullptr;      // [the batch's, then each table's][token][cosine rotaryDim / 2 | sine rotaryDim / 2]
  std::vector<size_t> ropeOffset_;   // of the batch's angles in ropeAngles_, and of each table's
  float* sinkAngles_ = nullptr;   // the same for the tokens' cache positions, if sinkQueries_ is used
  float* sinkQueries_ = nullptr;  // of one layer [token][numHeads * headDim]; null without sinks or without RoPE
  float* threadScratch_ = nullptr;   // [thread][attention scratch | query rows | partial results of one unit]
  float* sharedPartials_ = nullptr;  // [area][partial results of one unit]
  float* rounded_ = nullptr;         // the input of the running op, for products with quantised weights
  float* storedPanels_ = nullptr;    // [thread][panels of stored weights that are not quantised]
  size_t storedPanelFloats_ = 0;     // of one thread
  float* up_ = nullptr;              // the up half of a gated product in two formats
  // Of one pass over the rows of an op with experts, each pair of a row and an expert with a place of its own.
  float* expertPairs_ = nullptr;  // inputs of the running product, as its kernels take them
  float* expertInner_ = nullptr;  // [pairs][inner]
  // The same, for the up half in another format than the gate; [pairs][gate, up] of halves that are clamped.
  float* expertUp_ = nullptr;
  float* expertClamped_ = nullptr;  // [thread][kClampedFloats]
  float* expertSums_ = nullptr;     // [pairs][width of the output]
  uint8_t* freshBlocks_ = nullptr;  // of one layer, in the pool's layout
  size_t attentionScratchFloats_ = 0;
  size_t queryScratchFloats_ = 0;
  size_t threadScratchFloats_ = 0;
  Adapters adapters_;
  AttentionSchedules schedules_;
  FreshChunks fresh_;
  RelativeTables relative_;
  std::vector<std::unique_ptr<RowSampler>> samplers_;                 // by thread
  size_t firstStepOp_ = 0;                                            // those before it have been run once and for all
  size_t firstLogitOp_ = 0;                                           // this op and all after it have rows of logits
  std::vector<int32_t> passRows_;                                     // rows of T of one pass: see returned_rows.cpp
  std::vector<std::pair<const ReturnedRows*, int64_t>> passTargets_;  // request and index of each row
  int64_t logitRows_ = 0;
  bool isStaged_ = false;
  std::deque<const BatchView*> begun_;  // whose stage has been run and whose output has not been asked for
  bool hasReceived_ = false;            // the oldest of these
  size_t currentOp_ = 0;
  size_t roundedOp_ = 0;  // the product whose input the op before it has rounded; 0, which is no product, at first
  bool profiling_ = false;
  Profile profile_;
  std::thread provider_;  // runs provideMemory() while the caller goes on
};

}  // namespace skein

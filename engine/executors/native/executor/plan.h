// The executor's form of a network: the plan of network/plan.ts, parsed once and checked.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "executor/group_memory.h"
#include "executor/thread_places.h"
#include "kernels/kernels.h"

namespace skein {

// Rows of tokens, of logits, or of buckets of distances.
enum class RowKind : int32_t { kTokens, kLogits, kDistances };

struct PlanValue {
  RowKind rows;
  int32_t width;
  int32_t slot;
};

struct PlanSlot {
  RowKind rows;
  int32_t width;
};

// Consecutive rows of a matrix, or entries of a vector.
struct WeightSlice {
  int32_t first, count;
};

// Rows of a matrix that are stored, and packed, in one format: a stack of matrices may be stored in several.
struct WeightPart {
  size_t tensor;                         // index into the config's tensors
  int32_t rows;                          // of this rank
  std::vector<WeightSlice> slices = {};  // of the tensor's rows; none: all
};

struct PlanWeight {
  std::string name;
  bool matrix;  // a vector has one row and is f32
  int32_t rows, columns;
  // The tensor of weights.bin that it is made of: the whole, or the slices of a rank, one after the other.
  std::string tensor = {};
  int32_t tensorRows = 0, tensorColumns = 0;
  std::vector<WeightSlice> slices = {};
  std::vector<WeightPart> parts = {};  // from the first row on; findParts() fills it
};

enum class OpKind : int32_t {
  kEmbedding,
  kAddEmbedding,
  kRmsNorm,
  kRmsNormHeads,
  kLayerNormHeads,
  kLayerNorm,
  kLinear,
  kGatedLinear,
  kRopeAndCache,
  kAttention,
  kSoftCap,
  kXielu,
  kAddScaled,
  kGate,
  kShortConv,
  kGatedDelta,
  kSelectiveScan,
  kScale,
  kClamp,
  kSelectRows,
  kJoin,
  kMeanPool,
  kNormalize,
  kExchange,
  kExperts,
  kDistanceRows,
  kDistanceProducts,
  kDistanceBiases,
  kAddPromptRows,
  kRowInput,
  kKeepRows
};
constexpr int32_t kOpKinds = static_cast<int32_t>(OpKind::kKeepRows) + 1;  // after the last of them
// The key by which addEmbedding chooses a row of its table.
enum class LookupKind : int32_t { kPositions, kTokenTypes, kTokenIds, kPlaces };
// Rows that kPlaces adds for a token, each times its share.
constexpr int32_t kPlacesOfToken = 4;
const char* opName(OpKind kind);

// Columns of a value that one rank computes.
struct ExchangePart {
  int32_t rank, first, count;
};

// A matrix that an op multiplies by: an index into weights. gated: it stacks a gate over what the gate is multiplied with. isExpert: it is an
// expert's, which some steps read and others do not.
struct OpProduct {
  int32_t weight;
  bool gated;
  bool isExpert = false;
};

// How a mixture shares out its rows among its experts: see network/expert-rule.ts.
enum class ExpertScoring : int32_t { kSoftmax, kSigmoid, kSparseMixer };
struct ExpertRule {
  int32_t used = 0;
  bool normalize = false;
  ExpertScoring scoring = ExpertScoring::kSoftmax;
  int32_t groups = 1, usedGroups = 1, groupTop = 1;
  double factor = 1, sumEpsilon = 0, jitter = 0;
  bool isSigmoid() const { return scoring == ExpertScoring::kSigmoid; }
};

// Fields that an op does not use are -1 (indices) or 0.
struct PlanOp {
  OpKind kind;
  int32_t input = -1;  // qkv for kRopeAndCache and kAttention; the value itself for ops in place
  int32_t output = -1;
  int32_t residual = -1;
  int32_t weight = -1;  // index into weights
  int32_t bias = -1;
  int32_t layer = -1;
  int32_t table = -1;     // of kRopeAndCache: index into ropeTables; -1: the batch's frequencies
  // Of kRopeAndCache and kAttention: the value has queries alone, which meet the keys and values that another op has written for the layer.
  bool queriesOnly = false;
  int32_t window = 0;     // of kAttention: the layer's own; 0: none
  bool bothWays = false;  // of kAttention: a token attends also to what follows it
  bool segments = false;  // of kAttention: a token attends to its segment of the sequence alone
  bool withinPictures = false;  // of kAttention: a token of a picture attends also to those of it that follow
  // Of kAttention, kDistanceProducts and kDistanceBiases: a table of what distances add to scores; -1: none.
  int32_t relative = -1;
  int32_t sinkLogits = -1;  // of kAttention: vector of a further score of each head; -1: none
  // Of kDistanceProducts: first columns of the heads of queries and of keys; -1: there are none.
  int32_t queriesColumn = -1, keysColumn = -1;
  // First column that the op changes: of kRmsNormHeads and kLayerNormHeads, with heads; of a rank's part of products,
  // attention, kSoftCap and kXielu.
  int32_t firstColumn = 0;
  int32_t heads = 0;
  int32_t columns = 0;  // of kSoftCap, kXielu and kScale: how many; 0: all. Of kRmsNormHeads without a weight: those of a head
  // Of kExchange.
  int32_t channel = 0;
  std::vector<ExchangePart> parts = {};
  std::vector<int32_t> readers = {};
  // Of kExperts: the value with each row's scores, the matrices of each expert, how a row is shared out among them, and the bias of the choice.
  int32_t scores = -1;
  std::vector<int32_t> gateUps = {}, downs = {};
  ExpertRule rule = {};
  int32_t choiceBias = -1;
  int32_t shareScales = -1;  // vector of each expert's factor on its shares; -1: none
  std::vector<int32_t> gateUpBiases = {}, downBiases = {};  // vectors of each expert's products; empty: they have none
  bool ungated = false;                                     // an expert's way up has no gate
  // An expert makes of gate and up what ClampedSwiglu of network/plan.ts says; limit 0: it does not.
  float clampAlpha = 0, clampLimit = 0;
  // Of kSelectRows: rows that make one of the output, side by side, or their mean.
  int32_t rowsOfOutput = 1;
  bool meanOfRows = false;
  bool weighted = false;                       // of kMeanPool: the row at position i counts i + 1 times
  LookupKind lookup = LookupKind::kPositions;  // of kAddEmbedding
  Activation activation = Activation::kNone;
  // Of kRopeAndCache: vectors by which heads are normed after they have turned, with epsilon; -1: none.
  int32_t queryNorm = -1, keyNorm = -1;
  Xielu xielu = {};  // of kXielu
  // Of kGate: the value whose columns are the factors. Of kJoin: the value whose columns come last. Of kGatedDelta: the value with the gates.
  // Of kSelectiveScan: the value that has the steps from column byFirst on.
  int32_t by = -1, byFirst = 0;
  int32_t per = 1;  // of kGate: columns that each factor is for
  // Of kShortConv, kGatedDelta and kSelectiveScan: index into states, and their shape. A scan's groups are keyHeads, its heads valueHeads,
  // and its states [keyDim x valueDim] each.
  int32_t state = -1;
  int32_t taps = 0;
  int32_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0;
  int32_t decay = -1, decayBias = -1, skip = -1;  // indices into weights
  float leastStep = 0, mostStep = 0;              // of kSelectiveScan
  // Of kGatedDelta: heads of values of a key head are as many apart as there are key heads. decay holds rates less than 0.
  bool tiled = false, rates = false;
  float epsilon = 0;
  float scale = 0;    // of kAttention, kEmbedding, kAddEmbedding and kScale
  float softCap = 0;  // of kAttention (0: none) and kSoftCap
  float least = 0, most = 0;  // of kClamp
};

// Heads of a layer, and of the queries that read its cache: a row of qkv has those of queries, of keys and of values.
struct LayerHeads {
  int32_t numHeads = 1, numKvHeads = 1, headDim = 1;

  int32_t headsPerKvHead() const { return numHeads / numKvHeads; }
  int32_t queryWidth() const { return numHeads * headDim; }
  int32_t keyWidth() const { return numKvHeads * headDim; }
  int32_t qkvWidth() const { return queryWidth() + 2 * keyWidth(); }
  bool operator==(const LayerHeads&) const = default;
};

struct NetworkPlan {
  // The plan of one rank of a group; alone there is one.
  int32_t rank = 0, ranks = 1;
  // Width of a prompt's own rows, where another rank may look them up; 0: the plan's ops say it.
  int32_t rowsOfPrompts = 0;
  int32_t vocabSize = 0;
  int32_t outputWidth = 0;  // width of the output's rows: vocabSize, unless the network is an encoder
  std::vector<LayerHeads> layers;  // that keep something of each token
  int32_t rotaryDim = 0;
  // Axis that each of the batch's frequencies turns by: 0 time, 1 height, 2 width. Empty: all by the one position of a token.
  std::vector<int32_t> ropeAxes;
  std::vector<std::vector<float>> ropeTables;  // inverse frequencies, half as many each as the columns that they rotate
  // Buckets of the distances of a key from its query, from -reach to reach; those beyond have that of the nearest. Empty: no
  // score depends on distances.
  std::vector<int32_t> distanceBuckets;
  int32_t numBuckets = 0;
  std::vector<int32_t> states;  // numbers in f32 that layers keep of a sequence as a whole
  bool bothWays = false;        // tokens attend also to what follows them, in all layers
  bool withinPictures = false;  // tokens of a picture attend also to those of it that follow, in some layers
  bool wholeSequences = false;  // a step has each of its sequences as a whole
  std::vector<PlanWeight> weights;
  std::vector<PlanValue> values;
  std::vector<PlanSlot> slots;
  std::vector<PlanOp> ops;
  // Products of all plans that share the packed file, in its order; empty: those of ops.
  std::vector<OpProduct> packed;
  int32_t logits = -1;  // -1: another rank has the output

  bool hasLogits() const { return outputWidth == vocabSize; }
  int32_t numLayers() const { return static_cast<int32_t>(layers.size()); }
  const LayerHeads& headsOf(const PlanOp& op) const { return layers[static_cast<size_t>(op.layer)]; }
  // True if all layers have the same heads, attend to the same positions and rotate by the same angles.
  bool layersAreAlike() const {
    for (const LayerHeads& heads : layers)
      if (heads != layers.front()) return false;
    for (const PlanOp& op : ops)
      if (op.window > 0 || op.table >= 0) return false;
    return true;
  }
  // Columns of a head that a table rotates; -1: those of the batch's frequencies.
  int32_t rotaryDimOf(int32_t table) const {
    return table < 0 ? rotaryDim : 2 * static_cast<int32_t>(ropeTables[static_cast<size_t>(table)].size());
  }
  // True for an op that is run once, when the executor is opened: what it makes is the same for all steps.
  bool isSetUp(const PlanOp& op) const {
    if (op.kind == OpKind::kDistanceRows || op.kind == OpKind::kDistanceProducts || op.kind == OpKind::kDistanceBiases)
      return true;
    const size_t written = static_cast<size_t>(op.output >= 0 ? op.output : op.input);
    return written < values.size() && values[written].rows == RowKind::kDistances;
  }
  // Width of the rows that a prompt may bring: an embedding, and what kAddPromptRows adds after it; 1 if no op reads any.
  int32_t promptRowWidth() const {
    int32_t most = std::max(1, rowsOfPrompts);
    for (const PlanOp& op : ops) {
      const bool reads = op.kind == OpKind::kEmbedding || op.kind == OpKind::kAddPromptRows;
      if (reads) most = std::max(most, op.firstColumn + values[static_cast<size_t>(op.output)].width);
    }
    return most;
  }
};

// One tensor of weights.bin, or of the checkpoint's file that the engine was made of.
struct WeightTensor {
  std::string name;  // of its weight
  DType dtype;
  int64_t rows, columns, offset, byteLength;
  // CRC-32 of the tensor's bytes; -1 if the engine has none.
  int64_t checksum = -1;
  int64_t firstRow = 0;  // of its weight, of which others have the rows before and after
  // Where its rows lie in the checkpoint's file; none: it lies in weights.bin.
  std::vector<ConvertJob> jobs = {};
};

struct ExecutorConfig {
  NetworkPlan plan;
  std::vector<WeightTensor> tensors;
  std::string weightsFile;
  std::string packedFile;
  // Matrices are read where the checkpoint's file has them, and none is packed; `held` has the other tensors, in the place of weights.bin.
  bool staysStored = false;
  std::vector<uint8_t> held = {};
  // Memory does not hold all experts: see expert_reads.h.
  bool expertsFromDisk = false;
  Isa isa = Isa::kScalar;
  int32_t threads = 1;
  int32_t maxNumTokens = 0, maxNumSequences = 0, maxLogitRows = 0, maxSeqLen = 0;
  int32_t numBlocks = 0, tokensPerBlock = 0;
  int32_t numStateSlots = 0;   // places for the states of a sequence
  int32_t numDraftSlots = 0;   // the first of them, whose sequences may have drafts
  int32_t stateDraftRows = 0;  // most rows of such a draft
  DType kvDtype = DType::kF32;
  int32_t maxAttentionWindow = 0;  // 0: no window
  int32_t sinkTokens = 0;          // number of the window's tokens that are sinks
  int32_t maxAdapters = 0;         // slots for LoRA adapters
  int32_t maxLoraRank = 0;
  // Processors of each thread; empty: none has a place.
  ThreadPlaces places = {};
  // Weights get pages of their own, each touched first by the thread that reads it.
  bool hasFarMemory = false;
  // Memory that the ranks share; null: there is one rank.
  std::shared_ptr<GroupMemory> group = nullptr;

  // Most rows of a value.
  int32_t capacity(RowKind rows) const {
    return rows == RowKind::kTokens ? maxNumTokens : rows == RowKind::kLogits ? maxLogitRows : plan.numBuckets;
  }
  AttentionWindow window() const;
  // Number of entries in a sequence's table once it holds `tokens` tokens.
  int64_t tableEntries(int64_t tokens) const;
};

// The products of an op: none for one that multiplies by no matrix, two for each expert.
std::vector<OpProduct> productsOf(const PlanOp& op);

// Most experts of an op, most that a row goes to, and most groups of them.
constexpr int32_t kMostExperts = 4096, kMostUsedExperts = 1024, kMostExpertGroups = 256;
// Experts that sparsemixer chooses.
constexpr int32_t kSparseUsed = 2;

// Most rows of a value that make one of another.
constexpr int32_t kMostRowsOfOutput = 1024;

// Most heads of a selective scan.
constexpr int32_t kMostScanHeads = 4096;

// Most slots for adapters, and the highest rank of an adapter.
constexpr int32_t kMostAdapters = 4096, kMostLoraRank = 1024;

// Finds the tensors that each weight is made of. Throws std::runtime_error if one is missing, or they are not the weight's rows.
void findParts(ExecutorConfig& config);

// Throws std::runtime_error with one sentence that names the op and what does not agree: unknown indices, shapes,
// values read before they are written or after their slot was reused, limits out of range.
void checkConfig(const ExecutorConfig& config);

}  // namespace skein

// The kernels' interface: plain functions over raw memory, one table per instruction set, chosen once at start. The
// kernels never allocate or lock, and know nothing of threads; the executor splits the work over rows and panels.
//
// The promise that every kernel keeps: a row's bits depend only on its own inputs, never on how many rows, which
// tile, panel range or thread served it. Each output of a GEMM is one chain of fused multiply-adds over k = 0..K-1
// in f32; tiles change how many chains run side by side, never a chain's order. With quantised weights it is one chain
// over the groups of 32, whose sums are exact integers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace skein {

enum class DType : int32_t {
  kF32 = 0,
  kBf16 = 1,
  kInt8 = 2,
  kInt4 = 3,
  kQ4K = 4,
  kQ5K = 5,
  kQ6K = 6,
  kQ5_0 = 7,
  kQ5_1 = 8,
  kIq4Nl = 9,
  kIq4Xs = 10,
  kMxfp4 = 11
};

// Weights of fewer than 16 bits come in groups of 32 along a row. A row-major matrix holds each row as blocks, one after
// another:
//
//   int8    f16 scale               | 32 signed bytes                                 w = scale * q
//   int4    f16 scale | f16 minimum | 16 bytes: element i low, i + 16 high            w = scale * q + minimum, q in 0 .. 15
//   q5_0    f16 scale               | 32 fifth bits | 16 bytes as int4's              w = scale * (q - 16)
//   q5_1    f16 scale | f16 minimum | 32 fifth bits | 16 bytes as int4's              w = scale * q + minimum, q in 0 .. 31
//   iq4_nl  f16 scale               | 16 bytes as int4's                              w = scale * kIq4Values[q]
//   mxfp4   exponent (one byte)     | 16 bytes as int4's                              w = 2^(exponent - 128) * kMxfp4Values[q]
//
// The last block of a row is filled up; the filling is never used. The layouts are GGML's; int8's is that of Q8_0, int4's of
// Q4_1.
//
// The others come in superblocks of 256, as GGML stores them. Their groups have whole numbers as scales, which the
// superblock's own scale multiplies, and a row holds whole superblocks:
//
//   q4_k    f16 d | f16 dmin | 8 scales and 8 minima of 6 bits | 128 bytes of nibbles        w = d * scale * q - dmin * minimum
//   q5_k    the same, with 32 bytes of fifth bits before the nibbles
//   q6_k    128 bytes of nibbles | 64 bytes of upper bits | 16 signed scales | f16 d         w = d * scale * (q - 32)
//   iq4_xs  f16 d | 8 scales of 6 bits, 32 too large | 128 bytes of nibbles                  w = d * (scale - 32) * kIq4Values[q]
//
// The groups are 32 elements long, those of q6_k 16.
constexpr int32_t kGroup = 32, kSuperblock = 256;

// Values of the quants of iq4_nl and iq4_xs, and twice those of mxfp4 (E2M1), which are then whole numbers.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Formats of weights, in the order of DType: elements of a block (1: no blocks), its bytes, and whether the format is made of
// other numbers or only kept where a checkpoint has it.
struct WeightFormat {
  DType dtype;
  const char* name;
  int32_t blockElements, blockBytes;
  bool made;
};
constexpr WeightFormat kWeightFormats[] = {
    {DType::kF32, "f32", 1, 4, true},
    {DType::kBf16, "bf16", 1, 2, true},
    {DType::kInt8, "int8", kGroup, 34, true},
    {DType::kInt4, "int4", kGroup, 20, true},
    {DType::kQ4K, "q4_k", kSuperblock, 144, false},
    {DType::kQ5K, "q5_k", kSuperblock, 176, false},
    {DType::kQ6K, "q6_k", kSuperblock, 210, false},
    {DType::kQ5_0, "q5_0", kGroup, 22, false},
    {DType::kQ5_1, "q5_1", kGroup, 24, false},
    {DType::kIq4Nl, "iq4_nl", kGroup, 18, false},
    {DType::kIq4Xs, "iq4_xs", kSuperblock, 136, false},
    {DType::kMxfp4, "mxfp4", kGroup, 17, false},
};
static constexpr const WeightFormat& formatOf(DType dtype) { return kWeightFormats[int32_t(dtype)]; }
static constexpr int32_t blockElements(DType dtype) { return formatOf(dtype).blockElements; }
static constexpr size_t blockBytes(DType dtype) { return size_t(formatOf(dtype).blockBytes); }
static constexpr bool isQuantized(DType dtype) { return blockElements(dtype) > 1; }
static constexpr bool isSuperblocked(DType dtype) { return blockElements(dtype) == kSuperblock; }
// Bytes of one row-major row.
static constexpr size_t rowBytes(DType dtype, int64_t columns) {
  return size_t((columns + blockElements(dtype) - 1) / blockElements(dtype)) * blockBytes(dtype);
}

// Types in which a GGUF stores the rows of a matrix, for products that read a mapped file as it lies (stored_products.h). dtype: the
// format that packing makes of the type; such products have its bits.
enum class StoredType : int32_t {
  kF32 = 0,
  kF16 = 1,
  kBf16 = 2,
  kQ4_0 = 3,
  kQ4_1 = 4,
  kQ5_0 = 5,
  kQ5_1 = 6,
  kQ8_0 = 7,
  kQ3K = 8,
  kQ4K = 9,
  kQ5K = 10,
  kQ6K = 11,
  kIq4Nl = 12,
  kIq4Xs = 13,
  kMxfp4 = 14
};
struct StoredFormat {
  StoredType type;
  const char* name;  // GGML's
  DType dtype;
  int32_t blockElements, blockBytes;
};
constexpr StoredFormat kStoredFormats[] = {
    {StoredType::kF32, "F32", DType::kF32, 1, 4},
    {StoredType::kF16, "F16", DType::kBf16, 1, 2},
    {StoredType::kBf16, "BF16", DType::kBf16, 1, 2},
    {StoredType::kQ4_0, "Q4_0", DType::kInt4, kGroup, 18},
    {StoredType::kQ4_1, "Q4_1", DType::kInt4, kGroup, 20},
    {StoredType::kQ5_0, "Q5_0", DType::kQ5_0, kGroup, 22},
    {StoredType::kQ5_1, "Q5_1", DType::kQ5_1, kGroup, 24},
    {StoredType::kQ8_0, "Q8_0", DType::kInt8, kGroup, 34},
    {StoredType::kQ3K, "Q3_K", DType::kQ6K, kSuperblock, 110},
    {StoredType::kQ4K, "Q4_K", DType::kQ4K, kSuperblock, 144},
    {StoredType::kQ5K, "Q5_K", DType::kQ5K, kSuperblock, 176},
    {StoredType::kQ6K, "Q6_K", DType::kQ6K, kSuperblock, 210},
    {StoredType::kIq4Nl, "IQ4_NL", DType::kIq4Nl, kGroup, 18},
    {StoredType::kIq4Xs, "IQ4_XS", DType::kIq4Xs, kSuperblock, 136},
    {StoredType::kMxfp4, "MXFP4", DType::kMxfp4, kGroup, 17},
};
static constexpr const StoredFormat& formatOf(StoredType type) { return kStoredFormats[int32_t(type)]; }

// Consecutive rows of a matrix, in the order of its outputs, and where a file has them.
struct StoredPiece {
  const uint8_t* data;
  int32_t rows;
  // Rows of a head whose halves lie by turns, as llama.cpp stores queries and keys for its own RoPE; 0: the rows lie in order.
  int32_t headRows;
};

// A matrix as a file stores it. Rows are those of one type, in one or more pieces.
struct StoredMatrix {
  StoredType type;
  int32_t columns, pieces;
  const StoredPiece* piece;
  int64_t rowBytes() const {
    const StoredFormat& format = formatOf(type);
    return int64_t(columns / format.blockElements) * format.blockBytes;
  }
  const uint8_t* row(int32_t index) const {
    const StoredPiece* of = piece;
    for (; index >= of->rows; of++) index -= of->rows;
    return of->data + placeOf(index, of->headRows) * rowBytes();
  }
  //   output (halves)   0 1 2 3 | 4 5 6 7      row = half * size + i
  //   file (pairs)      0 4 1 5 2 6 3 7        row = 2 * i + half
  static int64_t placeOf(int32_t index, int32_t headRows) {
    if (headRows == 0) return index;
    const int32_t inside = index % headRows, size = headRows / 2;
    return int64_t(index - inside) + 2 * (inside % size) + inside / size;
  }
};

enum class Activation : int32_t {
  kNone = 0,
  kSilu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kTanh = 4,
  kRelu = 5,
  kReluSquared = 6,
  kSigmoid = 7,
  kQuickGelu = 8
};

// Numbers of an xIELU.
struct Xielu {
  float alphaPositive = 0, alphaNegative = 0, beta = 0, epsilon = 0;
};

// Form of an adapter's numbers. Those of 16 bits are taken where they have every value exactly, so the form changes no result.
enum class AdapterType : int32_t { kF32 = 0, kBf16 = 1, kF16 = 2 };

// The rows of one part of B within one panel of a product's weight: see low_rank.h.
struct AdapterBlock {
  const void* weights;
  int32_t first, rank;  // the values of t that it multiplies
  int32_t begin, end;   // outputs of the panel that it changes
};

// What an adapter changes in one product: B (A x), A and B stacked where the weight stacks several matrices.
struct AdapterProduct {
  AdapterType aType, bType;
  int32_t rank;  // of all parts together
  const void* a;
  const AdapterBlock* blocks;
  const int32_t* firstBlock;  // [panels + 1]: of each packed panel, in the order of the packed weight
  int32_t panels;
  // What is needed soon, to be prefetched: the blocks of each panel, [panels + 1] places in one piece of memory, and what the adapter's
  // next product needs first, which lies after them.
  const char* const* panelStart;
  size_t nextBytes;
};

// A row of a batch with its adapter; product null: without one.
struct AdapterRow {
  const AdapterProduct* product;
  const float* t;  // A x
  bool leads;      // it is the first row of its adapter in the batch, and prefetches for all of them
};

// y[m, n] = activation(x[m, k] * w[n, k]^T + (B t)[m, n] + bias[n]) + residual[m, n], B t of the row's adapter
struct GemmArgs {
  const float* x;  // [rows, k], row stride ldx floats
  int64_t ldx;
  const void* packed;  // packWeights() of w
  DType dtype;
  int32_t n, k;
  const float* bias;      // [n] or null
  const float* residual;  // row stride ldr, or null; may be y itself
  int64_t ldr;
  float* y;  // row stride ldy
  int64_t ldy;
  Activation activation;
  // Rows that roundRow() made of x; used instead of x if roundedBytes() is not 0.
  const void* rounded;
  int32_t roundedRows;
  // By row: its adapter. Null: no row has one.
  const AdapterRow* adapters = nullptr;
  // Number that the adapters' blocks give to panel 0: panels of the same weight that lie before `packed`.
  int32_t firstPanel = 0;
  // The weight where it is not packed.
  const StoredMatrix* stored = nullptr;
};

// y[m, n] = activation(x * gate^T + (B t)_gate + bias_gate) * (x * up^T + (B t)_up + bias_up); w stacks gate [n, k] over up [n, k].
// Packed so that panel p holds gate panel p followed by up panel p.
struct GatedGemmArgs {
  const float* x;
  int64_t ldx;
  const void* packed;  // packGatedWeights()
  DType dtype;
  int32_t n, k;       // n of the output (half of the stacked rows)
  const float* bias;  // [2 n] (gate, then up) or null
  float* y;
  int64_t ldy;
  Activation activation;
  const void* rounded;  // as in GemmArgs
  int32_t roundedRows;
  const AdapterRow* adapters = nullptr;  // as in GemmArgs
  int32_t firstPanel = 0;                // always 0
  const StoredMatrix* stored = nullptr;  // as in GemmArgs: gate [n, k] over up [n, k]
};

// One layer of the paged KV pool. One block of one KV head holds
//
//   K: groups of G = min(32, tokensPerBlock) tokens, each group transposed  [tokensPerBlock / G][headDim][G]
//   V: token after token                                                    [tokensPerBlock][headDim]
//
//   layer -> [block][kvHead][ K | V ]     element type = dtype
//
// K is transposed so that 32 scores of one query are built side by side; G never changes a sum's order.
//
// With kInt8 a token's key in one head is turned (kv_rotation.h), and then whole numbers in -127 .. 127 times one f32 scale. So is its
// value, which is not turned. Two numbers that one instruction multiplies stand side by side: of two dimensions in K, of two tokens in V.
// The scales follow; the scale of a row with NaN or infinity is NaN.
//
//   K: [tokensPerBlock / G][ceil(headDim / 2)][G][2]     V: [tokensPerBlock / 2][headDim][2]
//   layer -> [block][kvHead][ K | V | scales of K [tokensPerBlock] | scales of V [tokensPerBlock] ]
//
// Bytes of a token in one head: f32 8 headDim, bf16 4 headDim, int8 2 headDim + 8 (even headDim).
struct KvLayer {
  void* base;
  DType dtype;
  int32_t tokensPerBlock;  // a power of two >= 8
  int32_t kvHeads;
  int32_t headDim;
  size_t elementBytes() const { return dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1; }
  // Bytes of one token in one head.
  size_t keyBytes() const { return dtype == DType::kInt8 ? size_t(headDim + 1) / 2 * 2 : headDim * elementBytes(); }
  size_t valueBytes() const { return headDim * elementBytes(); }
  // Bytes of one block in one head: up to its scales, and with them.
  size_t quantBytes() const { return tokensPerBlock * (keyBytes() + valueBytes()); }
  size_t headBytes() const { return quantBytes() + (dtype == DType::kInt8 ? size_t(tokensPerBlock) * 8 : 0); }
  size_t bytesPerBlock() const { return kvHeads * headBytes(); }
  char* head(int32_t block, int32_t kvHead) const {
    return static_cast<char*>(base) + size_t(block) * bytesPerBlock() + size_t(kvHead) * headBytes();
  }
  // First key of the group of tokens that starts at `offset` of a block.
  const void* keys(int32_t block, int32_t kvHead, int32_t offset) const {
    return head(block, kvHead) + size_t(offset) * keyBytes();
  }
};

// The positions that a row attends to, and the places of a sequence's blocks when it keeps only a window of them.
//
// The row at position q attends to t if t <= q and (t < sinks or t > q - recent). Block b of a sequence (positions b *
// tokensPerBlock and on) is entry b of its table if b < sinkBlocks; the others take turns:
//
//   sinkBlocks 1, ringBlocks 3      block   0 | 1 2 3 | 4 5 6 | 7 8 ...
//                                   entry   0 | 1 2 3 | 1 2 3 | 1 2 ...
//
// So the newest block's entry may hold, after the newest token, the rest of the block ringBlocks before it: recent <=
// ringBlocks * tokensPerBlock keeps these apart.
struct AttentionWindow {
  int32_t recent = 0;  // 0: no window; all positions up to the row's own are attended to, entry b is block b
  int32_t sinks = 0;
  int32_t sinkBlocks = 0;
  int32_t ringBlocks = 0;

  bool on() const { return recent > 0; }
  // Position in the cache of the row at `position` of its sequence: past the window it stays the window's last one.
  int32_t cachePosition(int32_t position) const { return position < recent + sinks ? position : recent + sinks - 1; }
  int32_t entryOf(int32_t block) const {
    return block < sinkBlocks ? block : sinkBlocks + (block - sinkBlocks) % ringBlocks;
  }
};

// What the distance of a key from its query adds to their score. Rows have a column for each distance, the position of the key
// less that of the query; that of distance 0 is `zero`. Columns are there for all keys of a step.
//
//   biases    q . k * scale + bias                        [numHeads][stride]
//   products  (q . k + q . keys + queries . k) * scale    [numHeads][headDim][stride] each
struct RelativeScores {
  const float* biases = nullptr;
  const float* queries = nullptr;  // both or none
  const float* keys = nullptr;
  int64_t stride = 0;
  int32_t zero = 0;
};

// Attention of query rows [rowBegin, rowEnd) of one sequence for one KV head, over the split [split * kSplitTokens,
// (split + 1) * kSplitTokens) of its cache, in steps of kStepTokens tokens of absolute position.
struct AttentionArgs {
  const KvLayer* kv;
  const int32_t* blockTable;  // of this sequence
  const float* q;             // first query row of this sequence, first head; rotated
  int64_t ldq;                // floats between query rows
  int32_t numHeads;           // query heads; heads per KV head = numHeads / kvHeads
  int32_t firstPosition;      // cache position of query row 0; row i attends up to firstPosition + i, unless bothWays
  float scale;
  // Cap: a score counts as softCap * tanh(q . k * scale / softCap). 0: as q . k * scale.
  float softCap = 0;
  // Length of the sequence if rows attend also to positions after their own: to all of them, or with a window to
  // window.recent - 1. 0: causal.
  int32_t bothWays = 0;
  // The first position that rows attend to, where they attend both ways without a window: that of their segment.
  int32_t begin = 0;
  // With bothWays and a window: rows attend to all positions up to bothWays, and the window counts only what lies before them.
  bool wholeAhead = false;
  AttentionWindow window = {};
  // With a window, a step may write over blocks that its own earlier rows attend to. Blocks from freshBlock on are then
  // read from here, one after the other in the pool's layout, and not through the table. Null: none.
  const void* fresh = nullptr;
  int32_t freshBlock = 0;
  // With sinks: the same query rows rotated to their cache positions, from which distances to the sinks are counted;
  // the distances to the other keys are the same either way. [rows][numHeads * headDim]. Null: q is used for the sinks
  // too.
  const float* sinkQ = nullptr;
  // Positions of the split before this one, a multiple of the table's attentionStep, are in the partial results already: they are gone on
  // with. 0: none. Not with a window.
  int32_t from = 0;
  // The keys of the KV head that is attended to after this split, only to be prefetched; null: none.
  const void* next = nullptr;
  // Scores that depend on distances; null: none do. Only over a cache in f32 with a KV head for each head, both ways, without a window.
  const RelativeScores* relative = nullptr;
};
constexpr int32_t kStepTokens = 32;
constexpr int32_t kSplitTokens = 512;

// Passes over a row of logits in f64, for samplers that see a whole distribution: wide_row.h. n is a multiple of kWideLanes;
// values of -infinity are tokens that are left out, there is no NaN and no +infinity. All tables give the same bits.
constexpr int32_t kWideLanes = 8;
constexpr int32_t kWideBlock = 512;  // places whose weights are summed before they are added to the others
constexpr int32_t kBucketBitsPerOctave = 5;
constexpr int32_t kBucketOctavesBelowOne = 48;
constexpr int32_t kDistanceBuckets = 64 << kBucketBitsPerOctave;

struct WideRowKernels {
  // weights[i] = 2^((values[i] - maximum) * scale); blockSums: their sums by block. Returns the sum of all; moment: the sum of
  // each weight times its exponent.
  double (*weigh)(const float* values, int32_t n, double maximum, double scale, double* weights, double* blockSums,
                  double* moment);
  // Makes 0 of the weights of what has been left out since, and sums the others as weigh does.
  double (*sumKept)(const float* values, int32_t n, double* weights, double* blockSums);
  double (*sumPresent)(const float* values, int32_t n);
  double (*sumSquares)(const float* values, int32_t n, double mean);  // of the distances from the mean
  // Leaves out what is not in least ... most; returns how many are kept.
  int32_t (*keepBetween)(float* values, int32_t n, float least, float most);
  // The least value whose weight is at least `weight`; +infinity if there is none.
  float (*leastOfWeight)(const float* values, const double* weights, int32_t n, double weight);
  // Numbers |center - (values[i] - maximum)| by size, with 0 ... kDistanceBuckets - 1; kDistanceBuckets for what is left out.
  void (*bucketByDistance)(const float* values, int32_t n, double maximum, double center, int32_t* buckets);
  // Leaves out what lies after the bucket `last`; returns how many are kept.
  int32_t (*keepBuckets)(float* values, const int32_t* buckets, int32_t n, int32_t last);
};

// A causal convolution of n columns over the rows of a sequence.
struct ConvArgs {
  const float* x;  // of the sequence's first row
  int64_t ldx;
  const float* history;  // [taps - 1][n], the inputs before the first row, oldest first; null: there are none
  const float* weight;   // [taps][n]
  const float* bias;     // [n]; null: none
  int32_t taps, n;
  Activation activation;
  float* y;
  int64_t ldy;

  // Inputs of a row, counted from the first one on; null: it lies before the sequence's first token.
  const float* input(int32_t row) const {
    if (row >= 0) return x + row * ldx;
    return history == nullptr ? nullptr : history + int64_t(row + taps - 1) * n;
  }
};

constexpr int32_t kMostKeyDim = 1024;

// The gated delta rule of one head of values over the rows of a sequence.
struct DeltaArgs {
  const float* qkv;  // of the sequence's first row
  int64_t ldqkv;
  int32_t query, key, value;  // columns of qkv where the heads begin
  const float* gates;         // the head's b, and its a valueHeads columns further on
  int64_t ldgates;
  int32_t valueHeads;
  float decay, decayBias;
  int32_t keyDim, valueDim;  // keyDim is at most kMostKeyDim
  float epsilon;
  float* state;  // [keyDim][valueDim]
  float* y;
  int64_t ldy;
};

// The selective scan of one head over the rows of a sequence.
struct ScanArgs {
  const float* x;  // the head's columns of the sequence's first row
  const float* b;  // its group's B of that row
  const float* c;  // its group's C of that row
  int64_t ldx;     // of all three
  const float* steps;
  int64_t ldsteps;
  float rate, stepBias, skip;   // rate is less than 0
  float leastStep, mostStep;
  int32_t headDim, stateDim;
  float* state;  // [stateDim][headDim]
  float* y;
  int64_t ldy;
};

struct KernelTable {
  const char* name;    // that of its instruction set
  int32_t panelWidth;  // outputs per packed panel; n is padded to a multiple with zeros
  int32_t tileRows;    // rows of the tallest tile

  size_t (*packedBytes)(DType dtype, int32_t n, int32_t k);
  // Packs w, row-major [n, k] of dtype. Pads with zeros.
  void (*packWeights)(DType dtype, const void* w, int32_t n, int32_t k, void* packed);
  size_t (*packedGatedBytes)(DType dtype, int32_t n, int32_t k);
  // Packs w, row-major [2 n, k], gate rows first.
  void (*packGatedWeights)(DType dtype, const void* w, int32_t n, int32_t k, void* packed);

  // Rounds activations for products with these weights: row `row` of `rows`, k values, into the memory of all rows. The
  // result for a row depends on nothing but the row. 0 bytes if products take x itself.
  //
  //   in blocks   8 bits in groups of 32. Values that are not finite make all outputs of their row NaN.
  //   bf16        bf16, to nearest even, where an instruction multiplies pairs of them
  size_t (*roundedBytes)(DType weights, int32_t rows, int32_t k);
  void (*roundRow)(DType weights, const float* x, int32_t k, int32_t row, int32_t rows, void* rounded);

  // Computes rows [rowBegin, rowEnd) x panels [panelBegin, panelEnd); columns beyond n are never written.
  void (*gemm)(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd);
  void (*gatedGemm)(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd);

  // The same where args.stored is a matrix of blocks. The bits are those of the matrix packed.
  void (*storedGemm)(const GemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin, int32_t panelEnd);
  void (*storedGatedGemm)(const GatedGemmArgs& args, int32_t rowBegin, int32_t rowEnd, int32_t panelBegin,
                          int32_t panelEnd);
  // Packs `columns` of panelWidth rows of F32, F16 or BF16 as one panel of packWeights().
  void (*packStored)(StoredType type, const uint8_t* const* rows, int32_t columns, void* panel);

  // t = A x for rows that have one adapter, each anywhere in memory; t has room for the rank rounded up to a vector.
  void (*lowerRows)(const AdapterProduct& product, int32_t k, const float* const* x, float* const* t, int32_t rows);
  // Packs A, row by row [rank][k], into zeroed memory.
  size_t (*loweringBytes)(AdapterType type, int32_t rank, int32_t k);
  void (*packLowering)(AdapterType type, const float* const* a, int32_t rank, int32_t k, void* packed);
  // Packs rows of B [end - begin, rank] as outputs [begin, end) of a panel, into zeroed memory.
  size_t (*blockBytes)(AdapterType type, int32_t rank);
  void (*packBlock)(AdapterType type, const float* b, int32_t rank, int32_t begin, int32_t end, void* packed);

  // y[i] = x[i] / sqrt(mean(x^2) + epsilon) * w[i] + residual[i], one row of n. residual null: none. y may be x or residual.
  void (*rmsNorm)(const float* x, const float* w, float epsilon, const float* residual, int32_t n, float* y);
  // x[i] = x[i] * factor, one row of n.
  void (*scaleRow)(float* x, float factor, int32_t n);
  // x[i] = cap * tanh(x[i] / cap), one row of n. NaN stays NaN.
  void (*softCapRow)(float* x, float cap, int32_t n);
  // x[i] = alphaPositive x^2 + beta x above 0, else alphaNegative (exp(min(x, epsilon)) - 1 - x) + beta x, one row of n; epsilon is at
  // most 0. NaN stays NaN.
  void (*xieluRow)(float* x, const Xielu& xielu, int32_t n);
  // x[i] = x[i] * activation(by[i]), n of them.
  void (*gateRow)(float* x, const float* by, Activation activation, int32_t n);
  // y[c] = activation(bias[c] + sum over taps of weight[tap][c] * input(row - taps + 1 + tap)[c]), in ascending taps.
  void (*shortConvRow)(const ConvArgs& args, int32_t row);
  // Computes rows [begin, end) of a sequence, one after the other, and changes the state: see the op gatedDelta in network/plan.ts.
  void (*gatedDelta)(const DeltaArgs& args, int32_t begin, int32_t end);
  // The same for the op selectiveScan. All tables give the same bits.
  void (*selectiveScan)(const ScanArgs& args, int32_t begin, int32_t end);
  // y[i] = (x[i] - mean) / sqrt(variance + epsilon) * w[i] + bias[i], one row of n; the variance is of all n (not n - 1). bias null:
  // none. y may be x.
  void (*layerNorm)(const float* x, const float* w, const float* bias, float epsilon, int32_t n, float* y);
  // y[i] = mean over the rows of x[row * n + i], added in ascending order.
  void (*meanRows)(const float* x, int32_t rows, int32_t n, float* y);
  // y[i] = x[i] / max(sqrt(sum of x^2), 1e-12), one row of n. y may be x.
  void (*unitRow)(const float* x, int32_t n, float* y);
  // Reads one row of the embedding table of dtype as f32.
  void (*embeddingRow)(DType dtype, const void* row, int32_t n, float* y);
  // Like embeddingRow, but adds to y.
  void (*addEmbeddingRow)(DType dtype, const void* row, int32_t n, float* y);
  // cosine[i], sine[i] (each scaled) of position * inverseFrequencies[i]; the product is f32 as in the reference.
  void (*ropeAngles)(const float* inverseFrequencies, int32_t half, float scale, int32_t position, float* cosine,
                     float* sine);
  // Rotates `heads` heads of one token in place: pairs (i, i + half) of each head.
  void (*rope)(float* x, int32_t heads, int32_t headDim, int32_t half, const float* cosine, const float* sine);
  // Writes one token's k and v [kvHeads * headDim] into its slot, rounded to the cache type.
  void (*storeKv)(const KvLayer& kv, const float* k, const float* v, int64_t slot);

  // Computes one split. A (row, head) partial result is headDim accumulators, then maximum and sum. partial: [(rowEnd -
  // rowBegin) * headsPerKvHead][headDim + 2].
  void (*attentionSplit)(const AttentionArgs& args, int32_t kvHead, int32_t rowBegin, int32_t rowEnd, int32_t split,
                         float* scratch, float* partial);
  // Floats of scratch that attentionSplit needs for `pairs` (row, head) pairs of one KV head.
  size_t (*attentionScratchFloats)(int32_t headDim, int32_t pairs);
  // A split is gone on with (AttentionArgs::from) at multiples of this many positions.
  int32_t attentionStep;
  // Merges the splits of one (row, head) in ascending position: partials[s * stride], s < splits. y: [headDim]. Splits
  // in which the row attends to nothing are left out.
  void (*attentionMerge)(const float* partials, int64_t stride, int32_t splits, int32_t headDim, float* y);

  // Sampling helpers over one row of logits; sums run over fixed chunks of kVocabChunk. Index of the greatest value, lowest
  // index on ties; -1 if any value is NaN or none is finite (+inf counts as not finite). groupMaxima: the greatest value of
  // each kVocabGroup (null: not wanted), ignoring NaN.
  int32_t (*argmax)(const float* logits, int32_t n, float* maximum, float* groupMaxima);
  // Returns the sum of exp((logits[i] - maximum) * inverseTemperature), each chunk in f32 lanes, chunks added in f64 in
  // order.
  double (*sumExp)(const float* logits, int32_t n, float maximum, float inverseTemperature);
  // probabilities[i] = exp((logits[i] - maximum) * inverseTemperature), not normalised, same exp as sumExp.
  void (*expRow)(const float* logits, int32_t n, float maximum, float inverseTemperature, float* probabilities);
  // Writes for each chunk the greatest value, and the sum of exp((logits[i] - that) * inverseTemperature): 0 if all values are
  // -inf, NaN if any is NaN or +inf. groupMaxima: as in argmax. weights: the terms of these sums, for chunks that are not all
  // -inf (null: not wanted).
  void (*chunkExp)(const float* logits, int32_t n, float inverseTemperature, float* maxima, float* sums,
                   float* groupMaxima, float* weights);
  // Computes the same sums, given the maxima, over values above `bound` and over those equal to it whose index is below
  // `before`. weights: as chunkExp wrote them (null: they are computed again, to the same bits).
  void (*chunkExpAbove)(const float* logits, int32_t n, float inverseTemperature, const float* maxima,
                        const float* groupMaxima, const float* weights, float bound, int32_t before, float* sums);
  // Writes the indices of the values that are at least `least`, above -inf, ascending; returns how many. `indices`
  // needs room for n.
  int32_t (*indicesFrom)(const float* values, int32_t n, float least, int32_t* indices);
  WideRowKernels wideRow;
};
constexpr int32_t kVocabChunk = 1024;
constexpr int32_t kVocabGroup = 64;

const KernelTable& scalarKernels();  // emulates 8 lanes with std::fma: bit for bit the results of avx2
const KernelTable& avx2Kernels();
const KernelTable& avxVnniKernels();  // the same bits from the same packed weights, with byte dot products
const KernelTable& avx512Kernels();
const KernelTable& avx512VnniKernels();  // the same bits from the same packed weights, with byte dot products
// Kernels with dot products of pairs of bf16 too: other bits and other packed weights if these are bf16.
const KernelTable& avx512Bf16Kernels();
// Kernels with tiles of bf16 too: other bits, whatever the weights are but f32, and other packed weights if these are bf16.
const KernelTable& amxKernels();

const KernelTable& neonKernels();      // the same bits as scalar and avx2
const KernelTable& neonDotKernels();   // the same bits from the same packed weights, with byte dot products
const KernelTable& neonI8mmKernels();  // the same, with products of two rows
// Kernels with dot products of pairs of bf16 too: other bits and other packed weights if these are bf16.
const KernelTable& neonBf16Kernels();

enum class Isa : int32_t {
  kScalar = 0,
  kAvx2 = 1,
  kAvx512 = 2,
  kAvx512Bf16 = 3,
  kNeon = 4,
  kNeonBf16 = 5,
  kAmx = 6,
  kAvxVnni = 7
};
// From the slowest to the fastest of a processor.
constexpr Isa kInstructionSets[] = {Isa::kScalar,     Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512,
                                    Isa::kAvx512Bf16, Isa::kAmx,  Isa::kNeon,    Isa::kNeonBf16};
// True if this processor, with the state that its operating system saves, can run the instruction set.
bool isaSupported(Isa isa);
// True if kernelsOf(kAvx512) uses the byte dot products of VNNI.
bool vnniSupported();
// True if kernelsOf(kNeon) uses byte dot products, and if it uses products of two rows.
bool dotProductsSupported();
bool i8mmSupported();
const KernelTable& kernelsOf(Isa isa);
// True where the processor has AMX's tiles, whether the system lets a process use them or not.
bool processorHasTiles();
// True where the vectors run that unpack weights for tiles.
bool tileVectorsSupported();
// Makes a supported instruction set ready for this process. Returns null, or why it cannot be used, as the end of a sentence: the tiles
// of kAmx are asked for from the system, and must sum in their order.
const char* isaProblem(Isa isa);

}  // namespace skein

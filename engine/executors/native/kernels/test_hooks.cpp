#include "kernels/test_hooks.h"

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <vector>

// The package has no emulated processors, which only tests ask for.
#if __has_include("kernels/emulated.h")
#define SKEIN_HAS_EMULATED
#include "kernels/emulated.h"
#endif
#include "kernels/kernels.h"
#include "kernels/peak.h"
#include "kernels/read_loop.h"
#include "kernels/tile_check.h"

namespace skein {
namespace {

#if defined(SKEIN_HAS_EMULATED) && defined(SKEIN_X64) && defined(__linux__)
#define SKEIN_HAS_TRAPS
// True where the kernels of AMX run but for their tiles, which the processor does not have: one that has them and a system that keeps them
// back need not make a trap of each.
bool tilesAreTraps() { return tileVectorsSupported() && !processorHasTiles(); }
#endif

const KernelTable& tableOf(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>();
#ifdef SKEIN_X64
  if (name == "avx512" && isaSupported(Isa::kAvx512)) return avx512Kernels();
  if (name == "avx512vnni" && vnniSupported()) return avx512VnniKernels();
#endif
#ifdef SKEIN_ARM64
  if (name == "neon") return neonKernels();
  if (name == "neondot" && dotProductsSupported()) return neonDotKernels();
  if (name == "neoni8mm" && i8mmSupported()) return neonI8mmKernels();
#endif
#if defined(SKEIN_HAS_EMULATED) && defined(SKEIN_ARM64)
  if (name == "emulated8pairs") return emulated8PairsKernels();
#elif defined(SKEIN_HAS_EMULATED)
  if (name == "emulated16") return emulated16Kernels();
  if (name == "emulated16pairs") return emulated16PairsKernels();
  if (name == "emulatedamx") return emulatedAmxKernels();
#ifdef SKEIN_X64
  if (name == "emulatedamxvectors" && tileVectorsSupported()) return emulatedAmxVectorsKernels();
#endif
#ifdef SKEIN_HAS_TRAPS
  if (name == "trappedamx" && tilesAreTraps()) return trappedAmxKernels();
#endif
#endif
  for (const Isa isa : kInstructionSets)
    if (isaSupported(isa) && name == kernelsOf(isa).name) {
      if (const char* problem = isaProblem(isa)) throw Napi::Error::New(info.Env(), problem);
      return kernelsOf(isa);
    }
  throw Napi::Error::New(info.Env(), std::string("this processor has no kernels named ").append(name));
}

DType dtypeOf(const std::string& name) {
  for (const WeightFormat& format : kWeightFormats)
    if (name == format.name) return format.dtype;
  return DType::kF32;
}

// Fields of the one argument object that each hook takes after the table's name.
class Fields {
 public:
  explicit Fields(const Napi::CallbackInfo& info) : object_(info[1].As<Napi::Object>()) {}

  // 0 when the field is absent.
  int32_t integer(const char* name) const {
    const Napi::Value value = object_.Get(name);
    return value.IsNumber() ? value.As<Napi::Number>().Int32Value() : 0;
  }
  float number(const char* name) const { return object_.Get(name).As<Napi::Number>().FloatValue(); }
  float number(const char* name, float absent) const { return object_.Has(name) ? number(name) : absent; }
  // Empty when the field is absent.
  std::string text(const char* name) const {
    const Napi::Value value = object_.Get(name);
    return value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string();
  }
  DType dtype() const { return dtypeOf(object_.Get("dtype").As<Napi::String>()); }
  // First element of a typed array's view; null if the field is absent or null.
  template <class T = float>
  T* data(const char* name) const {
    const Napi::Value value = object_.Get(name);
    if (!value.IsTypedArray()) return nullptr;
    const auto array = value.As<Napi::TypedArray>();
    return reinterpret_cast<T*>(static_cast<char*>(array.ArrayBuffer().Data()) + array.ByteOffset());
  }

 private:
  Napi::Object object_;
};

Napi::Value shape(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  auto result = Napi::Object::New(info.Env());
  result.Set("panelWidth", table.panelWidth);
  result.Set("tileRows", table.tileRows);
  return result;
}

// Packs weights. The packed bytes start as NaN and are followed by a guard.
Napi::Value pack(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  const Fields fields(info);
  const int32_t n = fields.integer("n"), k = fields.integer("k");
  const bool gated = fields.integer("gated") != 0;
  const size_t bytes = (gated ? table.packedGatedBytes : table.packedBytes)(fields.dtype(), n, k);
  constexpr size_t kGuard = 256;
  std::vector<uint8_t> packed(bytes + kGuard, 0xff);
  (gated ? table.packGatedWeights : table.packWeights)(fields.dtype(), fields.data<void>("w"), n, k, packed.data());
  for (size_t i = bytes; i < packed.size(); ++i)
    if (packed[i] != 0xff) throw Napi::Error::New(info.Env(), "packing wrote beyond its bytes");
  auto result = Napi::Uint8Array::New(info.Env(), bytes);
  std::copy_n(packed.data(), bytes, result.Data());
  return result;
}

// Rounds all rows of x into blocks; the blocks start as 0xff and are followed by a guard.
Napi::Value round(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  const Fields f(info);
  const int32_t rows = f.integer("rows"), k = f.integer("k");
  const size_t bytes = table.roundedBytes(f.dtype(), rows, k);
  constexpr size_t kGuard = 256;
  std::vector<uint8_t> blocks(bytes + kGuard, 0xff);
  for (int32_t row = 0; row < rows; ++row)
    table.roundRow(f.dtype(), f.data("x") + int64_t(row) * f.integer("ldx"), k, row, rows, blocks.data());
  for (size_t i = bytes; i < blocks.size(); ++i)
    if (blocks[i] != 0xff) throw Napi::Error::New(info.Env(), "quantising wrote beyond its bytes");
  auto result = Napi::Uint8Array::New(info.Env(), bytes);
  std::copy_n(blocks.data(), bytes, result.Data());  // null if there are none
  return result;
}

// Runs parts of [begin, end) on as many threads, the calling one included; on one thread if `threads` is 0.
template <class Work>
void inThreads(int32_t threads, int64_t begin, int64_t end, Work work) {
  const int64_t parts = threads > 1 ? threads : 1;
  const auto bound = [&](int64_t part) { return begin + (end - begin) * part / parts; };
  std::vector<std::thread> helpers;
  for (int64_t part = 1; part < parts; ++part) helpers.emplace_back(work, bound(part), bound(part + 1));
  work(begin, bound(1));
  for (std::thread& helper : helpers) helper.join();
}

// An adapter of all outputs of a product, for the rows that `adapted` marks: B in `adapterB`, [n][rank], A x in `adapterT`, [rows][rank].
struct TestAdapter {
  TestAdapter(const Fields& f, const KernelTable& table) {
    const int32_t n = f.integer("n"), rank = f.integer("rank");
    const int32_t* adapted = f.data<int32_t>("adapted");
    if (!adapted) return;
    const int32_t panels = (n + table.panelWidth - 1) / table.panelWidth;
    const size_t bytes = table.blockBytes(AdapterType::kF32, rank);
    packed.resize(bytes * size_t(panels));
    for (int32_t panel = 0; panel < panels; ++panel) {
      char* to = packed.data() + bytes * size_t(panel);
      const int32_t first = panel * table.panelWidth, end = std::min(table.panelWidth, n - first);
      table.packBlock(AdapterType::kF32, f.data("adapterB") + int64_t(first) * rank, rank, 0, end, to);
      blocks.push_back({.weights = to, .first = 0, .rank = rank, .begin = 0, .end = end});
      firstBlock.push_back(panel);
      starts.push_back(to);
    }
    firstBlock.push_back(panels);
    starts.push_back(packed.data() + packed.size());
    product = {.aType = AdapterType::kF32,
               .bType = AdapterType::kF32,
               .rank = rank,
               .a = nullptr,
               .blocks = blocks.data(),
               .firstBlock = firstBlock.data(),
               .panels = panels,
               .panelStart = starts.data(),
               .nextBytes = 0};
    for (int32_t row = 0; row < f.integer("rowEnd"); ++row)
      rows.push_back({.product = adapted[row] ? &product : nullptr,
                      .t = f.data("adapterT") + int64_t(row) * rank,
                      .leads = adapted[row] && rows.empty()});
  }

  std::vector<char> packed;
  std::vector<AdapterBlock> blocks;
  std::vector<int32_t> firstBlock;
  std::vector<const char*> starts;
  AdapterProduct product = {};
  std::vector<AdapterRow> rows;
};

// The matrix whose rows lie in `stored`, of the type named `type`; `headRows`: see StoredPiece. Absent: there is none.
struct TestStored {
  TestStored(const Fields& f, const std::string& type, int32_t rows)
      : piece{f.data<uint8_t>("stored"), rows, f.integer("headRows")},
        matrix{.type = StoredType::kF32, .columns = f.integer("k"), .pieces = 1, .piece = &piece} {
    for (const StoredFormat& format : kStoredFormats)
      if (type == format.name) matrix.type = format.type;
  }
  const StoredMatrix* get() const { return piece.data == nullptr ? nullptr : &matrix; }

  StoredPiece piece;
  StoredMatrix matrix;
};

// Packs the panels of `stored`, of F32, F16 or BF16, one after the other.
Napi::Value packStored(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  const Fields f(info);
  const int32_t n = f.integer("n"), k = f.integer("k"), width = table.panelWidth;
  const TestStored stored(f, f.text("type"), n);
  const DType dtype = formatOf(stored.matrix.type).dtype;
  const size_t bytes = table.packedBytes(dtype, width, k);
  auto result = Napi::Uint8Array::New(info.Env(), table.packedBytes(dtype, n, k));
  std::vector<const uint8_t*> rows(static_cast<size_t>(width));
  for (int32_t panel = 0; panel * width < n; ++panel) {
    for (int32_t j = 0; j < width; ++j) rows[size_t(j)] = stored.matrix.row(std::min(n - 1, panel * width + j));
    table.packStored(stored.matrix.type, rows.data(), k, result.Data() + size_t(panel) * bytes);
  }
  return result;
}

// Runs a product, of `stored` where it is given. `threads` shares out the panels; for timing only.
void gemm(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const KernelTable& table = tableOf(info);
  const TestAdapter adapter(f, table);
  const TestStored stored(f, f.text("type"), f.integer("n"));
  const GemmArgs args{.x = f.data("x"),
                      .ldx = f.integer("ldx"),
                      .packed = f.data<void>("packed"),
                      .dtype = f.dtype(),
                      .n = f.integer("n"),
                      .k = f.integer("k"),
                      .bias = f.data("bias"),
                      .residual = f.data("residual"),
                      .ldr = f.integer("ldr"),
                      .y = f.data("y"),
                      .ldy = f.integer("ldy"),
                      .activation = Activation(f.integer("activation")),
                      .rounded = f.data<void>("rounded"),
                      .roundedRows = f.integer("roundedRows"),
                      .adapters = adapter.rows.empty() ? nullptr : adapter.rows.data(),
                      .stored = stored.get()};
  const auto run = args.stored ? table.storedGemm : table.gemm;
  const int32_t rowBegin = f.integer("rowBegin"), rowEnd = f.integer("rowEnd");
  inThreads(f.integer("threads"), f.integer("panelBegin"), f.integer("panelEnd"),
            [&](int64_t begin, int64_t end) { run(args, rowBegin, rowEnd, int32_t(begin), int32_t(end)); });
}

void gatedGemm(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const KernelTable& table = tableOf(info);
  const TestStored stored(f, f.text("type"), 2 * f.integer("n"));
  const GatedGemmArgs args{.x = f.data("x"),
                           .ldx = f.integer("ldx"),
                           .packed = f.data<void>("packed"),
                           .dtype = f.dtype(),
                           .n = f.integer("n"),
                           .k = f.integer("k"),
                           .bias = f.data("bias"),
                           .y = f.data("y"),
                           .ldy = f.integer("ldy"),
                           .activation = Activation(f.integer("activation")),
                           .rounded = f.data<void>("rounded"),
                           .roundedRows = f.integer("roundedRows"),
                           .stored = stored.get()};
  const auto run = args.stored ? table.storedGatedGemm : table.gatedGemm;
  run(args, f.integer("rowBegin"), f.integer("rowEnd"), f.integer("panelBegin"), f.integer("panelEnd"));
}

KvLayer layerOf(const Fields& f) {
  return {.base = f.data<void>("cache"),
          .dtype = f.dtype(),
          .tokensPerBlock = f.integer("tokensPerBlock"),
          .kvHeads = f.integer("kvHeads"),
          .headDim = f.integer("headDim")};
}

void storeKv(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).storeKv(layerOf(f), f.data("k"), f.data("v"), f.integer("slot"));
}

// Runs rows [rowBegin, rowEnd) of one sequence over all its heads and splits; y: [rows][numHeads * headDim]. Scratch and
// partial results start as NaN, so that a kernel that reads memory it has not written shows it. A row merges its own
// splits, as in the executor; here every split is given all the rows, also those that end before it begins. shared: first positions that
// all rows see, which are computed in a call of their own.
void attention(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  const Fields f(info);
  const KvLayer kv = layerOf(f);
  const AttentionArgs args{
      .kv = &kv,
      .blockTable = f.data<int32_t>("blockTable"),
      .q = f.data("q"),
      .ldq = f.integer("ldq"),
      .numHeads = f.integer("numHeads"),
      .firstPosition = f.integer("firstPosition"),
      .scale = f.number("scale"),
      .softCap = f.number("softCap", 0.0f),
      .bothWays = f.integer("bothWays"),
      .begin = f.integer("begin"),
      .wholeAhead = f.integer("wholeAhead") != 0,
      .window = {f.integer("recent"), f.integer("sinks"), f.integer("sinkBlocks"), f.integer("ringBlocks")},
      .fresh = f.data<void>("fresh"),
      .freshBlock = f.integer("freshBlock"),
      .sinkQ = f.data("sinkQ")};
  const int32_t rowBegin = f.integer("rowBegin"), rowEnd = f.integer("rowEnd");
  const int32_t heads = args.numHeads / kv.kvHeads;
  const int32_t bothWays = args.bothWays;
  const int32_t splits = ((bothWays > 0 ? bothWays : args.firstPosition + rowEnd) - 1) / kSplitTokens + 1;
  const int64_t pairs = int64_t(rowEnd - rowBegin) * heads;
  const int64_t stride = kv.headDim + 2;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scratch(table.attentionScratchFloats(kv.headDim, int32_t(pairs)), kNan);
  std::vector<float> partials(size_t(splits * pairs * stride), kNan);
  float* y = f.data("y");
  for (int32_t kvHead = 0; kvHead < kv.kvHeads; ++kvHead) {
    for (int32_t s = 0; s < splits; ++s) {
      float* partial = partials.data() + s * pairs * stride;
      AttentionArgs own = args;
      own.from = std::min(f.integer("shared"), (s + 1) * kSplitTokens);
      if (own.from > s * kSplitTokens) {
        AttentionArgs together = args;
        together.bothWays = own.from;
        table.attentionSplit(together, kvHead, rowBegin, rowEnd, s, scratch.data(), partial);
      }
      if (own.from < (s + 1) * kSplitTokens) table.attentionSplit(own, kvHead, rowBegin, rowEnd, s, scratch.data(), partial);
    }
    for (int64_t i = 0; i < pairs; ++i) {
      const int32_t own =
          bothWays > 0 ? splits : (args.firstPosition + rowBegin + int32_t(i / heads)) / kSplitTokens + 1;
      const int64_t head = i / heads * args.numHeads + kvHead * heads + i % heads;
      table.attentionMerge(partials.data() + i * stride, pairs * stride, own, kv.headDim, y + head * kv.headDim);
    }
  }
}

void rmsNorm(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).rmsNorm(f.data("x"), f.data("w"), f.number("epsilon"), f.data("residual"), f.integer("n"), f.data("y"));
}

void scaleRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).scaleRow(f.data("x"), f.number("factor"), f.integer("n"));
}

void softCapRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).softCapRow(f.data("x"), f.number("cap"), f.integer("n"));
}

void xieluRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const Xielu xielu{f.number("alphaPositive"), f.number("alphaNegative"), f.number("beta"), f.number("epsilon")};
  tableOf(info).xieluRow(f.data("x"), xielu, f.integer("n"));
}

void gateRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).gateRow(f.data("x"), f.data("by"), Activation(f.integer("activation")), f.integer("n"));
}

// Rows [begin, end) of a sequence.
void shortConv(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const KernelTable& table = tableOf(info);
  const ConvArgs args{.x = f.data("x"),
                      .ldx = f.integer("ldx"),
                      .history = f.data("history"),
                      .weight = f.data("weight"),
                      .bias = f.data("bias"),
                      .taps = f.integer("taps"),
                      .n = f.integer("n"),
                      .activation = Activation(f.integer("activation")),
                      .y = f.data("y"),
                      .ldy = f.integer("ldy")};
  for (int32_t row = f.integer("begin"); row < f.integer("end"); ++row) table.shortConvRow(args, row);
}

// Rows [begin, end) of one head of values.
void gatedDelta(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const DeltaArgs args{.qkv = f.data("qkv"),
                       .ldqkv = f.integer("ldqkv"),
                       .query = f.integer("query"),
                       .key = f.integer("key"),
                       .value = f.integer("value"),
                       .gates = f.data("gates"),
                       .ldgates = f.integer("ldgates"),
                       .valueHeads = f.integer("valueHeads"),
                       .decay = f.number("decay"),
                       .decayBias = f.number("decayBias"),
                       .keyDim = f.integer("keyDim"),
                       .valueDim = f.integer("valueDim"),
                       .epsilon = f.number("epsilon"),
                       .state = f.data("state"),
                       .y = f.data("y"),
                       .ldy = f.integer("ldy")};
  tableOf(info).gatedDelta(args, f.integer("begin"), f.integer("end"));
}

// Rows [begin, end) of one head.
void selectiveScan(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const float* x = f.data("x");
  const ScanArgs args{.x = x + f.integer("head"),
                      .b = x + f.integer("b"),
                      .c = x + f.integer("c"),
                      .ldx = f.integer("ldx"),
                      .steps = f.data("steps"),
                      .ldsteps = f.integer("ldsteps"),
                      .rate = f.number("rate"),
                      .stepBias = f.number("stepBias"),
                      .skip = f.number("skip"),
                      .leastStep = f.number("leastStep"),
                      .mostStep = f.number("mostStep"),
                      .headDim = f.integer("headDim"),
                      .stateDim = f.integer("stateDim"),
                      .state = f.data("state"),
                      .y = f.data("y"),
                      .ldy = f.integer("ldy")};
  tableOf(info).selectiveScan(args, f.integer("begin"), f.integer("end"));
}

void layerNorm(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).layerNorm(f.data("x"), f.data("w"), f.data("bias"), f.number("epsilon"), f.integer("n"), f.data("y"));
}

void meanRows(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).meanRows(f.data("x"), f.integer("rows"), f.integer("n"), f.data("y"));
}

void unitRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).unitRow(f.data("x"), f.integer("n"), f.data("y"));
}

void addEmbeddingRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).addEmbeddingRow(f.dtype(), f.data<void>("row"), f.integer("n"), f.data("y"));
}

void embeddingRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).embeddingRow(f.dtype(), f.data<void>("row"), f.integer("n"), f.data("y"));
}

void ropeAngles(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).ropeAngles(f.data("inverseFrequencies"), f.integer("half"), f.number("scale"), f.integer("position"),
                           f.data("cosine"), f.data("sine"));
}

void rope(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).rope(f.data("x"), f.integer("heads"), f.integer("headDim"), f.integer("half"), f.data("cosine"),
                     f.data("sine"));
}

Napi::Value argmax(const Napi::CallbackInfo& info) {
  const Fields f(info);
  float maximum = std::numeric_limits<float>::quiet_NaN();
  auto result = Napi::Object::New(info.Env());
  result.Set("index", tableOf(info).argmax(f.data("logits"), f.integer("n"), &maximum, f.data("groupMaxima")));
  result.Set("maximum", maximum);
  return result;
}

Napi::Value sumExp(const Napi::CallbackInfo& info) {
  const Fields f(info);
  return Napi::Number::New(info.Env(), tableOf(info).sumExp(f.data("logits"), f.integer("n"), f.number("maximum"),
                                                            f.number("inverseTemperature")));
}

void expRow(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).expRow(f.data("logits"), f.integer("n"), f.number("maximum"), f.number("inverseTemperature"),
                       f.data("y"));
}

void chunkExp(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).chunkExp(f.data("logits"), f.integer("n"), f.number("inverseTemperature"), f.data("maxima"),
                         f.data("sums"), f.data("groupMaxima"), f.data("weights"));
}

void chunkExpAbove(const Napi::CallbackInfo& info) {
  const Fields f(info);
  tableOf(info).chunkExpAbove(f.data("logits"), f.integer("n"), f.number("inverseTemperature"), f.data("maxima"),
                              f.data("groupMaxima"), f.data("weights"), f.number("bound"), f.integer("before"),
                              f.data("sums"));
}

Napi::Value indicesFrom(const Napi::CallbackInfo& info) {
  const Fields f(info);
  return Napi::Number::New(info.Env(), tableOf(info).indicesFrom(f.data("values"), f.integer("n"), f.number("least"),
                                                                 f.data<int32_t>("indices")));
}

// All passes of wide_row.h over the same values; those that change them write to copies.
Napi::Value wideRow(const Napi::CallbackInfo& info) {
  const WideRowKernels& kernels = tableOf(info).wideRow;
  const Fields f(info);
  const float* values = f.data("values");
  const int32_t n = f.integer("n");
  const double maximum = f.number("maximum"), center = f.number("center");
  double moment = 0;
  auto result = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, double value) { result.Set(name, value); };
  set("sum", kernels.weigh(values, n, maximum, f.number("scale"), f.data<double>("weights"),
                           f.data<double>("blockSums"), &moment));
  set("moment", moment);
  set("present", kernels.sumPresent(values, n));
  set("squares", kernels.sumSquares(values, n, center));
  set("least", kernels.leastOfWeight(values, f.data<double>("weights"), n, f.number("weight")));
  set("between", kernels.keepBetween(f.data("between"), n, f.number("low"), f.number("high")));
  kernels.bucketByDistance(values, n, maximum, center, f.data<int32_t>("buckets"));
  set("kept", kernels.sumKept(f.data("between"), n, f.data<double>("weights"), f.data<double>("blockSums")));
  set("inBuckets", kernels.keepBuckets(f.data("inBuckets"), f.data<int32_t>("buckets"), n, f.integer("last")));
  return result;
}

Napi::Value names(const Napi::CallbackInfo& info) {
  auto result = Napi::Array::New(info.Env());
  uint32_t count = 0;
  for (const Isa isa : kInstructionSets) {
    if (isaSupported(isa)) result.Set(count++, kernelsOf(isa).name);
    if (isa == Isa::kAvx512 && vnniSupported()) result.Set(count++, "avx512vnni");
    if (isa == Isa::kNeon && dotProductsSupported()) result.Set(count++, "neondot");
    if (isa == Isa::kNeon && i8mmSupported()) result.Set(count++, "neoni8mm");
  }
#if defined(SKEIN_HAS_EMULATED) && defined(SKEIN_ARM64)
  result.Set(count, "emulated8pairs");
#elif defined(SKEIN_HAS_EMULATED)
  result.Set(count++, "emulated16");
  result.Set(count, "emulated16pairs");
#endif
  return result;
}

// Tables that have tiles in plain C++.
Napi::Value tileNames(const Napi::CallbackInfo& info) {
  auto result = Napi::Array::New(info.Env());
#if defined(SKEIN_HAS_EMULATED) && !defined(SKEIN_ARM64)
  result.Set(0u, "emulatedamx");
#ifdef SKEIN_X64
  if (tileVectorsSupported()) result.Set(1u, "emulatedamxvectors");
#endif
#ifdef SKEIN_HAS_TRAPS
  if (tilesAreTraps()) result.Set(2u, "trappedamx");
#endif
#endif
  return result;
}

#if defined(SKEIN_HAS_EMULATED) && !defined(SKEIN_ARM64)
// One product of emulated tiles; a, b and c are 16 rows of 64 bytes each. Throws the fault that the processor would raise.
void tileProduct(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const char* fault =
      emulatedTileProduct(f.data<void>("config"), f.data<void>("a"), f.data<void>("b"), f.data<void>("c"));
  if (fault) throw Napi::Error::New(info.Env(), fault);
}
#endif

// Whether a table sums in the order of tiles; with `broken`, whether it would if it wrote nothing.
Napi::Value sumsAsTilesHook(const Napi::CallbackInfo& info) {
  const Fields f(info);
  KernelTable tested = tableOf(info);
  if (f.integer("broken") != 0) tested.gemm = [](const GemmArgs&, int32_t, int32_t, int32_t, int32_t) {};
  return Napi::Boolean::New(info.Env(), sumsAsTiles(tested));
}

// Runs the register-only loop of a table's products with weights of `dtype`; false if it has none. A table that another one is made
// of has the loops that this one has not.
bool runPeak([[maybe_unused]] const KernelTable& table, [[maybe_unused]] DType dtype,
             [[maybe_unused]] int64_t iterations) {
  [[maybe_unused]] volatile float sink = 0;
#if defined(SKEIN_X64)
  const bool tiles = isaSupported(Isa::kAmx) && &table == &amxKernels();
  const bool pairs = tiles || (isaSupported(Isa::kAvx512Bf16) && &table == &avx512Bf16Kernels());
#ifdef SKEIN_HAS_TRAPS
  if (tilesAreTraps() && dtype != DType::kF32 && &table == &trappedAmxKernels())
    return sink = trappedAmxPeak(dtype, iterations), true;
#endif
  if (tiles && dtype != DType::kF32) sink = amxPeak(dtype, iterations);
  else if (&table == &avx2Kernels()) sink = avx2Peak(dtype, iterations);
  else if (isaSupported(Isa::kAvxVnni) && &table == &avxVnniKernels()) sink = avxVnniPeak(dtype, iterations);
  else if (&table == &avx512Kernels()) sink = avx512Peak(dtype, iterations);
  else if (pairs && dtype == DType::kBf16) sink = avx512Bf16Peak(iterations);
  else if (pairs || (vnniSupported() && &table == &avx512VnniKernels())) sink = avx512VnniPeak(dtype, iterations);
  else return false;
  return true;
#elif defined(SKEIN_ARM64)
  const bool pairs = isaSupported(Isa::kNeonBf16) && &table == &neonBf16Kernels();
  if (&table == &neonKernels()) sink = neonPeak(dtype, iterations);
  else if (dotProductsSupported() && &table == &neonDotKernels()) sink = neonDotPeak(dtype, iterations);
  else if (pairs && dtype == DType::kBf16) sink = neonBf16Peak(iterations);
  else if (pairs || (i8mmSupported() && &table == &neonI8mmKernels())) sink = neonI8mmPeak(dtype, iterations);
  else return false;
  return true;
#else
  return false;
#endif
}

// Number of operations in a register-only loop of `iterations` steps with weights of `dtype`; a multiplication and an
// addition count as two; 0 if the table has no such loop.
Napi::Value peak(const Napi::CallbackInfo& info) {
  const KernelTable& table = tableOf(info);
  const Fields f(info);
  const DType dtype = f.dtype();
  const int64_t iterations = f.integer("iterations");
  if (!runPeak(table, dtype, iterations)) return Napi::Number::New(info.Env(), 0);
  const bool pairs = dtype == DType::kBf16 && table.roundedBytes(dtype, 1, 2) > 0;
  const int stepElements = isQuantized(dtype) ? 4 : pairs ? 2 : 1;
  return Napi::Number::New(info.Env(), 2.0 * double(iterations) * table.panelWidth * table.tileRows * stepElements);
}

// Reads `bytes` of `data` (both multiples of 256), shared out over `threads`.
void read(const Napi::CallbackInfo& info) {
  const Fields f(info);
  const char* data = f.data<char>("data");
  const int64_t ahead = f.integer("ahead");
  inThreads(f.integer("threads"), 0, f.integer("bytes") / 256, [&](int64_t begin, int64_t end) {
    [[maybe_unused]] volatile uint64_t sink = readLoop(data + begin * 256, (end - begin) * 256, ahead);
  });
}

}  // namespace

Napi::Object kernelTestHooks(Napi::Env env) {
  auto hooks = Napi::Object::New(env);
  const auto add = [&](const char* name, auto function) { hooks.Set(name, Napi::Function::New(env, function, name)); };
  add("names", names);
  add("shape", shape);
  add("pack", pack);
  add("packStored", packStored);
  add("round", round);
  add("gemm", gemm);
  add("gatedGemm", gatedGemm);
  add("storeKv", storeKv);
  add("attention", attention);
  add("rmsNorm", rmsNorm);
  add("scaleRow", scaleRow);
  add("softCapRow", softCapRow);
  add("xieluRow", xieluRow);
  add("gateRow", gateRow);
  add("shortConv", shortConv);
  add("gatedDelta", gatedDelta);
  add("selectiveScan", selectiveScan);
  add("layerNorm", layerNorm);
  add("meanRows", meanRows);
  add("unitRow", unitRow);
  add("embeddingRow", embeddingRow);
  add("addEmbeddingRow", addEmbeddingRow);
  add("ropeAngles", ropeAngles);
  add("rope", rope);
  add("argmax", argmax);
  add("sumExp", sumExp);
  add("expRow", expRow);
  add("chunkExp", chunkExp);
  add("chunkExpAbove", chunkExpAbove);
  add("indicesFrom", indicesFrom);
  add("wideRow", wideRow);
  add("tileNames", tileNames);
#if defined(SKEIN_HAS_EMULATED) && !defined(SKEIN_ARM64)
  add("tileProduct", tileProduct);
#endif
  add("sumsAsTiles", sumsAsTilesHook);
  add("peak", peak);
  add("read", read);
  return hooks;
}

}  // namespace skein

#include "executor/js_config.h"

#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "executor/js_values.h"

namespace skein::js {
namespace {

// Runs read(); its error gets the place in front.
template <typename Read>
auto within(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(place + ": " + error.what());
  }
}

template <typename Read>
void eachObject(const Napi::Object& parent, const char* field, const Read& read) {
  const Napi::Array items = array(parent, field);
  for (uint32_t i = 0; i < items.Length(); ++i) {
    const std::string place = std::string(field) + "[" + std::to_string(i) + "]";
    const Napi::Value item = items.Get(i);
    if (!item.IsObject()) throw std::runtime_error(place + " must be an object.");
    within(place, [&] { read(item.As<Napi::Object>()); });
  }
}

// One of the names, or an error that lists them.
template <typename T, size_t N>
T oneOf(const Napi::Object& parent, const char* field, const std::pair<const char*, T> (&choices)[N]) {
  const std::string given = text(parent, field);
  std::string names;
  for (const auto& [name, value] : choices) {
    if (given == name) return value;
    if (!names.empty()) names.append(", ");
    names.append(name);
  }
  throw std::runtime_error(std::string(field) + " is \"" + given + "\", but it must be one of " + names + ".");
}

constexpr std::pair<const char*, DType> kWeightTypes[] = {
    {"f32", DType::kF32}, {"bf16", DType::kBf16}, {"int8", DType::kInt8}, {"int4", DType::kInt4}};
constexpr std::pair<const char*, DType> kKvTypes[] = {{"f32", DType::kF32}, {"bf16", DType::kBf16}};
constexpr std::pair<const char*, RowKind> kRows[] = {{"tokens", RowKind::kTokens}, {"logits", RowKind::kLogits}};
constexpr std::pair<const char*, bool> kWeightKinds[] = {{"matrix", true}, {"vector", false}};
constexpr std::pair<const char*, Isa> kIsas[] = {
    {"scalar", Isa::kScalar}, {"avx2", Isa::kAvx2}, {"avx512", Isa::kAvx512}, {"avx512bf16", Isa::kAvx512Bf16}};
constexpr std::pair<const char*, Activation> kActivations[] = {{"none", Activation::kNone},
                                                               {"silu", Activation::kSilu},
                                                               {"gelu", Activation::kGelu},
                                                               {"geluTanh", Activation::kGeluTanh},
                                                               {"tanh", Activation::kTanh},
                                                               {"relu", Activation::kRelu}};
constexpr std::pair<const char*, LookupKind> kLookups[] = {{"positions", LookupKind::kPositions},
                                                           {"tokenTypes", LookupKind::kTokenTypes}};
constexpr std::pair<const char*, OpKind> kOps[] = {
    {"embedding", OpKind::kEmbedding},       {"rmsNorm", OpKind::kRmsNorm},     {"linear", OpKind::kLinear},
    {"gatedLinear", OpKind::kGatedLinear},   {"ropeAndCache", OpKind::kRopeAndCache}, {"attention", OpKind::kAttention},
    {"selectRows", OpKind::kSelectRows},     {"addEmbedding", OpKind::kAddEmbedding}, {"layerNorm", OpKind::kLayerNorm},
    {"meanPool", OpKind::kMeanPool},         {"normalize", OpKind::kNormalize}};

class PlanReader {
 public:
  NetworkPlan read(const Napi::Object& source) {
    plan_.vocabSize = integer(source, "vocabSize");
    plan_.outputWidth = integer(source, "outputWidth");
    const Napi::Object attention = object(source, "attention");
    plan_.numLayers = integer(attention, "numLayers");
    plan_.numHeads = integer(attention, "numHeads");
    plan_.numKvHeads = integer(attention, "numKvHeads");
    plan_.headDim = integer(attention, "headDim");
    plan_.rotaryDim = integer(attention, "rotaryDim");
    plan_.bothWays = property(attention, "bothWays").ToBoolean();
    eachObject(source, "weights", [&](const Napi::Object& item) { readWeight(item); });
    eachObject(source, "values", [&](const Napi::Object& item) {
      plan_.values.push_back({oneOf(item, "rows", kRows), integer(item, "width"), integer(item, "slot")});
    });
    eachObject(source, "slots", [&](const Napi::Object& item) {
      plan_.slots.push_back({oneOf(item, "rows", kRows), integer(item, "width")});
    });
    eachObject(source, "ops", [&](const Napi::Object& item) { plan_.ops.push_back(readOp(item)); });
    plan_.logits = integer(source, "logits");
    return std::move(plan_);
  }

 private:
  void readWeight(const Napi::Object& item) {
    const PlanWeight weight{text(item, "name"), oneOf(item, "kind", kWeightKinds), integer(item, "rows"), integer(item, "columns")};
    if (weight.rows < 1 || weight.columns < 1) throw std::runtime_error(weight.name + " has no elements.");
    if (!byName_.emplace(weight.name, static_cast<int32_t>(plan_.weights.size())).second) {
      throw std::runtime_error("the name " + weight.name + " is taken by an earlier weight.");
    }
    plan_.weights.push_back(weight);
  }

  int32_t weightIndex(const Napi::Object& item, const char* field) const {
    const std::string name = text(item, field);
    const auto found = byName_.find(name);
    if (found == byName_.end()) throw std::runtime_error(std::string(field) + " names " + name + ", which the plan's weights do not list.");
    return found->second;
  }

  PlanOp readOp(const Napi::Object& item) const {
    PlanOp op{.kind = oneOf(item, "op", kOps)};
    const bool onQkv = op.kind == OpKind::kRopeAndCache || op.kind == OpKind::kAttention;
    const bool onTable = op.kind == OpKind::kEmbedding || op.kind == OpKind::kAddEmbedding;
    if (!onTable) op.input = integer(item, onQkv ? "qkv" : "input");
    if (op.kind != OpKind::kRopeAndCache) op.output = integer(item, "output");
    if (onQkv) op.layer = integer(item, "layer");
    if (op.kind == OpKind::kAttention) op.scale = static_cast<float>(number(item, "scale"));
    if (op.kind == OpKind::kAddEmbedding) op.lookup = oneOf(item, "by", kLookups);
    if (op.kind == OpKind::kRmsNorm || op.kind == OpKind::kLayerNorm) op.epsilon = static_cast<float>(number(item, "epsilon"));
    if (onQkv || op.kind == OpKind::kSelectRows || op.kind == OpKind::kMeanPool || op.kind == OpKind::kNormalize) return op;
    op.weight = weightIndex(item, "weight");
    if (op.kind == OpKind::kLayerNorm) op.bias = weightIndex(item, "bias");
    if (op.kind != OpKind::kLinear && op.kind != OpKind::kGatedLinear) return op;
    op.activation = oneOf(item, "activation", kActivations);
    if (!property(item, "bias").IsNull()) op.bias = weightIndex(item, "bias");
    if (op.kind == OpKind::kLinear && !property(item, "residual").IsNull()) op.residual = integer(item, "residual");
    return op;
  }

  NetworkPlan plan_;
  std::unordered_map<std::string, int32_t> byName_;
};

int64_t wholeNumber(const Napi::Object& parent, const char* field) {
  const double value = number(parent, field);
  if (!(value >= 0 && value <= 9007199254740991.0) || value != std::floor(value)) {
    throw std::runtime_error(std::string(field) + " must be a whole number of at least 0.");
  }
  return static_cast<int64_t>(value);
}

}  // namespace

const char* instructionSetName(Isa isa) {
  for (const auto& [name, value] : kIsas) {
    if (value == isa) return name;
  }
  return "unknown";
}

ExecutorConfig readConfig(const Napi::Object& options) {
  ExecutorConfig config;
  config.plan = within("plan", [&] { return PlanReader().read(object(options, "plan")); });
  eachObject(options, "tensors", [&](const Napi::Object& item) {
    config.tensors.push_back({text(item, "name"), oneOf(item, "dtype", kWeightTypes), wholeNumber(item, "rows"),
                              wholeNumber(item, "columns"), wholeNumber(item, "offset"), wholeNumber(item, "byteLength")});
  });
  config.weightsFile = text(options, "weightsFile");
  config.packedFile = text(options, "packedFile");
  config.isa = oneOf(options, "instructionSet", kIsas);
  if (!isaSupported(config.isa)) {
    throw std::runtime_error(std::string("instructionSet is ") + instructionSetName(config.isa) + ", which this processor does not run.");
  }
  config.threads = integer(options, "threads");
  config.maxNumTokens = integer(options, "maxNumTokens");
  config.maxNumSequences = integer(options, "maxNumSequences");
  config.maxLogitRows = integer(options, "maxLogitRows");
  config.maxSeqLen = integer(options, "maxSeqLen");
  config.numBlocks = integer(options, "numBlocks");
  config.tokensPerBlock = integer(options, "tokensPerBlock");
  config.kvDtype = oneOf(options, "kvDtype", kKvTypes);
  config.maxAttentionWindow = integer(options, "maxAttentionWindow");
  config.sinkTokens = integer(options, "sinkTokenLength");
  return config;
}

}  // namespace skein::js

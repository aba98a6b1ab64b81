#include "executor/js_config.h"

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "convert/register-convert.h"
#include "executor/js_group.h"
#include "executor/js_values.h"

namespace skein::js {
namespace {

// Runs read(); puts the place in front of its error.
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

// Returns the value of one of the names; throws an error that lists them for any other.
template <typename Choices>
auto oneOf(const Napi::Object& parent, const char* field, const Choices& choices) {
  const std::string given = text(parent, field);
  std::string names;
  for (const auto& [name, value] : choices) {
    if (given == name) return value;
    if (!names.empty()) names.append(", ");
    names.append(name);
  }
  throw std::runtime_error(std::string(field) + " is \"" + given + "\", but it must be one of " + names + ".");
}

constexpr auto kWeightTypes = [] {
  std::array<std::pair<const char*, DType>, std::size(kWeightFormats)> types;
  for (size_t i = 0; i < types.size(); i++) types[i] = {kWeightFormats[i].name, kWeightFormats[i].dtype};
  return types;
}();
constexpr std::pair<const char*, DType> kKvTypes[] = {
    {"f32", DType::kF32}, {"bf16", DType::kBf16}, {"int8", DType::kInt8}};
constexpr std::pair<const char*, RowKind> kRows[] = {
    {"tokens", RowKind::kTokens}, {"logits", RowKind::kLogits}, {"distances", RowKind::kDistances}};
constexpr std::pair<const char*, bool> kWeightKinds[] = {{"matrix", true}, {"vector", false}};
constexpr std::pair<const char*, Isa> kIsas[] = {
    {"scalar", Isa::kScalar},         {"avx2", Isa::kAvx2}, {"avxvnni", Isa::kAvxVnni}, {"avx512", Isa::kAvx512},
    {"avx512bf16", Isa::kAvx512Bf16}, {"amx", Isa::kAmx},   {"neon", Isa::kNeon},       {"neonbf16", Isa::kNeonBf16}};
constexpr std::pair<const char*, Activation> kActivations[] = {{"none", Activation::kNone},
                                                               {"silu", Activation::kSilu},
                                                               {"gelu", Activation::kGelu},
                                                               {"geluTanh", Activation::kGeluTanh},
                                                               {"tanh", Activation::kTanh},
                                                               {"relu", Activation::kRelu},
                                                               {"reluSquared", Activation::kReluSquared},
                                                               {"sigmoid", Activation::kSigmoid},
                                                               {"quickGelu", Activation::kQuickGelu}};
constexpr std::pair<const char*, LookupKind> kLookups[] = {{"positions", LookupKind::kPositions},
                                                           {"tokenTypes", LookupKind::kTokenTypes},
                                                           {"tokenIds", LookupKind::kTokenIds},
                                                           {"places", LookupKind::kPlaces}};
constexpr std::pair<const char*, ExpertScoring> kScorings[] = {{"softmax", ExpertScoring::kSoftmax},
                                                               {"sigmoid", ExpertScoring::kSigmoid},
                                                               {"sparsemixer", ExpertScoring::kSparseMixer}};
constexpr std::pair<const char*, OpKind> kOps[] = {{"embedding", OpKind::kEmbedding},
                                                   {"rmsNorm", OpKind::kRmsNorm},
                                                   {"linear", OpKind::kLinear},
                                                   {"gatedLinear", OpKind::kGatedLinear},
                                                   {"ropeAndCache", OpKind::kRopeAndCache},
                                                   {"attention", OpKind::kAttention},
                                                   {"selectRows", OpKind::kSelectRows},
                                                   {"join", OpKind::kJoin},
                                                   {"addEmbedding", OpKind::kAddEmbedding},
                                                   {"layerNorm", OpKind::kLayerNorm},
                                                   {"meanPool", OpKind::kMeanPool},
                                                   {"normalize", OpKind::kNormalize},
                                                   {"rmsNormHeads", OpKind::kRmsNormHeads},
                                                   {"layerNormHeads", OpKind::kLayerNormHeads},
                                                   {"softCap", OpKind::kSoftCap},
                                                   {"xielu", OpKind::kXielu},
                                                   {"addScaled", OpKind::kAddScaled},
                                                   {"gate", OpKind::kGate},
                                                   {"shortConv", OpKind::kShortConv},
                                                   {"gatedDelta", OpKind::kGatedDelta},
                                                   {"selectiveScan", OpKind::kSelectiveScan},
                                                   {"scale", OpKind::kScale},
                                                   {"clamp", OpKind::kClamp},
                                                   {"exchange", OpKind::kExchange},
                                                   {"experts", OpKind::kExperts},
                                                   {"distanceRows", OpKind::kDistanceRows},
                                                   {"distanceProducts", OpKind::kDistanceProducts},
                                                   {"distanceBiases", OpKind::kDistanceBiases},
                                                   {"addPromptRows", OpKind::kAddPromptRows},
                                                   {"rowInput", OpKind::kRowInput},
                                                   {"keepRows", OpKind::kKeepRows}};

// Well above what any machine has: the bits of a mask are taken for as many.
constexpr double kMostProcessors = 65536;

class PlanReader {
 public:
  NetworkPlan read(const Napi::Object& source) {
    plan_.vocabSize = integer(source, "vocabSize");
    plan_.outputWidth = integer(source, "outputWidth");
    const Napi::Object attention = object(source, "attention");
    readLayers(source, attention);
    plan_.rotaryDim = integer(attention, "rotaryDim");
    readRopeTables(attention);
    readRopeAxes(attention);
    readDistances(attention);
    eachObject(source, "weights", [&](const Napi::Object& item) { readWeight(item); });
    eachObject(source, "values", [&](const Napi::Object& item) {
      plan_.values.push_back({oneOf(item, "rows", kRows), integer(item, "width"), integer(item, "slot")});
    });
    eachObject(source, "slots", [&](const Napi::Object& item) {
      plan_.slots.push_back({oneOf(item, "rows", kRows), integer(item, "width")});
    });
    if (!isAbsent(source, "states"))
      eachObject(source, "states", [&](const Napi::Object& item) { plan_.states.push_back(integer(item, "size")); });
    eachObject(source, "ops", [&](const Napi::Object& item) { plan_.ops.push_back(readOp(item)); });
    if (!isAbsent(source, "packed"))
      eachObject(source, "packed", [&](const Napi::Object& item) {
        plan_.packed.push_back({weightIndex(item, "weight"), property(item, "gated").ToBoolean(),
                                property(item, "isExpert").ToBoolean()});
      });
    plan_.logits = integer(source, "logits");
    readMasks();
    readRank(source);
    return std::move(plan_);
  }

 private:
  // Heads of queries are those of the layer, or where all layers have the same those of attention.
  void readLayers(const Napi::Object& source, const Napi::Object& attention) {
    const int32_t numHeads = integer(attention, "numHeads");
    std::vector<int32_t> own;
    if (!isAbsent(attention, "layerHeads")) {
      const Napi::Array heads = array(attention, "layerHeads");
      for (uint32_t i = 0; i < heads.Length(); ++i) {
        const Napi::Value count = heads.Get(i);
        if (!count.IsNumber()) throw std::runtime_error("layerHeads must be a list of numbers.");
        own.push_back(count.As<Napi::Number>().Int32Value());
      }
    }
    eachObject(source, "caches", [&](const Napi::Object& item) {
      const size_t layer = plan_.layers.size();
      const int32_t headDim = integer(item, "keyDim");
      if (integer(item, "valueDim") != headDim)
        throw std::runtime_error("Layer " + std::to_string(layer) + " of the plan has keys of " +
                                 std::to_string(headDim) + " and values of " +
                                 std::to_string(integer(item, "valueDim")) + " numbers, but they must be as wide.");
      plan_.layers.push_back({layer < own.size() ? own[layer] : numHeads, integer(item, "kvHeads"), headDim});
    });
    const int32_t numLayers = integer(attention, "numLayers");
    if (plan_.numLayers() != numLayers || (!own.empty() && own.size() != plan_.layers.size()))
      throw std::runtime_error("The plan has " + std::to_string(plan_.numLayers()) + " caches, but " +
                               std::to_string(numLayers) + " layers that keep something" +
                               (own.empty() ? "." : ", and heads of " + std::to_string(own.size()) + " layers."));
  }

  // Layers that attend both ways, or that write over one another's cache, need whole sequences.
  void readMasks() {
    int32_t layers = 0;
    for (const PlanOp& op : plan_.ops) {
      layers += op.kind == OpKind::kRopeAndCache && !op.queriesOnly;
      plan_.bothWays = plan_.bothWays || op.bothWays;
      plan_.withinPictures = plan_.withinPictures || op.withinPictures;
    }
    plan_.wholeSequences = plan_.bothWays || layers > plan_.numLayers();
  }

  void readRank(const Napi::Object& source) {
    if (isAbsent(source, "ranks")) return;
    plan_.ranks = integer(source, "ranks");
    plan_.rank = integer(source, "rank");
    plan_.rowsOfPrompts = integer(source, "promptRowWidth");
  }

  void readWeight(const Napi::Object& item) {
    PlanWeight weight{text(item, "name"), oneOf(item, "kind", kWeightKinds), integer(item, "rows"),
                      integer(item, "columns")};
    if (weight.rows < 1 || weight.columns < 1) throw std::runtime_error(weight.name + " has no elements.");
    weight.tensor = weight.name;
    weight.tensorRows = weight.rows;
    weight.tensorColumns = weight.columns;
    if (!isAbsent(item, "part")) readPart(object(item, "part"), weight);
    if (!byName_.emplace(weight.name, static_cast<int32_t>(plan_.weights.size())).second) {
      throw std::runtime_error("the name " + weight.name + " is taken by an earlier weight.");
    }
    plan_.weights.push_back(weight);
  }

  // A rank's part of a tensor: slices of the rows of a matrix, or of the entries of a vector.
  static void readPart(const Napi::Object& part, PlanWeight& weight) {
    weight.tensor = text(part, "tensor");
    const int32_t of = integer(part, "of"), own = weight.matrix ? weight.rows : weight.columns;
    (weight.matrix ? weight.tensorRows : weight.tensorColumns) = of;
    int64_t sum = 0;
    eachObject(part, "slices", [&](const Napi::Object& item) {
      const WeightSlice slice{integer(item, "first"), integer(item, "count")};
      if (slice.first < 0 || slice.count < 1 || slice.count > of - slice.first)
        throw std::runtime_error("a slice of " + weight.name + " does not lie in its tensor.");
      weight.slices.push_back(slice);
      sum += slice.count;
    });
    if (sum != own) throw std::runtime_error("the slices of " + weight.name + " do not make up its shape.");
  }

  void readRopeTables(const Napi::Object& attention) {
    if (isAbsent(attention, "ropeTables")) return;
    const Napi::Array tables = array(attention, "ropeTables");
    for (uint32_t i = 0; i < tables.Length(); ++i) {
      const Napi::Value table = tables.Get(i);
      if (!table.IsArray()) throw std::runtime_error("ropeTables must be a list of lists of numbers.");
      const Napi::Array numbers = table.As<Napi::Array>();
      std::vector<float>& frequencies = plan_.ropeTables.emplace_back();
      for (uint32_t j = 0; j < numbers.Length(); ++j) {
        const Napi::Value item = numbers.Get(j);
        if (!item.IsNumber()) throw std::runtime_error("ropeTables must be a list of lists of numbers.");
        frequencies.push_back(item.As<Napi::Number>().FloatValue());
      }
    }
  }

  void readRopeAxes(const Napi::Object& attention) {
    if (!isAbsent(attention, "ropeAxes")) plan_.ropeAxes = integers(attention, "ropeAxes");
  }

  static std::vector<int32_t> integers(const Napi::Object& parent, const char* field) {
    const Napi::Array list = array(parent, field);
    std::vector<int32_t> numbers;
    for (uint32_t i = 0; i < list.Length(); ++i) {
      const Napi::Value item = list.Get(i);
      if (!item.IsNumber()) throw std::runtime_error(std::string(field) + " must be a list of numbers.");
      numbers.push_back(item.As<Napi::Number>().Int32Value());
    }
    return numbers;
  }

  void readDistances(const Napi::Object& attention) {
    if (isAbsent(attention, "distances")) return;
    const Napi::Object distances = object(attention, "distances");
    plan_.numBuckets = integer(distances, "count");
    plan_.distanceBuckets = integers(distances, "buckets");
  }

  int32_t weightIndex(const Napi::Object& item, const char* field) const { return indexOf(text(item, field), field); }

  std::vector<int32_t> weightIndices(const Napi::Object& item, const char* field) const {
    const Napi::Array names = array(item, field);
    std::vector<int32_t> indices;
    for (uint32_t i = 0; i < names.Length(); ++i) {
      const Napi::Value name = names.Get(i);
      if (!name.IsString()) throw std::runtime_error(std::string(field) + " must be a list of names.");
      indices.push_back(indexOf(name.As<Napi::String>().Utf8Value(), field));
    }
    return indices;
  }

  int32_t indexOf(const std::string& name, const char* field) const {
    const auto found = byName_.find(name);
    if (found == byName_.end())
      throw std::runtime_error(std::string(field) + " names " + name + ", which the plan's weights do not list.");
    return found->second;
  }

  PlanOp readOp(const Napi::Object& item) const {
    PlanOp op{.kind = oneOf(item, "op", kOps)};
    switch (op.kind) {
      case OpKind::kEmbedding:
        op.output = integer(item, "output");
        op.weight = weightIndex(item, "weight");
        op.scale = isAbsent(item, "scale") ? 1.0f : static_cast<float>(number(item, "scale"));
        break;
      case OpKind::kAddEmbedding:
        op.output = integer(item, "output");
        op.weight = weightIndex(item, "weight");
        op.lookup = oneOf(item, "by", kLookups);
        op.scale = isAbsent(item, "scale") ? 1.0f : static_cast<float>(number(item, "scale"));
        break;
      case OpKind::kRmsNorm:
      case OpKind::kLayerNorm: readNorm(item, op); break;
      case OpKind::kRmsNormHeads:
      case OpKind::kLayerNormHeads:
        op.input = integer(item, "value");
        op.firstColumn = integer(item, "first");
        op.heads = integer(item, "heads");
        if (op.kind == OpKind::kRmsNormHeads && property(item, "weight").IsNull()) op.columns = integer(item, "columns");
        else op.weight = weightIndex(item, "weight");
        op.epsilon = static_cast<float>(number(item, "epsilon"));
        break;
      case OpKind::kSoftCap:
        op.input = integer(item, "value");
        op.softCap = static_cast<float>(number(item, "cap"));
        readColumns(item, op);
        break;
      case OpKind::kXielu:
        op.input = integer(item, "value");
        op.xielu = {static_cast<float>(number(item, "alphaPositive")),
                    static_cast<float>(number(item, "alphaNegative")), static_cast<float>(number(item, "beta")),
                    static_cast<float>(number(item, "epsilon"))};
        readColumns(item, op);
        break;
      case OpKind::kAddScaled:
        readInOut(item, op);
        op.weight = weightIndex(item, "weight");
        break;
      case OpKind::kGate:
        op.input = integer(item, "value");
        op.firstColumn = integer(item, "first");
        op.columns = integer(item, "columns");
        op.by = integer(item, "by");
        op.byFirst = integer(item, "byFirst");
        if (!isAbsent(item, "per")) op.per = integer(item, "per");
        op.activation = oneOf(item, "activation", kActivations);
        break;
      case OpKind::kShortConv: readShortConv(item, op); break;
      case OpKind::kGatedDelta: readGatedDelta(item, op); break;
      case OpKind::kSelectiveScan: readSelectiveScan(item, op); break;
      case OpKind::kScale:
        op.input = integer(item, "value");
        op.firstColumn = integer(item, "first");
        op.columns = integer(item, "columns");
        op.scale = static_cast<float>(number(item, "factor"));
        break;
      case OpKind::kClamp:
        op.input = integer(item, "value");
        op.firstColumn = integer(item, "first");
        op.columns = integer(item, "columns");
        op.least = static_cast<float>(number(item, "least"));
        op.most = static_cast<float>(number(item, "most"));
        break;
      case OpKind::kLinear:
      case OpKind::kGatedLinear: readLinear(item, op); break;
      case OpKind::kRopeAndCache: readRope(item, op); break;
      case OpKind::kAttention: readAttention(item, op); break;
      case OpKind::kSelectRows:
        readInOut(item, op);
        if (!isAbsent(item, "rows")) op.rowsOfOutput = integer(item, "rows");
        op.meanOfRows = property(item, "mean").ToBoolean();
        break;
      case OpKind::kNormalize: readInOut(item, op); break;
      case OpKind::kJoin:
        readInOut(item, op);
        op.by = integer(item, "other");
        break;
      case OpKind::kMeanPool:
        readInOut(item, op);
        op.weighted = property(item, "weighted").ToBoolean();
        break;
      case OpKind::kExchange: readExchange(item, op); break;
      case OpKind::kExperts: readExperts(item, op); break;
      case OpKind::kDistanceRows:
        op.output = integer(item, "output");
        op.weight = weightIndex(item, "weight");
        break;
      case OpKind::kDistanceProducts:
        op.input = integer(item, "value");
        op.relative = integer(item, "table");
        if (!property(item, "queries").IsNull()) op.queriesColumn = integer(item, "queries");
        if (!property(item, "keys").IsNull()) op.keysColumn = integer(item, "keys");
        break;
      case OpKind::kDistanceBiases:
        op.relative = integer(item, "table");
        op.weight = weightIndex(item, "weight");
        break;
      case OpKind::kAddPromptRows:
        op.output = integer(item, "value");
        op.firstColumn = integer(item, "first");
        break;
      case OpKind::kRowInput: op.output = integer(item, "output"); break;
      case OpKind::kKeepRows: op.input = integer(item, "input"); break;
    }
    return op;
  }

  void readRope(const Napi::Object& item, PlanOp& op) const {
    op.input = integer(item, "qkv");
    op.layer = integer(item, "layer");
    if (!isAbsent(item, "table")) op.table = integer(item, "table");
    op.queriesOnly = property(item, "queriesOnly").ToBoolean();
    if (isAbsent(item, "norms")) return;
    const Napi::Object norms = object(item, "norms");
    op.queryNorm = weightIndex(norms, "query");
    op.keyNorm = weightIndex(norms, "key");
    op.epsilon = static_cast<float>(number(norms, "epsilon"));
  }

  void readShortConv(const Napi::Object& item, PlanOp& op) const {
    readInOut(item, op);
    op.firstColumn = integer(item, "first");
    op.weight = weightIndex(item, "weight");
    if (!property(item, "bias").IsNull()) op.bias = weightIndex(item, "bias");
    op.taps = integer(item, "taps");
    op.activation = oneOf(item, "activation", kActivations);
    op.state = integer(item, "state");
  }

  void readGatedDelta(const Napi::Object& item, PlanOp& op) const {
    op.input = integer(item, "qkv");
    op.by = integer(item, "gates");
    op.output = integer(item, "output");
    op.decay = weightIndex(item, "decay");
    op.decayBias = weightIndex(item, "decayBias");
    op.tiled = property(item, "tiled").ToBoolean();
    op.rates = property(item, "rates").ToBoolean();
    op.keyHeads = integer(item, "keyHeads");
    op.valueHeads = integer(item, "valueHeads");
    op.keyDim = integer(item, "keyDim");
    op.valueDim = integer(item, "valueDim");
    op.epsilon = static_cast<float>(number(item, "epsilon"));
    op.state = integer(item, "state");
  }

  void readSelectiveScan(const Napi::Object& item, PlanOp& op) const {
    readInOut(item, op);
    op.by = integer(item, "steps");
    op.byFirst = integer(item, "stepsFirst");
    op.decay = weightIndex(item, "decay");
    op.decayBias = weightIndex(item, "stepBias");
    op.skip = weightIndex(item, "skip");
    op.rates = property(item, "rates").ToBoolean();
    op.keyHeads = integer(item, "groups");
    op.valueHeads = integer(item, "heads");
    op.keyDim = integer(item, "stateDim");
    op.valueDim = integer(item, "headDim");
    op.leastStep = static_cast<float>(number(item, "leastStep"));
    const bool bounded = !property(item, "mostStep").IsNull();
    op.mostStep = bounded ? static_cast<float>(number(item, "mostStep")) : std::numeric_limits<float>::infinity();
    op.state = integer(item, "state");
  }

  static void readExchange(const Napi::Object& item, PlanOp& op) {
    op.input = op.output = integer(item, "value");
    op.channel = integer(item, "channel");
    eachObject(item, "parts", [&](const Napi::Object& part) {
      op.parts.push_back({integer(part, "rank"), integer(part, "first"), integer(part, "count")});
    });
    const Napi::Array readers = array(item, "readers");
    for (uint32_t i = 0; i < readers.Length(); ++i) {
      const Napi::Value reader = readers.Get(i);
      if (!reader.IsNumber()) throw std::runtime_error("readers must be a list of ranks.");
      op.readers.push_back(reader.As<Napi::Number>().Int32Value());
    }
  }

  // Columns that a rank's part of an op changes.
  static void readColumns(const Napi::Object& item, PlanOp& op) {
    if (!isAbsent(item, "firstColumn")) op.firstColumn = integer(item, "firstColumn");
    if (!isAbsent(item, "columns")) op.columns = integer(item, "columns");
  }

  static void readInOut(const Napi::Object& item, PlanOp& op) {
    op.input = integer(item, "input");
    op.output = integer(item, "output");
  }

  void readNorm(const Napi::Object& item, PlanOp& op) const {
    readInOut(item, op);
    op.weight = weightIndex(item, "weight");
    op.epsilon = static_cast<float>(number(item, "epsilon"));
    if (op.kind == OpKind::kLayerNorm && !property(item, "bias").IsNull()) op.bias = weightIndex(item, "bias");
    if (op.kind == OpKind::kRmsNorm && !isAbsent(item, "residual")) op.residual = integer(item, "residual");
  }

  void readLinear(const Napi::Object& item, PlanOp& op) const {
    readInOut(item, op);
    op.weight = weightIndex(item, "weight");
    op.activation = oneOf(item, "activation", kActivations);
    readColumns(item, op);
    if (!property(item, "bias").IsNull()) op.bias = weightIndex(item, "bias");
    if (op.kind == OpKind::kLinear && !property(item, "residual").IsNull()) op.residual = integer(item, "residual");
  }

  void readExperts(const Napi::Object& item, PlanOp& op) const {
    readInOut(item, op);
    op.scores = integer(item, "scores");
    op.gateUps = weightIndices(item, "gateUp");
    op.downs = weightIndices(item, "down");
    op.rule = expertRule(item);
    if (!isAbsent(item, "choiceBias")) op.choiceBias = weightIndex(item, "choiceBias");
    if (!isAbsent(item, "shareScales")) op.shareScales = weightIndex(item, "shareScales");
    if (!isAbsent(item, "biases")) {
      const Napi::Object biases = object(item, "biases");
      op.gateUpBiases = weightIndices(biases, "gateUp");
      op.downBiases = weightIndices(biases, "down");
    }
    op.ungated = !isAbsent(item, "ungated") && property(item, "ungated").ToBoolean();
    if (!isAbsent(item, "clamped")) {
      const Napi::Object clamped = object(item, "clamped");
      op.clampAlpha = static_cast<float>(number(clamped, "alpha"));
      op.clampLimit = static_cast<float>(number(clamped, "limit"));
      if (!(op.clampLimit > 0)) throw std::runtime_error("clamped.limit must be a number greater than 0.");
    }
    op.activation = oneOf(item, "activation", kActivations);
    if (!property(item, "residual").IsNull()) op.residual = integer(item, "residual");
  }

  static ExpertRule expertRule(const Napi::Object& item) {
    ExpertRule rule{.used = integer(item, "used"), .normalize = property(item, "normalize").ToBoolean()};
    if (!isAbsent(item, "scoring")) rule.scoring = oneOf(item, "scoring", kScorings);
    if (!isAbsent(item, "jitter")) rule.jitter = number(item, "jitter");
    if (!isAbsent(item, "groups")) {
      const Napi::Object groups = object(item, "groups");
      rule.groups = integer(groups, "count");
      rule.usedGroups = integer(groups, "used");
      rule.groupTop = integer(groups, "top");
    }
    if (!isAbsent(item, "factor")) rule.factor = number(item, "factor");
    if (!isAbsent(item, "sumEpsilon")) rule.sumEpsilon = number(item, "sumEpsilon");
    return rule;
  }

  void readAttention(const Napi::Object& item, PlanOp& op) const {
    op.input = integer(item, "qkv");
    op.output = integer(item, "output");
    op.layer = integer(item, "layer");
    op.scale = static_cast<float>(number(item, "scale"));
    op.queriesOnly = property(item, "queriesOnly").ToBoolean();
    readColumns(item, op);
    if (!isAbsent(item, "mask")) {
      const Napi::Object mask = object(item, "mask");
      if (!isAbsent(mask, "window")) op.window = integer(mask, "window");
      op.bothWays = property(mask, "bothWays").ToBoolean();
      op.segments = property(mask, "segments").ToBoolean();
      op.withinPictures = property(mask, "withinPictures").ToBoolean();
    }
    if (!isAbsent(item, "softCap")) op.softCap = static_cast<float>(number(item, "softCap"));
    if (!isAbsent(item, "relative")) op.relative = integer(item, "relative");
    if (!isAbsent(item, "sinkLogits")) op.sinkLogits = weightIndex(item, "sinkLogits");
  }

  static bool isAbsent(const Napi::Object& item, const char* field) { return property(item, field).IsUndefined(); }

  NetworkPlan plan_;
  std::unordered_map<std::string, int32_t> byName_;
};

int32_t processor(const Napi::Value& value) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number < kMostProcessors) || number != std::floor(number)) {
    throw std::runtime_error("places.cpus must be a list of lists of processors, one for each thread.");
  }
  return static_cast<int32_t>(number);
}

void readPlaces(const Napi::Object& source, ExecutorConfig& config) {
  const Napi::Array threads = array(source, "cpus");
  for (uint32_t i = 0; i < threads.Length(); ++i) {
    const Napi::Value item = threads.Get(i);
    const Napi::Array processors = item.IsArray() ? item.As<Napi::Array>() : Napi::Array::New(source.Env());
    std::vector<int32_t>& place = config.places.emplace_back();
    for (uint32_t j = 0; j < processors.Length(); ++j) place.push_back(processor(processors.Get(j)));
  }
  config.hasFarMemory = property(source, "hasFarMemory").ToBoolean();
}

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
    config.tensors.push_back(
        {text(item, "name"), oneOf(item, "dtype", kWeightTypes), wholeNumber(item, "rows"),
         wholeNumber(item, "columns"), wholeNumber(item, "offset"), wholeNumber(item, "byteLength"),
         item.Has("checksum") && !item.Get("checksum").IsUndefined() ? wholeNumber(item, "checksum") : -1,
         item.Has("firstRow") && !item.Get("firstRow").IsUndefined() ? wholeNumber(item, "firstRow") : 0});
    if (item.Has("jobs") && !item.Get("jobs").IsUndefined())
      config.tensors.back().jobs = convertJobsOf(array(item, "jobs"));
  });
  config.weightsFile = text(options, "weightsFile");
  config.packedFile = text(options, "packedFile");
  if (const Napi::Value held = property(options, "held"); !held.IsUndefined()) {
    if (!held.IsTypedArray() || held.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array)
      throw std::runtime_error("held must be a Uint8Array.");
    const Napi::Uint8Array bytes = held.As<Napi::Uint8Array>();
    config.staysStored = true;
    config.held.assign(bytes.Data(), bytes.Data() + bytes.ByteLength());
  }
  config.expertsFromDisk = property(options, "expertsFromDisk").ToBoolean();
  config.isa = oneOf(options, "instructionSet", kIsas);
  if (!isaSupported(config.isa)) {
    throw std::runtime_error(std::string("instructionSet is ") + instructionSetName(config.isa) +
                             ", which this processor does not run.");
  }
  if (const char* problem = isaProblem(config.isa)) {
    throw std::runtime_error(std::string("instructionSet is ") + instructionSetName(config.isa) + ", but " + problem +
                             ".");
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
  const auto count = [&](const char* field) {
    return property(options, field).IsUndefined() ? 0 : integer(options, field);
  };
  config.numStateSlots = count("numStateSlots");
  config.numDraftSlots = count("numDraftSlots");
  config.stateDraftRows = count("stateDraftRows");
  config.maxAdapters = integer(options, "maxAdapters");
  config.maxLoraRank = integer(options, "maxLoraRank");
  if (!property(options, "places").IsUndefined()) readPlaces(object(options, "places"), config);
  const Napi::Value group = property(options, "group");
  if (!group.IsUndefined()) config.group = groupOf(group);
  return config;
}

}  // namespace skein::js

#include "executor/js_batch.h"

namespace skein::js {
namespace {

// Reads the fields of an object that hold arrays.
class Fields {
 public:
  Fields(const Napi::Value& value, const char* name, HeldValues* held) : held_(held) {
    if (!value.IsObject()) throw std::runtime_error(std::string(name) + " must be an object.");
    object_ = value.As<Napi::Object>();
  }

  const Napi::Object& object() const { return object_; }
  HeldValues* held() const { return held_; }
  int32_t number(const char* field) const { return integer(object_, field); }

  template <typename T>
  ArrayView<T> array(const char* field) const {
    const Napi::Value value = property(object_, field);
    const ArrayView<T> view = typedArray<T>(value, field);
    if (held_ != nullptr) held_->add(value);
    return view;
  }
  ArrayView<const int32_t> integers(const char* field) const { return array<const int32_t>(field); }
  ArrayView<const float> floats(const char* field) const { return array<const float>(field); }

 private:
  Napi::Object object_;
  HeldValues* held_;
};

ReturnedRows readReturnedRows(const Fields& rows) {
  const std::string of = text(rows.object(), "of");
  if (of != "tokens" && of != "logitRows")
    throw std::runtime_error("of is \"" + of + "\"; tokens or logitRows is expected.");
  ReturnedRows view;
  view.sampled = of == "logitRows";
  view.first = rows.number("first");
  view.count = rows.number("count");
  const Napi::Value logits = property(rows.object(), "logits"), logProbs = property(rows.object(), "logProbs");
  view.wantsLogits = !logits.IsNull();
  if (view.wantsLogits) view.logits = rows.array<float>("logits");
  view.wantsLogProbs = !logProbs.IsNull();
  if (!view.wantsLogProbs) return view;
  const Fields wanted(logProbs, "logProbs", rows.held());
  view.logProbs = {.numTop = wanted.number("numTop"),
                   .tokens = wanted.integers("tokens"),
                   .logProbs = wanted.array<float>("logProbs"),
                   .topTokens = wanted.array<int32_t>("topTokens"),
                   .topLogProbs = wanted.array<float>("topLogProbs")};
  return view;
}

PromptTableRows readPromptTable(const Fields& rows) {
  return {.first = rows.number("first"), .count = rows.number("count"), .table = rows.floats("table")};
}

RowBiasView readRowBias(const Fields& bias) {
  RowBiasView view{};
  view.row = bias.number("row");
  view.isDense = property(bias.object(), "tokens").IsNull();
  if (!view.isDense) view.tokens = bias.integers("tokens");
  view.values = bias.floats("values");
  return view;
}

DraftRowView readDraftRow(const Fields& draft) {
  DraftRowView view{};
  view.row = draft.number("row");
  view.token = draft.number("token");
  view.logits = draft.floats("logits");
  return view;
}

ChainView readChain(const Fields& chain) {
  return {.row = chain.number("row"), .values = chain.array<double>("values")};
}

// Reads the entries of a list that may be absent. Usually there are none, and then nothing allocates.
template <typename View>
std::vector<View> readAll(const Fields& parent, const char* field, View (*readEntry)(const Fields&)) {
  if (property(parent.object(), field).IsUndefined()) return {};
  const Napi::Array entries = array(parent.object(), field);
  const std::string what = std::string("an entry of ") + field;
  std::vector<View> views;
  views.reserve(entries.Length());
  for (uint32_t i = 0; i < entries.Length(); ++i) {
    napi_value entry = nullptr;
    if (napi_get_element(entries.Env(), entries, i, &entry) != napi_ok)
      throw std::runtime_error(std::string(field) + " must be readable.");
    views.push_back(readEntry(Fields(Napi::Value(entries.Env(), entry), what.c_str(), parent.held())));
  }
  return views;
}

bool isGiven(const Fields& parent, const char* field) {
  const Napi::Value value = property(parent.object(), field);
  return !value.IsUndefined() && !value.IsNull();
}

}  // namespace

BatchView readBatch(const Napi::Value& value, HeldValues* held) {
  const Fields batch(value, "batch", held);
  ArrayView<const int32_t> tokenTypes;
  if (!property(batch.object(), "tokenTypes").IsUndefined()) tokenTypes = batch.integers("tokenTypes");
  ArrayView<const int32_t> adapterSlots;
  const Napi::Value slots = property(batch.object(), "adapterSlots");
  if (!slots.IsUndefined() && !slots.IsNull()) adapterSlots = batch.integers("adapterSlots");
  ArrayView<const int32_t> gridPositions;
  if (isGiven(batch, "gridPositions")) gridPositions = batch.integers("gridPositions");
  ArrayView<const int32_t> pictures;
  if (isGiven(batch, "pictures")) pictures = batch.integers("pictures");
  ArrayView<const int32_t> stateSlots, stateReplays, stateDrafts;
  ArrayView<const int32_t> snapshotStart, snapshotRows, snapshotSlots;
  if (!property(batch.object(), "stateSlots").IsUndefined()) {
    stateSlots = batch.integers("stateSlots");
    stateReplays = batch.integers("stateReplays");
    stateDrafts = batch.integers("stateDrafts");
    snapshotStart = batch.integers("snapshotStart");
    snapshotRows = batch.integers("snapshotRows");
    snapshotSlots = batch.integers("snapshotSlots");
  }
  ArrayView<const int32_t> places;
  ArrayView<const float> placeShares;
  if (isGiven(batch, "places")) {
    places = batch.integers("places");
    placeShares = batch.floats("placeShares");
  }
  ArrayView<const int32_t> segments;
  if (isGiven(batch, "segments")) segments = batch.integers("segments");
  ArrayView<const float> rowInputs;
  if (isGiven(batch, "rowInputs")) rowInputs = batch.floats("rowInputs");
  ArrayView<float> keptRows;
  if (isGiven(batch, "keptRows")) keptRows = batch.array<float>("keptRows");
  return {.numTokens = batch.number("numTokens"),
          .numSequences = batch.number("numSequences"),
          .numLogitRows = batch.number("numLogitRows"),
          .numNewBlocks = batch.number("numNewBlocks"),
          .maxBlocks = batch.number("maxBlocks"),
          .tokenIds = batch.integers("tokenIds"),
          .positions = batch.integers("positions"),
          .slots = batch.integers("slots"),
          .queryStart = batch.integers("queryStart"),
          .contextLength = batch.integers("contextLength"),
          .blockTables = batch.integers("blockTables"),
          .logitRows = batch.integers("logitRows"),
          .newBlocks = batch.integers("newBlocks"),
          .ropeRows = batch.integers("ropeRows"),
          .gridPositions = gridPositions,
          .pictures = pictures,
          .ropeFrequencies = batch.floats("ropeFrequencies"),
          .ropeScales = batch.floats("ropeScales"),
          .returnedRows = readAll(batch, "returnedRows", readReturnedRows),
          .promptTables = readAll(batch, "promptTables", readPromptTable),
          .tokenTypes = tokenTypes,
          .adapterSlots = adapterSlots,
          .stateSlots = stateSlots,
          .stateReplays = stateReplays,
          .stateDrafts = stateDrafts,
          .snapshotStart = snapshotStart,
          .snapshotRows = snapshotRows,
          .snapshotSlots = snapshotSlots,
          .places = places,
          .placeShares = placeShares,
          .segments = segments,
          .rowInputs = rowInputs,
          .keptRows = keptRows};
}

std::vector<AdapterPart> readAdapterParts(const Napi::Array& entries) {
  std::vector<AdapterPart> parts;
  for (uint32_t i = 0; i < entries.Length(); ++i) {
    const Fields part(entries.Get(i), "an entry of parts", nullptr);
    parts.push_back({.op = part.number("op"),
                     .firstRow = part.number("firstRow"),
                     .rows = part.number("rows"),
                     .rank = part.number("rank"),
                     .a = part.floats("a"),
                     .b = part.floats("b")});
  }
  return parts;
}

SamplingView readSampling(const Napi::Value& value, HeldValues* held) {
  const Fields sampling(value, "sampling", held);
  ArrayView<const int32_t> maskOfRow, maskWords;
  const Napi::Value masks = property(sampling.object(), "tokenMasks");
  if (!masks.IsUndefined() && !masks.IsNull()) {
    const Fields fields(masks, "tokenMasks", held);
    maskOfRow = fields.integers("maskOfRow");
    maskWords = fields.integers("words");
  }
  ArrayView<const int32_t> listsCandidates;
  if (!property(sampling.object(), "listsCandidates").IsUndefined())
    listsCandidates = sampling.integers("listsCandidates");
  return {.numRows = sampling.number("numRows"),
          .temperature = sampling.floats("temperature"),
          .topK = sampling.integers("topK"),
          .topP = sampling.floats("topP"),
          .minP = sampling.floats("minP"),
          .repetitionPenalty = sampling.floats("repetitionPenalty"),
          .presencePenalty = sampling.floats("presencePenalty"),
          .frequencyPenalty = sampling.floats("frequencyPenalty"),
          .seed = sampling.array<const uint64_t>("seed"),
          .sequenceIndex = sampling.integers("sequenceIndex"),
          .position = sampling.integers("position"),
          .noRepeatNgramSize = sampling.integers("noRepeatNgramSize"),
          .numTopLogProbs = sampling.integers("numTopLogProbs"),
          .biases = readAll(sampling, "biases", readRowBias),
          .penalties = readAll(sampling, "penalties", readRowBias),
          .draftRows = readAll(sampling, "draftRows", readDraftRow),
          .chains = readAll(sampling, "chains", readChain),
          .bannedStart = sampling.integers("bannedStart"),
          .banned = sampling.integers("banned"),
          .historyStart = sampling.integers("historyStart"),
          .history = sampling.integers("history"),
          .historyPromptLength = sampling.integers("historyPromptLength"),
          .maskOfRow = maskOfRow,
          .maskWords = maskWords,
          .listsCandidates = listsCandidates};
}

SamplingOutputView readSamplingOutput(const Napi::Value& value, HeldValues* held) {
  const Fields output(value, "output", held);
  return {.tokens = output.array<int32_t>("tokens"),
          .logProbs = output.array<float>("logProbs"),
          .topStart = output.array<int32_t>("topStart"),
          .topTokens = output.array<int32_t>("topTokens"),
          .topLogProbs = output.array<float>("topLogProbs"),
          .status = output.array<int32_t>("status")};
}

}  // namespace skein::js

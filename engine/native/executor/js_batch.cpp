#include "executor/js_batch.h"

#include "executor/js_values.h"

namespace skein::js {
namespace {

Napi::Object asObject(const Napi::Value& value, const char* name) {
  if (!value.IsObject()) throw std::runtime_error(std::string(name) + " must be an object.");
  return value.As<Napi::Object>();
}

ArrayView<const int32_t> integers(const Napi::Object& parent, const char* field) { return typedArray<const int32_t>(parent, field); }
ArrayView<const float> floats(const Napi::Object& parent, const char* field) { return typedArray<const float>(parent, field); }

ReturnedRows readReturnedRows(const Napi::Object& rows) {
  const std::string of = text(rows, "of");
  if (of != "tokens" && of != "logitRows") throw std::runtime_error("of is \"" + of + "\"; tokens or logitRows is expected.");
  ReturnedRows view{.sampled = of == "logitRows", .first = integer(rows, "first"), .count = integer(rows, "count")};
  const Napi::Value logits = property(rows, "logits"), logProbs = property(rows, "logProbs");
  view.wantsLogits = !logits.IsNull();
  if (view.wantsLogits) view.logits = typedArray<float>(logits, "logits");
  view.wantsLogProbs = !logProbs.IsNull();
  if (!view.wantsLogProbs) return view;
  const Napi::Object wanted = asObject(logProbs, "logProbs");
  view.logProbs = {.numTop = integer(wanted, "numTop"),
                   .tokens = integers(wanted, "tokens"),
                   .logProbs = typedArray<float>(wanted, "logProbs"),
                   .topTokens = typedArray<int32_t>(wanted, "topTokens"),
                   .topLogProbs = typedArray<float>(wanted, "topLogProbs")};
  return view;
}

// Mostly there are none, and then nothing allocates.
std::vector<ReturnedRows> readAllReturnedRows(const Napi::Object& batch) {
  const Napi::Value value = batch.Get("returnedRows");
  if (value.IsUndefined()) return {};
  const Napi::Array rows = array(batch, "returnedRows");
  std::vector<ReturnedRows> views;
  views.reserve(rows.Length());
  for (uint32_t i = 0; i < rows.Length(); ++i) {
    const Napi::Value entry = rows.Get(i);
    views.push_back(readReturnedRows(asObject(entry, "an entry of returnedRows")));
  }
  return views;
}

}  // namespace

BatchView readBatch(const Napi::Value& value) {
  const Napi::Object batch = asObject(value, "batch");
  return {.numTokens = integer(batch, "numTokens"),
          .numSequences = integer(batch, "numSequences"),
          .numLogitRows = integer(batch, "numLogitRows"),
          .numNewBlocks = integer(batch, "numNewBlocks"),
          .maxBlocks = integer(batch, "maxBlocks"),
          .tokenIds = integers(batch, "tokenIds"),
          .positions = integers(batch, "positions"),
          .slots = integers(batch, "slots"),
          .queryStart = integers(batch, "queryStart"),
          .contextLength = integers(batch, "contextLength"),
          .blockTables = integers(batch, "blockTables"),
          .logitRows = integers(batch, "logitRows"),
          .newBlocks = integers(batch, "newBlocks"),
          .ropeRows = integers(batch, "ropeRows"),
          .ropeFrequencies = floats(batch, "ropeFrequencies"),
          .ropeScales = floats(batch, "ropeScales"),
          .returnedRows = readAllReturnedRows(batch)};
}

SamplingView readSampling(const Napi::Value& value) {
  const Napi::Object sampling = asObject(value, "sampling");
  return {.numRows = integer(sampling, "numRows"),
          .temperature = floats(sampling, "temperature"),
          .topK = integers(sampling, "topK"),
          .topP = floats(sampling, "topP"),
          .minP = floats(sampling, "minP"),
          .repetitionPenalty = floats(sampling, "repetitionPenalty"),
          .presencePenalty = floats(sampling, "presencePenalty"),
          .frequencyPenalty = floats(sampling, "frequencyPenalty"),
          .seed = typedArray<const uint64_t>(sampling, "seed"),
          .sequenceIndex = integers(sampling, "sequenceIndex"),
          .position = integers(sampling, "position"),
          .numTopLogProbs = integers(sampling, "numTopLogProbs"),
          .bannedStart = integers(sampling, "bannedStart"),
          .banned = integers(sampling, "banned"),
          .historyStart = integers(sampling, "historyStart"),
          .history = integers(sampling, "history"),
          .historyPromptLength = integers(sampling, "historyPromptLength")};
}

SamplingOutputView readSamplingOutput(const Napi::Value& value) {
  const Napi::Object output = asObject(value, "output");
  return {.maxTopLogProbs = integer(output, "maxTopLogProbs"),
          .tokens = typedArray<int32_t>(output, "tokens"),
          .logProbs = typedArray<float>(output, "logProbs"),
          .topTokens = typedArray<int32_t>(output, "topTokens"),
          .topLogProbs = typedArray<float>(output, "topLogProbs"),
          .status = typedArray<int32_t>(output, "status")};
}

}  // namespace skein::js

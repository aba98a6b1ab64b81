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
          .ropeScales = floats(batch, "ropeScales")};
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

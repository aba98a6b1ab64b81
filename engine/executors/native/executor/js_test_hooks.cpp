#include "executor/js_test_hooks.h"

#include <vector>

#include "executor/js_values.h"
#include "executor/philox.h"
#include "executor/shared_prefixes.h"
#include "executor/turn_simulation.h"

namespace skein {
namespace {

// Philox4x32-10 for its known-answer test: counter [4], key [2] -> words [4].
Napi::Value philox(const Napi::CallbackInfo& info) {
  const auto counter = info[0].As<Napi::Uint32Array>(), key = info[1].As<Napi::Uint32Array>();
  const auto words = philox4x32({counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]});
  Napi::Uint32Array result = Napi::Uint32Array::New(info.Env(), words.size());
  for (size_t i = 0; i < words.size(); ++i) result[i] = words[i];
  return result;
}

// Runs TurnQueue on a clock of its own, for its tests: see turn_simulation.h.
Napi::Value simulatedTurns(const Napi::CallbackInfo& info) {
  const Napi::Object options = info[0].As<Napi::Object>();
  std::vector<SimulatedEngine> engines;
  const Napi::Array given = js::array(options, "engines");
  for (uint32_t i = 0; i < given.Length(); ++i) {
    const Napi::Object engine = given.Get(i).As<Napi::Object>();
    engines.push_back({js::integer(engine, "threads"), js::number(engine, "weight"), js::number(engine, "opSeconds"),
                       js::integer(engine, "opsPerStep"), js::number(engine, "gapSeconds"),
                       js::number(engine, "startSeconds")});
  }
  Napi::Array results = Napi::Array::New(info.Env());
  for (const SimulatedTurns& turns :
       simulateTurns(js::integer(options, "processors"), js::number(options, "seconds"), engines)) {
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("heldSeconds", turns.heldSeconds);
    result.Set("waitedSeconds", turns.waitedSeconds);
    result.Set("longestWaitSeconds", turns.longestWaitSeconds);
    result.Set("steps", turns.steps);
    result.Set("partings", turns.partings);
    results.Set(results.Length(), result);
  }
  return results;
}

// Runs SharedPrefixes on tables alone, for its tests: { tokens, members }[].
Napi::Value sharedPrefixes(const Napi::CallbackInfo& info) {
  const Napi::Object options = info[0].As<Napi::Object>();
  BatchView batch{};
  batch.contextLength = js::typedArray<const int32_t>(options, "contextLength");
  batch.queryStart = js::typedArray<const int32_t>(options, "queryStart");
  batch.blockTables = js::typedArray<const int32_t>(options, "blockTables");
  batch.numSequences = batch.contextLength.length;
  batch.maxBlocks = js::integer(options, "maxBlocks");
  SharedPrefixes prefixes({.tokensPerBlock = js::integer(options, "tokensPerBlock"),
                           .maxNumSequences = static_cast<int32_t>(batch.numSequences),
                           .rows = js::integer(options, "rows"),
                           .splitRows = js::integer(options, "splitRows")});
  prefixes.find(batch);
  Napi::Array groups = Napi::Array::New(info.Env());
  for (const PrefixGroup& group : prefixes.groups()) {
    Napi::Object result = Napi::Object::New(info.Env());
    Napi::Array members = Napi::Array::New(info.Env());
    for (int32_t i = group.begin; i < group.end; ++i)
      members.Set(members.Length(), prefixes.order()[static_cast<size_t>(i)]);
    result.Set("tokens", group.tokens);
    result.Set("members", members);
    groups.Set(groups.Length(), result);
  }
  return groups;
}

}  // namespace

void registerExecutorTestHooks(Napi::Env env, Napi::Object exports) {
  exports.Set("sharedPrefixes", Napi::Function::New(env, sharedPrefixes, "sharedPrefixes"));
  exports.Set("simulateTurns", Napi::Function::New(env, simulatedTurns, "simulateTurns"));
  exports.Set("philox4x32", Napi::Function::New(env, philox, "philox4x32"));
}

}  // namespace skein

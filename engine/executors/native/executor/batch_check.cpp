#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "executor/batch.h"
#include "executor/sampler_chain.h"
#include "executor/state_log.h"

namespace skein {
namespace {

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message + "."); }

std::string at(const char* field, int64_t index) { return std::string(field) + "[" + std::to_string(index) + "]"; }

void checkCount(int64_t count, int64_t least, int64_t most, const char* field) {
  if (count >= least && count <= most) return;
  fail(std::string(field) + " is " + std::to_string(count) + ", but this executor takes " + std::to_string(least) +
       " to " + std::to_string(most));
}

template <typename T>
void checkLength(const ArrayView<T>& array, int64_t needed, const char* field) {
  if (array.length >= needed) return;
  fail(std::string(field) + " has " + std::to_string(array.length) + " entries, but " + std::to_string(needed) +
       " are needed");
}

// Checks that every entry is in [least, end).
void checkEntries(const ArrayView<const int32_t>& array, int64_t count, int64_t least, int64_t end, const char* field) {
  checkLength(array, count, field);
  for (int64_t i = 0; i < count; ++i) {
    if (array[i] >= least && array[i] < end) continue;
    fail(at(field, i) + " is " + std::to_string(array[i]) + ", but it must be in [" + std::to_string(least) + ", " +
         std::to_string(end) + ")");
  }
}

void checkCounts(const BatchView& batch, const ExecutorConfig& config) {
  checkCount(batch.numTokens, 1, config.maxNumTokens, "numTokens");
  checkCount(batch.numSequences, 1, config.maxNumSequences, "numSequences");
  checkCount(batch.numLogitRows, 0, config.maxLogitRows, "numLogitRows");
  checkCount(batch.numNewBlocks, 0, config.numBlocks, "numNewBlocks");
  checkCount(batch.maxBlocks, 1, int64_t(1) << 30, "maxBlocks");
  checkLength(batch.queryStart, batch.numSequences + 1, "queryStart");
  checkLength(batch.contextLength, batch.numSequences, "contextLength");
  checkLength(batch.blockTables, batch.numSequences * batch.maxBlocks, "blockTables");
}

void checkSequence(const BatchView& batch, const ExecutorConfig& config, int64_t sequence) {
  const int64_t begin = batch.queryStart[sequence], end = batch.queryStart[sequence + 1];
  const int64_t length = batch.contextLength[sequence];
  if (end <= begin)
    fail(at("queryStart", sequence + 1) + " is " + std::to_string(end) + ", but it must be above " +
         std::to_string(begin));
  if (end > batch.numTokens) {
    fail(at("queryStart", sequence + 1) + " is " + std::to_string(end) + ", but the batch has " +
         std::to_string(batch.numTokens) + " tokens");
  }
  const AttentionWindow window = config.window();
  const bool cycles = window.on() && batch.maxBlocks >= window.sinkBlocks + window.ringBlocks;
  const int64_t room =
      cycles ? config.maxSeqLen : std::min<int64_t>(config.maxSeqLen, batch.maxBlocks * config.tokensPerBlock);
  if (length < end - begin || length > room) {
    fail(at("contextLength", sequence) + " is " + std::to_string(length) + ", but it must be between " +
         std::to_string(end - begin) + " (this step's tokens) and " + std::to_string(room) +
         " (maxSeqLen and the block table)");
  }
  const int32_t* table = batch.blockTables.data + sequence * batch.maxBlocks;
  const int64_t used = config.tableEntries(length);
  for (int64_t i = 0; i < used; ++i) {
    if (table[i] < 0 || table[i] >= config.numBlocks) {
      fail(at("blockTables", sequence * batch.maxBlocks + i) + " is block " + std::to_string(table[i]) +
           ", but the pool has " + std::to_string(config.numBlocks) + " blocks");
    }
  }
  // K and V of a token must go where its sequence's attention will look for them.
  for (int64_t t = begin; t < end; ++t) {
    const int64_t position = length - (end - t);
    const int32_t block = static_cast<int32_t>(position / config.tokensPerBlock);
    const int32_t entry = window.on() ? window.entryOf(block) : block;
    const int64_t slot = int64_t(table[entry]) * config.tokensPerBlock + position % config.tokensPerBlock;
    if (batch.slots[t] != slot) {
      fail(at("slots", t) + " is " + std::to_string(batch.slots[t]) + ", but the block table of sequence " +
           std::to_string(sequence) + " puts its cache position " + std::to_string(position) + " at " +
           std::to_string(slot));
    }
  }
}

void checkRope(const BatchView& batch, const ExecutorConfig& config) {
  if (config.plan.rotaryDim == 0) return;
  const int64_t half = config.plan.rotaryDim / 2;
  const int64_t rows = std::min(batch.ropeFrequencies.length / half, batch.ropeScales.length);
  if (rows < 1) {
    fail("ropeFrequencies and ropeScales hold no whole row of " + std::to_string(half) + " frequencies and a scale");
  }
  checkEntries(batch.ropeRows, batch.numSequences, 0, rows, "ropeRows");
}

// The rows of a draft have places in the log of the sequence's slot.
void checkDraftOfStates(const BatchView& batch, const ExecutorConfig& config, int64_t sequence) {
  const StateRows states(batch, sequence);
  const int32_t drafts = batch.stateDrafts[sequence], logged = states.firstLogged() + states.rows - states.certain;
  if (!states.keeps && drafts != states.replayed + states.rows)
    fail(at("stateDrafts", sequence) + " is " + std::to_string(drafts) + ", but at most its " +
         std::to_string(states.rows) + " rows can be a draft, or these and all " + std::to_string(states.replayed) +
         " before them");
  if (states.begins && states.replayed > 0)
    fail(at("stateReplays", sequence) + " is " + std::to_string(states.replayed) +
         ", but the sequence begins in this batch");
  if (states.replayed + drafts == 0) return;
  const int32_t slot = batch.stateSlots[sequence];
  if (slot < 0 || slot >= config.numDraftSlots)
    fail(at("stateSlots", sequence) + " is " + std::to_string(slot) + ", but drafts need a slot in [0, " +
         std::to_string(config.numDraftSlots) + ")");
  if (logged > config.stateDraftRows)
    fail(at("stateDrafts", sequence) + " is " + std::to_string(drafts) + ", so " + std::to_string(logged) +
         " rows are to be logged, but a slot has " + std::to_string(config.stateDraftRows));
}

// No two sequences write to the same slot.
void checkStateSlots(const BatchView& batch, const ExecutorConfig& config) {
  if (config.plan.states.empty()) return;
  checkEntries(batch.stateSlots, batch.numSequences, -1, config.numStateSlots, "stateSlots");
  checkEntries(batch.stateReplays, batch.numSequences, 0, config.stateDraftRows + 1, "stateReplays");
  checkEntries(batch.stateDrafts, batch.numSequences, 0, INT32_MAX, "stateDrafts");
  for (int64_t sequence = 0; sequence < batch.numSequences; ++sequence) checkDraftOfStates(batch, config, sequence);
  std::vector<int32_t> slots(batch.stateSlots.data, batch.stateSlots.data + batch.numSequences);
  const int64_t most = std::min(batch.snapshotRows.length, batch.snapshotSlots.length);
  checkEntries(batch.snapshotStart, batch.numSequences + 1, 0, most + 1, "snapshotStart");
  for (int64_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    int64_t row = int64_t(batch.queryStart[sequence]) - 1;
    for (int64_t i = batch.snapshotStart[sequence]; i < batch.snapshotStart[sequence + 1]; ++i) {
      if (batch.snapshotRows[i] <= row || batch.snapshotRows[i] >= batch.queryStart[sequence + 1])
        fail(at("snapshotRows", i) + " is " + std::to_string(batch.snapshotRows[i]) +
             ", but it must be a row of sequence " + std::to_string(sequence) + " after that of its snapshot before");
      row = batch.snapshotRows[i];
      slots.push_back(batch.snapshotSlots[i]);
    }
  }
  const int64_t made = static_cast<int64_t>(slots.size()) - batch.numSequences;
  checkEntries({slots.data() + batch.numSequences, made}, made, 0, config.numStateSlots, "snapshotSlots");
  std::sort(slots.begin(), slots.end());
  for (size_t i = 1; i < slots.size(); ++i)
    if (slots[i] >= 0 && slots[i] == slots[i - 1])
      fail("slot " + std::to_string(slots[i]) + " for states is written to twice");
}

void checkFinite(const ArrayView<const float>& array, int64_t rows, float least, float most, const char* field) {
  checkLength(array, rows, field);
  for (int64_t i = 0; i < rows; ++i) {
    if (array[i] >= least && array[i] <= most) continue;
    fail(at(field, i) + " is " + std::to_string(array[i]) + ", but it must be between " + std::to_string(least) +
         " and " + std::to_string(most));
  }
}

// Checks lists of tokens: row r has the tokens [start[r], start[r + 1]) of a flat list.
void checkTokenLists(const ArrayView<const int32_t>& start, const ArrayView<const int32_t>& tokens, int64_t rows,
                     int32_t leastToken, int32_t vocabSize, const char* startField, const char* tokensField) {
  checkEntries(start, rows + 1, 0, tokens.length + 1, startField);
  for (int64_t row = 0; row < rows; ++row) {
    if (start[row + 1] < start[row]) fail(at(startField, row + 1) + " is below the entry before it");
    for (int64_t i = start[row]; i < start[row + 1]; ++i) {
      if (tokens[i] >= leastToken && tokens[i] < vocabSize) continue;
      fail(at(tokensField, i) + " is token " + std::to_string(tokens[i]) + ", but the vocabulary has " +
           std::to_string(vocabSize));
    }
  }
}

void checkListedRow(int64_t row, int64_t leastRow, int64_t rows, const std::string& field) {
  if (row >= leastRow && row < rows) return;
  fail(field + " has row " + std::to_string(row) + ", but one of the rows " + std::to_string(leastRow) + " to " +
       std::to_string(rows - 1) + " is expected there");
}

// Checks a bias except for its values, which are checked where they are added: one that makes a logit NaN fails its
// row.
void checkBias(const RowBiasView& bias, int64_t leastRow, int64_t rows, int32_t vocabSize, const std::string& field) {
  checkListedRow(bias.row, leastRow, rows, field);
  const int64_t count = bias.isDense ? vocabSize : bias.tokens.length;
  if (!bias.isDense) checkEntries(bias.tokens, count, 0, vocabSize, ("tokens of " + field).c_str());
  checkLength(bias.values, count, ("values of " + field).c_str());
}

// Checks the values of a chain; a value that is NaN fails each check.
void checkChain(const ChainView& chain, int64_t leastRow, int64_t rows) {
  checkListedRow(chain.row, leastRow, rows, "chains");
  checkLength(chain.values, kNumChainValues, "values of chains");
  const auto check = [&](int32_t place, double least, double most) {
    const double value = chain.values[place];
    if (value >= least && value <= most) return;
    fail(at("values of chains", place) + " is " + std::to_string(value) + ", but it must be between " +
         std::to_string(least) + " and " + std::to_string(most));
  };
  constexpr double kMost = 1e30;
  for (const int32_t share : {kChainTypicalP, kChainXtcProbability, kChainXtcThreshold, kChainTemperatureLast})
    check(share, 0, 1);
  for (const int32_t place : {kChainTopNSigma, kChainDynamicRange, kChainDynamicExponent}) check(place, 0, kMost);
  check(kChainMirostat, 0, 2);
  for (const int32_t place : {kChainMirostatTau, kChainMirostatEta, kChainMirostatMu}) check(place, -kMost, kMost);
}

// Checks that ids are inside the vocabulary, or after it among those that a prompt table has rows for.
void checkTokens(const BatchView& batch, const NetworkPlan& plan) {
  checkLength(batch.tokenIds, batch.numTokens, "tokenIds");
  const int64_t width = plan.promptRowWidth();
  int64_t checked = 0;
  const auto checkUpTo = [&](int64_t end, int64_t ids) {
    for (; checked < end; ++checked) {
      if (batch.tokenIds[checked] >= 0 && batch.tokenIds[checked] < ids) continue;
      fail(at("tokenIds", checked) + " is " + std::to_string(batch.tokenIds[checked]) + ", but it must be in [0, " +
           std::to_string(ids) + ")");
    }
  };
  for (const PromptTableRows& rows : batch.promptTables) {
    if (rows.count < 1 || rows.first < checked || rows.first + rows.count > batch.numTokens) {
      fail("promptTables has rows " + std::to_string(rows.first) + " to " + std::to_string(rows.first + rows.count) +
           ", but some of " + std::to_string(checked) + " to " + std::to_string(batch.numTokens) +
           " are expected there");
    }
    if (rows.table.length % width != 0) {
      fail("table of promptTables has " + std::to_string(rows.table.length) + " values, but rows of " +
           std::to_string(width) + " are expected");
    }
    checkUpTo(rows.first, plan.vocabSize);
    checkUpTo(rows.first + rows.count, plan.vocabSize + rows.table.length / width);
  }
  checkUpTo(batch.numTokens, plan.vocabSize);
}

// Checks that each table that is looked up by something other than tokens has a row for every entry.
void checkLookups(const BatchView& batch, const NetworkPlan& plan) {
  for (const PlanOp& op : plan.ops) {
    if (op.kind != OpKind::kAddEmbedding || op.lookup == LookupKind::kTokenIds) continue;
    const int32_t rows = plan.weights[static_cast<size_t>(op.weight)].rows;
    if (op.lookup == LookupKind::kPlaces) {
      checkEntries(batch.places, batch.numTokens * kPlacesOfToken, 0, rows, "places");
      checkLength(batch.placeShares, batch.numTokens * kPlacesOfToken, "placeShares");
      continue;
    }
    const bool byPosition = op.lookup == LookupKind::kPositions;
    checkEntries(byPosition ? batch.positions : batch.tokenTypes, batch.numTokens, 0, rows,
                 byPosition ? "positions" : "tokenTypes");
  }
}

// Checks that sequences come as a whole where they must, and that means are taken one per sequence.
void checkWholeSequences(const BatchView& batch, const NetworkPlan& plan) {
  const auto pools = [](const PlanOp& op) { return op.kind == OpKind::kMeanPool; };
  if (std::any_of(plan.ops.begin(), plan.ops.end(), pools) && batch.numLogitRows != batch.numSequences) {
    fail("numLogitRows is " + std::to_string(batch.numLogitRows) + ", but of each of the " +
         std::to_string(batch.numSequences) + " sequences one mean comes out");
  }
  for (int64_t sequence = 0; plan.wholeSequences && sequence < batch.numSequences; ++sequence) {
    const int64_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    if (batch.contextLength[sequence] == rows) continue;
    fail(at("contextLength", sequence) + " is " + std::to_string(batch.contextLength[sequence]) + ", but its " +
         std::to_string(rows) +
         " tokens must be the whole sequence, since they attend both ways or their layers share a cache");
  }
}

// Checks a draft row except for its logits, which were checked when the request came.
void checkDraftRow(const DraftRowView& draft, int64_t leastRow, int64_t rows, int32_t vocabSize) {
  checkListedRow(draft.row, leastRow, rows, "draftRows");
  if (draft.token < 0 || draft.token >= vocabSize) {
    fail("draftRows has token " + std::to_string(draft.token) + ", but the vocabulary has " +
         std::to_string(vocabSize));
  }
  checkLength(draft.logits, vocabSize, "logits of draftRows");
}

void checkReturnedRows(const ReturnedRows& rows, const BatchView& batch, int32_t vocabSize) {
  const int64_t available = rows.sampled ? batch.numLogitRows : batch.numTokens;
  if (rows.count < 1 || rows.first < 0 || rows.first + rows.count > available) {
    fail("returnedRows asks for rows " + std::to_string(rows.first) + " to " + std::to_string(rows.first + rows.count) +
         " of " + std::to_string(available) + (rows.sampled ? " rows of logits" : " tokens"));
  }
  if (rows.wantsLogits) checkLength(rows.logits, rows.count * vocabSize, "logits of returnedRows");
  if (!rows.wantsLogProbs) return;
  const RowLogProbsView& wanted = rows.logProbs;
  checkCount(wanted.numTop, 0, vocabSize, "numTop of returnedRows");
  checkEntries(wanted.tokens, rows.count, -1, vocabSize, "tokens of returnedRows");
  checkLength(wanted.logProbs, rows.count, "logProbs of returnedRows");
  checkLength(wanted.topTokens, rows.count * wanted.numTop, "topTokens of returnedRows");
  checkLength(wanted.topLogProbs, rows.count * wanted.numTop, "topLogProbs of returnedRows");
}

// Checks that the segments of each sequence lie one after the other, from its first token to its last. Sequences are whole.
void checkSegments(const BatchView& batch, const NetworkPlan& plan) {
  const auto hasSegments = [](const PlanOp& op) { return op.segments; };
  if (std::none_of(plan.ops.begin(), plan.ops.end(), hasSegments)) return;
  checkLength(batch.segments, 2 * batch.numTokens, "segments");
  for (int64_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    const int64_t first = batch.queryStart[sequence], length = batch.queryStart[sequence + 1] - first;
    int64_t begin = 0, end = 0;
    for (int64_t row = 0; row < length; ++row) {
      const int64_t at = 2 * (first + row), found = batch.segments[at], foundEnd = batch.segments[at + 1];
      if (row == end) {
        begin = row;
        end = foundEnd;
      }
      if (found == begin && foundEnd == end && end > row && end <= length) continue;
      fail("segments of row " + std::to_string(first + row) + " are " + std::to_string(found) + " to " +
           std::to_string(foundEnd) + ", but they must lie one after the other in a sequence of " + std::to_string(length));
    }
  }
}

// Checks that each picture lies within one sequence, after the picture before it.
void checkPictures(const BatchView& batch, const ExecutorConfig& config) {
  if (batch.pictures.length == 0) return;
  if (!config.plan.withinPictures) fail("pictures names rows, but no layer attends within pictures");
  if (config.window().on()) fail("pictures names rows, but an attention window does not keep pictures whole");
  if (batch.pictures.length % 2 != 0)
    fail("pictures has " + std::to_string(batch.pictures.length) + " numbers, but two of each picture are expected");
  int64_t sequence = 0, end = 0;
  for (int64_t i = 0; i < batch.pictures.length; i += 2) {
    const int64_t first = batch.pictures[i], count = batch.pictures[i + 1];
    while (sequence < batch.numSequences && batch.queryStart[sequence + 1] <= first) ++sequence;
    if (count >= 1 && first >= end && sequence < batch.numSequences && first + count <= batch.queryStart[sequence + 1]) {
      end = first + count;
      continue;
    }
    fail("pictures has rows " + std::to_string(first) + " to " + std::to_string(first + count) +
         ", but rows of one sequence from " + std::to_string(end) + " on are expected there");
  }
}

void checkRows(const BatchView& batch, const NetworkPlan& plan) {
  for (const PlanOp& op : plan.ops) {
    const auto floats = [&](int32_t value) { return batch.numTokens * plan.values[static_cast<size_t>(value)].width; };
    if (op.kind == OpKind::kRowInput) checkLength(batch.rowInputs, floats(op.output), "rowInputs");
    if (op.kind == OpKind::kKeepRows && batch.keptRows.length > 0)
      checkLength(batch.keptRows, floats(op.input), "keptRows");
    if (op.kind == OpKind::kSelectRows && op.rowsOfOutput > 1)
      checkEntries(batch.logitRows, batch.numLogitRows, 0, batch.numTokens - op.rowsOfOutput + 1, "logitRows");
  }
}

}  // namespace

void checkBatch(const BatchView& batch, const ExecutorConfig& config) {
  checkCounts(batch, config);
  checkTokens(batch, config.plan);
  checkEntries(batch.positions, batch.numTokens, 0, int64_t(1) << 30, "positions");
  if (batch.gridPositions.length > 0)
    checkEntries(batch.gridPositions, 2 * batch.numTokens, 0, int64_t(1) << 30, "gridPositions");
  checkEntries(batch.slots, batch.numTokens, 0, int64_t(config.numBlocks) * config.tokensPerBlock, "slots");
  checkEntries(batch.logitRows, batch.numLogitRows, 0, batch.numTokens, "logitRows");
  checkEntries(batch.newBlocks, batch.numNewBlocks, 0, config.numBlocks, "newBlocks");
  checkRope(batch, config);
  if (batch.queryStart[0] != 0) fail("queryStart[0] is " + std::to_string(batch.queryStart[0]) + ", but it must be 0");
  for (int64_t sequence = 0; sequence < batch.numSequences; ++sequence) checkSequence(batch, config, sequence);
  if (batch.queryStart[batch.numSequences] != batch.numTokens) {
    fail(at("queryStart", batch.numSequences) + " is " + std::to_string(batch.queryStart[batch.numSequences]) +
         ", but the batch has " + std::to_string(batch.numTokens) + " tokens");
  }
  checkPictures(batch, config);
  if (batch.adapterSlots.length > 0)
    checkEntries(batch.adapterSlots, batch.numSequences, -1, config.maxAdapters, "adapterSlots");
  checkStateSlots(batch, config);
  checkRows(batch, config.plan);
  checkLookups(batch, config.plan);
  checkWholeSequences(batch, config.plan);
  checkSegments(batch, config.plan);
  if (!batch.returnedRows.empty() && !config.plan.hasLogits())
    fail("returnedRows asks for logits, but this network has none over a vocabulary");
  for (const ReturnedRows& rows : batch.returnedRows) checkReturnedRows(rows, batch, config.plan.vocabSize);
}

void checkSampling(const SamplingView& sampling, const SamplingOutputView& output, int64_t logitRows,
                   int32_t vocabSize) {
  const int64_t rows = sampling.numRows;
  if (rows != logitRows) {
    fail("numRows is " + std::to_string(rows) + ", but the last forward made " + std::to_string(logitRows) +
         " rows of logits");
  }
  constexpr float kMost = 1e30f;
  checkFinite(sampling.temperature, rows, 0, kMost, "temperature");
  checkFinite(sampling.topP, rows, 0, 1, "topP");
  checkFinite(sampling.minP, rows, 0, 1, "minP");
  checkFinite(sampling.repetitionPenalty, rows, 1e-6f, kMost, "repetitionPenalty");
  checkFinite(sampling.presencePenalty, rows, -kMost, kMost, "presencePenalty");
  checkFinite(sampling.frequencyPenalty, rows, -kMost, kMost, "frequencyPenalty");
  checkEntries(sampling.topK, rows, 0, INT64_MAX, "topK");
  checkEntries(sampling.noRepeatNgramSize, rows, 0, INT64_MAX, "noRepeatNgramSize");
  int64_t leastRow = 0;
  for (const RowBiasView& bias : sampling.biases) {
    checkBias(bias, leastRow, rows, vocabSize, "biases");
    leastRow = bias.row + 1;
  }
  leastRow = 0;
  for (const RowBiasView& penalties : sampling.penalties) {
    checkBias(penalties, leastRow, rows, vocabSize, "penalties");
    leastRow = penalties.row + 1;
  }
  leastRow = 0;
  for (const ChainView& chain : sampling.chains) {
    checkChain(chain, leastRow, rows);
    leastRow = chain.row + 1;
  }
  leastRow = 0;
  for (const DraftRowView& draft : sampling.draftRows) {
    checkDraftRow(draft, leastRow, rows, vocabSize);
    leastRow = draft.row + 1;
  }
  checkEntries(sampling.numTopLogProbs, rows, -1, int64_t(vocabSize) + 1, "numTopLogProbs");
  checkLength(sampling.seed, rows, "seed");
  checkLength(sampling.sequenceIndex, rows, "sequenceIndex");
  checkLength(sampling.position, rows, "position");
  checkLength(sampling.historyPromptLength, rows, "historyPromptLength");
  checkTokenLists(sampling.bannedStart, sampling.banned, rows, 0, vocabSize, "bannedStart", "banned");
  checkTokenLists(sampling.historyStart, sampling.history, rows, -1, vocabSize, "historyStart", "history");
  if (sampling.listsCandidates.length > 0) {
    checkEntries(sampling.listsCandidates, rows, 0, 2, "listsCandidates");
    for (int64_t row = 0; row < rows; ++row) {
      if (sampling.listsCandidates[row] == 0 || sampling.numTopLogProbs[row] > 0) continue;
      fail(at("numTopLogProbs", row) + " is " + std::to_string(sampling.numTopLogProbs[row]) +
           ", but a row that lists candidates needs at least 1");
    }
  }
  if (sampling.maskOfRow.length > 0) {
    checkEntries(sampling.maskOfRow, rows, -1, sampling.maskWords.length / wordsOfMask(vocabSize), "maskOfRow");
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = int64_t(sampling.historyStart[row + 1]) - sampling.historyStart[row];
    if (sampling.historyPromptLength[row] < 0 || sampling.historyPromptLength[row] > length) {
      fail(at("historyPromptLength", row) + " is " + std::to_string(sampling.historyPromptLength[row]) +
           ", but the row's history has " + std::to_string(length) + " tokens");
    }
  }
  checkLength(output.tokens, rows, "tokens");
  checkLength(output.logProbs, rows, "logProbs");
  checkLength(output.status, rows, "status");
  int64_t numTop = 0;
  for (int64_t row = 0; row < rows; ++row) numTop += std::max(0, sampling.numTopLogProbs[row]);
  checkLength(output.topStart, rows + 1, "topStart");
  checkLength(output.topTokens, numTop, "topTokens");
  checkLength(output.topLogProbs, numTop, "topLogProbs");
}

void checkBlocks(const ArrayView<const int32_t>& blocks, int32_t numBlocks, const char* field) {
  checkEntries(blocks, blocks.length, 0, numBlocks, field);
}

void checkBlockBytes(const ArrayView<const int32_t>& blocks, int64_t length, size_t bytesPerBlock, const char* field,
                     const char* what) {
  const int64_t expected = blocks.length * static_cast<int64_t>(bytesPerBlock);
  if (length == expected) return;
  fail(std::string(field) + " has " + std::to_string(length) + " bytes; " + std::to_string(blocks.length) + " " + what +
       " of " + std::to_string(bytesPerBlock) + " bytes are expected");
}

void checkCopy(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target, int32_t count,
               const std::string& what) {
  if (source.length != target.length) {
    fail("source has " + std::to_string(source.length) + " " + what + " and target " + std::to_string(target.length));
  }
  checkEntries(source, source.length, 0, count, "source");
  checkEntries(target, target.length, 0, count, "target");
}

}  // namespace skein

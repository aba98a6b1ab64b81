// Views of one iteration's data from JavaScript: engine/packed-call/packed-batch.ts and engine/packed-call/sampling-batch.ts.
// Checked before anything is touched.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/plan.h"

namespace skein {

template <typename T>
struct ArrayView {
  T* data = nullptr;
  int64_t length = 0;
  T& operator[](int64_t i) const { return data[i]; }
};

// Log-probs of rows of logits, as engine/packed-call/packed-batch.ts has them.
struct RowLogProbsView {
  int64_t numTop = 0;
  ArrayView<const int32_t> tokens;
  ArrayView<float> logProbs;
  ArrayView<int32_t> topTokens;
  ArrayView<float> topLogProbs;
};

// Consecutive rows whose logits leave the executor.
struct ReturnedRows {
  bool sampled = false;  // first counts rows of logitRows, else rows of tokens
  int64_t first = 0, count = 0;
  bool wantsLogits = false, wantsLogProbs = false;
  ArrayView<float> logits;
  RowLogProbsView logProbs;
};

// Consecutive rows of tokens of one request; its ids from the vocabulary's size on name rows of its own table.
struct PromptTableRows {
  int64_t first = 0, count = 0;
  ArrayView<const float> table;  // [ids x NetworkPlan::promptRowWidth]
};

struct BatchView {
  int64_t numTokens, numSequences, numLogitRows, numNewBlocks, maxBlocks;
  ArrayView<const int32_t> tokenIds, positions, slots, queryStart, contextLength, blockTables, logitRows, newBlocks;
  ArrayView<const int32_t> ropeRows;
  // [numTokens x 2], positions in height and width, where `positions` has those in time; empty: they are the same.
  ArrayView<const int32_t> gridPositions;
  // Rows that are pictures, where tokens attend to all of their picture: first row and number of rows of each, ascending; empty: there are
  // none.
  ArrayView<const int32_t> pictures;
  ArrayView<const float> ropeFrequencies, ropeScales;
  std::vector<ReturnedRows> returnedRows;
  std::vector<PromptTableRows> promptTables;  // rows ascending
  ArrayView<const int32_t> tokenTypes;        // only for networks that look them up
  ArrayView<const int32_t> adapterSlots;      // by sequence, -1: none; empty: no sequence has an adapter
  // By sequence, only for plans with states. -1: its states are not kept. See state_log.h.
  ArrayView<const int32_t> stateSlots, stateReplays, stateDrafts;
  // Of sequence s the snapshots [snapshotStart[s], snapshotStart[s + 1]): rows after which its states are copied to a
  // slot.
  ArrayView<const int32_t> snapshotStart, snapshotRows, snapshotSlots;
  // Rows of tables that kPlaces adds for each token, and the share of each: [numTokens x kPlacesOfToken].
  ArrayView<const int32_t> places;
  ArrayView<const float> placeShares;
  // [numTokens x 2], first position and end of each token's segment of its sequence, only for plans whose attention has segments.
  ArrayView<const int32_t> segments;
  // [numTokens x width] that the op rowInput reads, and that keepRows writes; empty: nothing is kept.
  ArrayView<const float> rowInputs;
  ArrayView<float> keptRows;
};

// Values that are added to the logits of a row: of `tokens`, or of the whole vocabulary.
struct RowBiasView {
  int64_t row;
  bool isDense;
  ArrayView<const int32_t> tokens;
  ArrayView<const float> values;
};

// A row that draws against a token of a draft: see draft_rejection.h.
struct DraftRowView {
  int64_t row;
  int32_t token;
  ArrayView<const float> logits;  // [vocabSize], logits that the token was drawn from
};

// A row with filters of its own: sampler_chain.h.
struct ChainView {
  int64_t row;
  ArrayView<double> values;
};

struct SamplingView {
  int64_t numRows;
  ArrayView<const float> temperature;
  ArrayView<const int32_t> topK;
  ArrayView<const float> topP, minP, repetitionPenalty, presencePenalty, frequencyPenalty;
  ArrayView<const uint64_t> seed;
  ArrayView<const int32_t> sequenceIndex, position, noRepeatNgramSize, numTopLogProbs;
  std::vector<RowBiasView> biases;      // rows ascending
  std::vector<RowBiasView> penalties;   // rows ascending
  std::vector<DraftRowView> draftRows;  // rows ascending
  std::vector<ChainView> chains;        // rows ascending
  ArrayView<const int32_t> bannedStart, banned;
  ArrayView<const int32_t> historyStart, history, historyPromptLength;
  // Both are empty without masks.
  ArrayView<const int32_t> maskOfRow, maskWords;
  ArrayView<const int32_t> listsCandidates;  // empty: no row lists candidates
};

// The entry of a row in a list with ascending rows; null: there is none.
template <typename View>
const View* entryOf(const std::vector<View>& list, int64_t row) {
  const auto entry =
      std::lower_bound(list.begin(), list.end(), row, [](const View& one, int64_t wanted) { return one.row < wanted; });
  return entry != list.end() && entry->row == row ? &*entry : nullptr;
}

// Words in a mask of one bit per token.
inline int64_t wordsOfMask(int32_t vocabSize) { return (int64_t(vocabSize) + 31) / 32; }

struct SamplingOutputView {
  ArrayView<int32_t> tokens;
  ArrayView<float> logProbs;
  ArrayView<int32_t> topStart;  // filled before the rows are sampled
  ArrayView<int32_t> topTokens;
  ArrayView<float> topLogProbs;
  ArrayView<int32_t> status;
};

constexpr int32_t kRowOk = 0;
constexpr int32_t kRowNotFinite = 1;
constexpr int32_t kRowNoTokenLeft = 2;

// Each check throws std::runtime_error with one sentence that names the field.
void checkBatch(const BatchView& batch, const ExecutorConfig& config);
void checkSampling(const SamplingView& sampling, const SamplingOutputView& output, int64_t logitRows,
                   int32_t vocabSize);
void checkBlocks(const ArrayView<const int32_t>& blocks, int32_t numBlocks, const char* field = "blocks");
// The memory for these blocks, or slots of states, outside of the executor is as long as they are.
void checkBlockBytes(const ArrayView<const int32_t>& blocks, int64_t length, size_t bytesPerBlock, const char* field,
                     const char* what = "blocks");
void checkCopy(const ArrayView<const int32_t>& source, const ArrayView<const int32_t>& target, int32_t count,
               const std::string& what);

}  // namespace skein

#include "executor/logit_changes.h"

#include <algorithm>
#include <cmath>

namespace skein {

LogitChanges::LogitChanges(int32_t vocabSize)
    : vocabSize_(vocabSize),
      counts_(static_cast<size_t>(vocabSize)),
      seen_(static_cast<size_t>(vocabSize)),
      copy_(static_cast<size_t>(vocabSize)) {
  changed_.reserve(static_cast<size_t>(vocabSize) * 2);
}

float* LogitChanges::apply(const SamplingView& sampling, int64_t row, float* logits) {
  row_ = logits;
  replacedFinite_ = true;
  const bool isMasked = sampling.maskOfRow.length > 0 && sampling.maskOfRow[row] >= 0;
  if (isMasked) row_ = mask(sampling.maskWords.data + sampling.maskOfRow[row] * wordsOfMask(vocabSize_), logits);
  const RowBiasView* bias = entryOf(sampling.biases, row);
  if (bias != nullptr) row_ = addBias(*bias, row_);
  penalise(sampling, row, row_);
  if (const RowBiasView* penalties = entryOf(sampling.penalties, row)) row_ = addBias(*penalties, row_);
  const int32_t historyBegin = sampling.historyStart[row], historyEnd = sampling.historyStart[row + 1];
  const int32_t ngram = sampling.noRepeatNgramSize[row];
  if (ngram > 0) banRepeatedNgrams(sampling.history.data + historyBegin, historyEnd - historyBegin, ngram, row_);
  const int32_t bannedBegin = sampling.bannedStart[row], bannedEnd = sampling.bannedStart[row + 1];
  for (int32_t i = bannedBegin; i < bannedEnd; ++i) ban(sampling.banned[i], row_);
  bans_ = isMasked || bias != nullptr || ngram > 0 || bannedEnd > bannedBegin;
  return row_;
}

// Undoes the changes in reverse, so that a token changed twice gets its first value back.
void LogitChanges::undo() {
  for (auto entry = changed_.rbegin(); entry != changed_.rend(); ++entry) row_[entry->token] = entry->logit;
  changed_.clear();
}

float* LogitChanges::mask(const int32_t* words, const float* logits) {
  std::copy_n(logits, vocabSize_, copy_.data());
  for (int32_t begin = 0; begin < vocabSize_; begin += 32, ++words) {
    const uint32_t forbidden = ~static_cast<uint32_t>(*words);
    if (forbidden == 0) continue;
    const int32_t end = std::min(begin + 32, vocabSize_);
    for (int32_t token = begin; token < end; ++token) {
      if ((forbidden >> (token - begin) & 1) == 0) continue;
      replacedFinite_ = replacedFinite_ && logits[token] < INFINITY;
      copy_[static_cast<size_t>(token)] = -INFINITY;
    }
  }
  return copy_.data();
}

float* LogitChanges::addBias(const RowBiasView& bias, float* logits) {
  if (bias.isDense) {
    const float* values = bias.values.data;
    for (int32_t i = 0; i < vocabSize_; ++i) copy_[static_cast<size_t>(i)] = logits[i] + values[i];
    return copy_.data();
  }
  for (int64_t i = 0; i < bias.tokens.length; ++i) {
    const int32_t token = bias.tokens[i];
    note(token, logits[token]);
    logits[token] += bias.values[i];
  }
  return logits;
}

void LogitChanges::penalise(const SamplingView& sampling, int64_t row, float* logits) {
  const float repetition = sampling.repetitionPenalty[row];
  const float presence = sampling.presencePenalty[row], frequency = sampling.frequencyPenalty[row];
  if (repetition == 1 && presence == 0 && frequency == 0) return;
  const int32_t begin = sampling.historyStart[row], end = sampling.historyStart[row + 1];
  const int32_t generatedBegin = begin + sampling.historyPromptLength[row];
  const size_t first = changed_.size();
  for (int32_t i = begin; i < end; ++i) {
    const int32_t token = sampling.history[i];
    if (token < 0) continue;
    counts_[static_cast<size_t>(token)] += i >= generatedBegin;
    if (seen_[static_cast<size_t>(token)]) continue;
    seen_[static_cast<size_t>(token)] = 1;
    note(token, logits[token]);
  }
  for (size_t i = first; i < changed_.size(); ++i) {
    const auto [token, logit] = changed_[i];
    const float repeated = logit < 0 ? logit * repetition : logit / repetition;
    const int32_t count = counts_[static_cast<size_t>(token)];
    logits[token] = repeated - (frequency * static_cast<float>(count) + (count > 0 ? presence : 0.0f));
    counts_[static_cast<size_t>(token)] = 0;
    seen_[static_cast<size_t>(token)] = 0;
  }
}

// Bans each token that once followed the last size - 1 tokens.
//
//   size 3    a b c a b x a b      the last two, a b, were followed by c and by x
//
// Each token of the history is read about once, however much of it repeats (Knuth, Morris and Pratt). When the first i of
// the last tokens are matched and the next token differs, the first fallback_[i] of them still match.
void LogitChanges::banRepeatedNgrams(const int32_t* history, int64_t length, int64_t size, float* logits) {
  const int32_t* last = history + length - (size - 1);
  if (length < size || std::find(last, history + length, -1) != history + length) return;
  const int64_t wanted = size - 1;
  fallback_.assign(static_cast<size_t>(wanted) + 1, 0);
  for (int64_t i = 1, matched = 0; i < wanted; ++i) {
    while (matched > 0 && last[i] != last[matched]) matched = fallback_[static_cast<size_t>(matched)];
    matched += last[i] == last[matched];
    fallback_[static_cast<size_t>(i) + 1] = matched;
  }
  int64_t matched = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (matched == wanted) {
      if (history[i] >= 0) ban(history[i], logits);
      matched = fallback_[static_cast<size_t>(matched)];
    }
    while (matched > 0 && history[i] != last[matched]) matched = fallback_[static_cast<size_t>(matched)];
    matched += wanted > 0 && history[i] == last[matched];
  }
}

void LogitChanges::ban(int32_t token, float* logits) {
  const float logit = logits[token];
  if (logit == -INFINITY) return;
  replacedFinite_ = replacedFinite_ && logit < INFINITY;
  note(token, logit);
  logits[token] = -INFINITY;
}

}  // namespace skein

#include "executor/shared_prefixes.h"

#include <algorithm>

namespace skein {

SharedPrefixes::SharedPrefixes(const Limits& limits) : limits_(limits) {
  const size_t sequences = static_cast<size_t>(limits.maxNumSequences);
  candidates_.reserve(sequences);
  order_.reserve(sequences);
  groups_.reserve(sequences / 2);
  grouped_.resize(sequences);
}

void SharedPrefixes::addCandidates(const BatchView& batch) {
  candidates_.clear();
  int64_t picture = 0;
  for (int32_t sequence = 0; sequence < batch.numSequences; ++sequence) {
    const int32_t rows = batch.queryStart[sequence + 1] - batch.queryStart[sequence];
    const int32_t length = batch.contextLength[sequence];
    const int32_t blocks = (length - rows) / limits_.tokensPerBlock;
    const int64_t pictures = picture;
    while (picture < batch.pictures.length && batch.pictures[picture] < batch.queryStart[sequence + 1]) picture += 2;
    if (picture > pictures) continue;
    if (rows > kMostRowsOfOne || blocks * limits_.tokensPerBlock < kFewestTokens) continue;
    candidates_.push_back({.table = batch.blockTables.data + sequence * batch.maxBlocks,
                           .blocks = blocks,
                           .sequence = sequence,
                           .rows = rows,
                           .splits = (length + kSplitTokens - 1) / kSplitTokens});
  }
  // Tables in lexicographic order: those with the longest common beginnings are neighbours.
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    const auto [inA, inB] = std::mismatch(a.table, a.table + std::min(a.blocks, b.blocks), b.table);
    if (inA != a.table + std::min(a.blocks, b.blocks)) return *inA < *inB;
    return a.blocks != b.blocks ? a.blocks < b.blocks : a.sequence < b.sequence;
  });
}

void SharedPrefixes::closeGroup(size_t begin, size_t end, int32_t tokens) {
  if (end - begin < 2) return;
  const int32_t first = static_cast<int32_t>(order_.size());
  for (size_t i = begin; i < end; ++i) {
    order_.push_back(candidates_[i].sequence);
    grouped_[static_cast<size_t>(candidates_[i].sequence)] = 1;
  }
  groups_.push_back({first, static_cast<int32_t>(order_.size()), tokens});
}

// Walks the tables in order. The next one joins the group if the group then saves at least as many tokens from being read
// again: (members - 1) x tokens.
void SharedPrefixes::find(const BatchView& batch) {
  groups_.clear();
  order_.clear();
  std::fill(grouped_.begin(), grouped_.end(), uint8_t{0});
  addCandidates(batch);
  size_t begin = 0;
  int32_t tokens = 0, rows = 0, splits = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& next = candidates_[i];
    int32_t together = 0;
    if (i > begin) {
      const Candidate& last = candidates_[i - 1];
      const int32_t blocks = std::min(last.blocks, next.blocks);
      const int32_t* differs = std::mismatch(last.table, last.table + blocks, next.table).first;
      const int32_t alike = static_cast<int32_t>(differs - last.table) * limits_.tokensPerBlock;
      together = (i - begin == 1 ? alike : std::min(alike, tokens)) / kStepTokens * kStepTokens;
    }
    const int64_t members = static_cast<int64_t>(i - begin);
    const int32_t allSplits = std::max(splits, next.splits);
    const bool joins = together >= kFewestTokens && members * together >= (members - 1) * tokens &&
                       rows + next.rows <= limits_.rows &&
                       int64_t(rows + next.rows) * (allSplits + limits_.addedSplits) <= limits_.splitRows;
    if (joins) {
      tokens = together;
      rows += next.rows;
      splits = allSplits;
      continue;
    }
    closeGroup(begin, i, tokens);
    begin = i;
    tokens = 0;
    rows = next.rows;
    splits = next.splits;
  }
  closeGroup(begin, candidates_.size(), tokens);
}

}  // namespace skein

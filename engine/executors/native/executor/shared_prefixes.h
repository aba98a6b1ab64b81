// Which sequences of an iteration attend to the same cached blocks, so that attention reads these once for all of them.
//
//   sequence 0   [ 7 ][ 2 ][ 9 ][ 4 ]
//   sequence 1   [ 7 ][ 2 ][ 9 ][ 1 ][ 5 ]     0, 1 and 3 share three blocks: one group
//   sequence 2   [ 3 ][ 8 ]
//   sequence 3   [ 7 ][ 2 ][ 9 ][ 6 ]
//
// A block counts if it lies at the same place of both tables and all its tokens were cached before this iteration, so that
// every row of both sequences attends to all of it. Only sequences with few rows take part: many rows of one sequence read
// its blocks together already. None of these rows may be of a picture.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"

namespace skein {

struct PrefixGroup {
  // Its members are order()[begin .. end), at least two.
  int32_t begin, end;
  int32_t tokens;  // that all of them share, whole steps of attention (kStepTokens)
};

class SharedPrefixes {
 public:
  // Tokens below which reading them together brings nothing.
  static constexpr int32_t kFewestTokens = 64;
  // Rows of a sequence above which it does not take part.
  static constexpr int32_t kMostRowsOfOne = 4;

  struct Limits {
    int32_t tokensPerBlock;
    int32_t maxNumSequences;
    int32_t rows;  // of a group, at most
    // Splits of the cache times rows of a group, at most: room for partial results.
    int64_t splitRows;
    int32_t addedSplits = 0;  // that a merge adds to those of each row
  };

  explicit SharedPrefixes(const Limits& limits);
  void find(const BatchView& batch);

  const std::vector<PrefixGroup>& groups() const { return groups_; }
  const std::vector<int32_t>& order() const { return order_; }
  bool isGrouped(int32_t sequence) const { return grouped_[static_cast<size_t>(sequence)] != 0; }

 private:
  // A sequence in the order of the tables.
  struct Candidate {
    const int32_t* table;
    int32_t blocks;  // that were full before this iteration
    int32_t sequence, rows, splits;
  };

  void addCandidates(const BatchView& batch);
  void closeGroup(size_t begin, size_t end, int32_t tokens);

  const Limits limits_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> order_;
  std::vector<PrefixGroup> groups_;
  std::vector<uint8_t> grouped_;  // by sequence
};

}  // namespace skein

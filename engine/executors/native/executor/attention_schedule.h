// The tasks into which one iteration's attention is cut. Made once per iteration, used by every layer with the same heads.
//
// If tokens attend both ways, every unit meets all splits of its sequence. Rows of a picture are units of their own, which meet the splits up
// to the picture's last row; a layer that does not attend within pictures leaves out what each row does not see.
//
//   unit   = one KV head x up to kMostRows query rows of one sequence, or kRowBlock of several that share cached blocks
//   split  = kSplitTokens of cache positions; a unit's rows meet the splits 0 .. last position / kSplitTokens
//
// With a window the rows meet the splits of the sinks, and then those from the first row's window on:
//
//   splits of the cache   0 | 1 | 2 | 3 | 4      sinks in split 0, the window of the first row begins in split 3
//   splits of the unit    0           1   2      sinkSplits 1, firstSplit 3
//
// Rows of several sequences (shared_prefixes.h) meet the shared positions together, and then each sequence the rest of its own:
//
//   splits of the unit          0     |     1    |    2
//   shared, sharedTokens 640    ======|==        |            all rows in one pass
//   rows of the first sequence          ---------|--          each goes on from where the pass has ended
//   rows of the second                  -----    |
//
// Most units are one task: all of their splits, then the merge, in the thread's own scratch. A unit that is a large
// share of the whole work (one long sequence on many threads) is cut into one task per split, whose partial results
// lie in shared memory and are merged in a second round. Small units are grouped. None of this changes a bit:
// a split's partial result depends only on its own positions, and merges go in ascending position.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/shared_prefixes.h"

namespace skein {

struct AttentionMember {
  int32_t sequence;
  int32_t rowBegin, rowEnd;  // of the sequence's query rows
  int32_t pictureEnd = 0;    // cache position after the picture of these rows; 0: they belong to none
};

struct AttentionUnit {
  int32_t kvHead;
  int32_t memberBegin, memberEnd;  // of members()
  int32_t rows;                    // of all members
  int32_t sharedTokens;            // cache positions that all members share, from 0 on; 0 if there is one member
  int32_t tokens;                  // cache positions that the longest member's rows attend to
  int32_t splits;                  // splits of the cache that the rows touch
  int32_t sinkSplits;              // the first of these splits, before firstSplit; 0 without a window
  int32_t firstSplit;
  int32_t sharedArea;  // index of the unit's area of shared partial results, -1: whole unit in one task

  // The split of the cache that is split `index` of the unit.
  int32_t splitAt(int32_t index) const { return index < sinkSplits ? index : firstSplit + index - sinkSplits; }
  // Number of the unit's splits up to the one of this cache position, which must be a row's.
  int32_t splitsUpTo(int32_t position) const { return sinkSplits + position / kSplitTokens - firstSplit + 1; }
};

// A unit, or one split of it.
struct AttentionItem {
  int32_t unit;
  int32_t split;  // split of the unit; -1: all
};

class AttentionSchedule {
 public:
  // Query rows of a unit: of several sequences at most kRowBlock; of one, as many as have kUnitPairs (row, head) pairs, but no fewer than
  // kRowBlock. What a unit reads of the cache is brought into the form of the kernels once for all of them.
  static constexpr int32_t kRowBlock = 16, kMostRows = 64, kUnitPairs = 64;

  // For the layers that have these heads. Takes all the memory that prepare() will ever need. Keeps a reference to config.
  AttentionSchedule(const ExecutorConfig& config, const LayerHeads& heads);
  void prepare(const BatchView& batch);

  const std::vector<AttentionMember>& members() const { return members_; }
  const std::vector<AttentionUnit>& units() const { return units_; }
  const std::vector<AttentionItem>& items() const { return items_; }
  // Number of groups. Group g holds the items groupBegin(g) .. groupBegin(g + 1).
  int32_t groups() const { return static_cast<int32_t>(groupStart_.size()) - 1; }
  int32_t groupBegin(int32_t group) const { return groupStart_[static_cast<size_t>(group)]; }
  // Units whose splits are computed as separate tasks and need merging.
  const std::vector<int32_t>& sharedUnits() const { return sharedUnits_; }

  const LayerHeads& heads() const { return heads_; }
  // Most floats of the partial results of one unit.
  size_t partialFloats() const { return partialFloats_; }
  int32_t sharedAreas() const { return sharedAreas_; }
  // Most (row, head) pairs of a unit.
  int32_t mostPairs() const { return std::max(rowBlock_, kRowBlock) * heads_.headsPerKvHead(); }

 private:
  int32_t rowsOfUnits(const BatchView& batch) const;
  void addGroups(const BatchView& batch);
  void addUnits(const BatchView& batch);
  void addMembers(const BatchView& batch, int32_t sequence);
  // tokens: length of the sequence, the tokens of this step included; first: cache position of its first row.
  void addUnit(int32_t member, int32_t kvHead, int32_t tokens, int32_t first);
  void addItems();

  const ExecutorConfig& config_;
  LayerHeads heads_;
  AttentionWindow window_;
  int32_t rowBlock_;   // most rows of a unit of one sequence
  int32_t unitRows_;   // in this iteration
  int32_t sharedAreas_;
  size_t partialFloats_;
  SharedPrefixes prefixes_;
  std::vector<AttentionMember> members_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionItem> items_;
  std::vector<int32_t> groupStart_;
  std::vector<int32_t> sharedUnits_;
  int64_t nextPicture_ = 0;  // of the batch's pictures, while members are added
};

// The schedules of a network: one for all layers with the same heads.
class AttentionSchedules {
 public:
  explicit AttentionSchedules(const ExecutorConfig& config);
  void prepare(const BatchView& batch);
  const AttentionSchedule& of(int32_t layer) const { return schedules_[ofLayer_[static_cast<size_t>(layer)]]; }
  const std::vector<AttentionSchedule>& all() const { return schedules_; }

 private:
  std::vector<AttentionSchedule> schedules_;
  std::vector<size_t> ofLayer_;
};

}  // namespace skein

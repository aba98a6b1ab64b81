// Memory that the ranks of a group share on one machine, and the waits on it.
//
//   file   [ header | states of the ranks | signals | call, kCallBytes | outboxes of the ranks ]
//
// A rank writes its columns of a value into its outbox and publishes them; the others copy them from there. An outbox has two slots a
// channel, used in turn, so that a rank writes the next publication while others still read the one before:
//
//   rank 0   write 1 | publish | write 2 | publish | await taken 1 | write 3 ...        slot = number % 2
//   rank 1             await 1 | copy | taken 1    | await 2 | copy | taken 2
//
// The readers of a writer's channel are always the same, so both sides count its publications by themselves. Every wait ends: with
// the signal, with an abort of the group, or with the limit.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/memory.h"

namespace skein {

// Channels of a rank's outbox: within its stage, to the next stage, and to rank 0.
constexpr int32_t kChannels = 3;
constexpr int32_t kMostRanks = 64;
constexpr size_t kSlotBytes = size_t(1) << 20;
constexpr size_t kCallBytes = size_t(4) << 20;

class GroupMemory {
 public:
  // A word that others wait for, in a cache line of its own.
  struct alignas(64) Signal {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> waiting;
    // Of a publication: the bytes in each of the two slots.
    uint32_t bytes[2];
  };

  // Makes the file, which must not exist, and reserves its memory. Throws a sentence.
  static void create(const std::string& path, int32_t size);

  // limitMs: most milliseconds of one wait for another rank.
  GroupMemory(const std::string& path, int32_t rank, int32_t size, int64_t limitMs);

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  int64_t limitMs() const { return limitMs_; }
  uint8_t* call() const { return mapping_.data() + callOffset_; }

  // Rank 0: begins a call, whose bytes lie in call().
  void ring();
  // Rank 0: waits until all ranks have answered the call. Throws a sentence with the first error. Returns the sum of the results.
  uint32_t awaitAnswers(int64_t limitMs);
  // The others: waits for the call after `last`; returns its number, or `last` after timeoutMs. Throws if the group is
  // lost.
  uint32_t awaitCall(uint32_t last, int64_t timeoutMs);
  // The last call that all others have answered.
  uint32_t answeredByAll() const;
  // Answers a call. error: empty where it went well.
  void answer(uint32_t call, uint32_t result, const std::string& error);

  // Ends all waits, of all ranks, now and later. The first reason stays.
  void abort(const std::string& reason);
  // Reason of the abort; empty: there was none.
  std::string abortReason() const;

  // What a wait does besides, now and then. True: it may have something to do soon, so the wait looks often.
  using Beside = std::function<bool()>;
  // Place for the next publication of this rank: waits until the readers have taken what was there.
  float* beginPublication(int32_t channel, const std::vector<int32_t>& readers, const Beside& beside = {});
  void publish(int32_t channel, size_t bytes);
  // The next publication of another rank: waits for it.
  const float* awaitPublication(int32_t writer, int32_t channel, const Beside& beside = {});
  // True if awaitPublication would not wait.
  bool hasPublication(int32_t writer, int32_t channel) const;
  void take(int32_t writer, int32_t channel);

  // For a relay, which plays the part of ranks on other machines: it reads what this rank does, and does what they do.
  struct Answer {
    uint32_t call, result;
    std::string error;
  };
  uint32_t callNumber() const;
  uint32_t published(int32_t writer, int32_t channel) const { return publishedBy(writer, channel).value.load(); }
  uint32_t taken(int32_t reader, int32_t writer, int32_t channel) const {
    return takenBy(reader, writer, channel).value.load();
  }
  uint32_t bytesOf(int32_t writer, int32_t channel, uint32_t number) const;
  uint8_t* slot(int32_t writer, int32_t channel, uint32_t number) const;
  Answer answerOf(int32_t rank) const;
  void relayCall(uint32_t number);
  void relayPublication(int32_t writer, int32_t channel, uint32_t number, uint32_t bytes);
  void relayTaken(int32_t reader, int32_t writer, int32_t channel, uint32_t number);
  void relayAnswer(int32_t rank, const Answer& answer);
  // Waits until something that this rank does has changed since `seen`; returns the state then, or `seen` after timeoutMs.
  uint32_t awaitActivity(uint32_t seen, int64_t timeoutMs);

 private:
  struct Header;
  struct State;

  Header& header() const;
  State& state(int32_t rank) const;
  // Waits until reached(value). `what` says what for, as the end of a sentence.
  template <typename Reached>
  bool await(Signal& signal, int64_t limitMs, const Reached& reached, const Beside& beside = {}) const;
  void awaitRank(Signal& signal, int32_t rank, uint32_t number, const char* what, int64_t limitMs,
                 const Beside& beside = {}) const;
  void throwIfAborted() const;
  static void set(Signal& signal, uint32_t value);
  // The same for what this rank does, which a relay may watch.
  void tell(Signal& signal, uint32_t value);
  Signal& publishedBy(int32_t writer, int32_t channel) const;
  Signal& takenBy(int32_t reader, int32_t writer, int32_t channel) const;

  Mapping mapping_;
  int32_t rank_, size_;
  int64_t limitMs_;
  size_t signalsOffset_ = 0, callOffset_ = 0, outboxOffset_ = 0;
  uint32_t call_ = 0;
  std::vector<uint32_t> counts_;  // publications of [writer][channel] that this rank has made or awaited
};

}  // namespace skein

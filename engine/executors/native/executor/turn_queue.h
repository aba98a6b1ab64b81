// Decides who computes next, among the executors of a process. Plain state: no clock, no threads (ComputeTurns has these).
//
// Time is shared fairly: each account (the executors of one engine) has a virtual time, which is the seconds it has
// computed, times its threads, divided by its weight. The waiting account with the least virtual time is next. A turn must
// be interrupted if a waiting account is further behind than kMarginSeconds. So an engine with little to do comes in after
// one op of another's long step, and two that are always busy share in slices of about the margin. An account that comes
// back from idling keeps at most kCreditSeconds of its unused time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace skein {

class TurnQueue {
 public:
  static constexpr double kMarginSeconds = 0.010;
  static constexpr double kCreditSeconds = 0.100;

  // Time used by all executors of one engine together.
  struct Account {
    double weight = 1;
    double virtualSeconds = 0;
    double heldSeconds = 0;    // seconds computed
    double waitedSeconds = 0;  // seconds spent waiting for a turn
    uint64_t partings = 0;     // turns interrupted for another account
  };

  // An executor in the queue.
  struct Entry {
    int32_t threads = 1;  // number that it computes with
    std::shared_ptr<Account> account = std::make_shared<Account>();
    bool waits = false;
    bool holds = false;
  };

  explicit TurnQueue(int32_t processors) : processors_(processors) {}
  // Sets the number of processors that simultaneous turns may take together. One turn is always given, however many
  // threads it has.
  void provide(int32_t processors) { processors_ = processors; }

  // Begins a turn, or waits for one: entry.holds or entry.waits.
  void ask(Entry& entry);
  // Makes entry wait even if a turn is free: for an entry that has just given one up.
  void wait(Entry& entry);
  // Takes entry out of the queue.
  void leave(Entry& entry);
  // Counts `seconds` more seconds of computing for entry, which holds a turn.
  static void charge(Entry& entry, double seconds);
  bool mustPart(const Entry& entry) const;
  // Ends the turn of entry.
  void giveUp(Entry& entry);
  // Begins a turn of the entry that is next; null if none waits or there is no room. No entry is passed by one that is less
  // behind and would fit, or it would wait for ever.
  Entry* call();

  bool anyWaits() const { return !waiting_.empty(); }
  // Number of turns begun so far.
  uint64_t turns() const { return turns_; }

 private:
  bool fits(const Entry& entry) const { return inUse_ == 0 || inUse_ + entry.threads <= processors_; }
  Entry* next() const;
  void begin(Entry& entry);

  int32_t processors_;
  int32_t inUse_ = 0;  // threads of all entries that hold a turn
  uint64_t turns_ = 0;
  double virtualSeconds_ = 0;    // of the latest turn's account when it began
  std::vector<Entry*> waiting_;  // in order of arrival
};

}  // namespace skein

// Who computes next, among the executors of a process. Plain state: no clock, no threads (ComputeTurns has these).
//
// Fair by time: each account (the executors of one engine) has a virtual time, the seconds that it has computed, times its
// threads, divided by its weight. Who waits with the least is next. A turn is to be parted where one waits that is further
// behind than kMarginSeconds; so an engine with little to do comes in after one op of another's long step, and two that are
// always busy share in slices of about the margin. An account that comes back from idling keeps at most kCreditSeconds of
// what it did not use.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace skein {

class TurnQueue {
 public:
  static constexpr double kMarginSeconds = 0.010;
  static constexpr double kCreditSeconds = 0.100;

  // What the executors of one engine have used together.
  struct Account {
    double weight = 1;
    double virtualSeconds = 0;
    double heldSeconds = 0;    // computed
    double waitedSeconds = 0;  // waited for a turn
    uint64_t partings = 0;     // turns parted for another account
  };

  // One executor.
  struct Entry {
    int32_t threads = 1;  // that it computes with
    std::shared_ptr<Account> account = std::make_shared<Account>();
    bool waits = false;
    bool holds = false;
  };

  explicit TurnQueue(int32_t processors) : processors_(processors) {}
  // Processors that turns of the same time may take together. One turn is always given, however many threads it has.
  void provide(int32_t processors) { processors_ = processors; }

  // Begins a turn, or waits for one: entry.holds or entry.waits.
  void ask(Entry& entry);
  // Waits, though a turn may be free: for who has just given one up.
  void wait(Entry& entry);
  // Waits no longer.
  void leave(Entry& entry);
  // entry holds a turn and has computed for so many seconds more.
  static void charge(Entry& entry, double seconds);
  bool mustPart(const Entry& entry) const;
  // entry holds a turn no longer.
  void giveUp(Entry& entry);
  // Begins a turn of whoever is next, and null where nobody is or there is no room. Nobody is passed by one that is less behind
  // and would fit: it would wait for ever.
  Entry* call();

  bool anyWaits() const { return !waiting_.empty(); }
  // Turns that were begun.
  uint64_t turns() const { return turns_; }

 private:
  bool fits(const Entry& entry) const { return inUse_ == 0 || inUse_ + entry.threads <= processors_; }
  Entry* next() const;
  void begin(Entry& entry);

  int32_t processors_;
  int32_t inUse_ = 0;  // threads of those that hold a turn
  uint64_t turns_ = 0;
  double virtualSeconds_ = 0;    // of the latest turn's account when it began
  std::vector<Entry*> waiting_;  // in the order of their coming
};

}  // namespace skein

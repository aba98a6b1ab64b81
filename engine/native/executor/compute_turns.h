// Whose turn it is to compute, among the executors of this process.
//
// An executor's threads usually take all processors that there are, so two that compute side by side would each wait for
// threads that the other has displaced. They take turns instead: one computes, with its own threads, and the others' threads
// sleep. Executors whose threads fit beside each other have their turns at the same time.
//
//   model A   |== step ==|      |== step ==|        |== st|....|ep ==|
//   model B              |==st|.............|ep ====|     |=st=|      ...     a step may be parted between two of its ops
//
// Fair by time: each account (the executors of one engine) has a virtual time, the seconds that it has computed, times its
// threads, divided by its weight. Who waits with the least is next. A step in progress is parted where one waits that is further behind than
// kMargin; so a model with little to do comes in after one op of another's long step, and two that are always busy share
// in slices of about twice the margin. An account that comes back from idling keeps at most kCredit of what it did not use.
//
// Nobody waits for ever: where one turn is not handed on for kPatience, because an op takes that long or does not return,
// who waits goes on beside it.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace skein {

class ComputeTurns {
 public:
  // What the executors of one engine have used together.
  struct Account {
    double weight = 1;
    double virtualSeconds = 0;
    double heldSeconds = 0;    // computed
    double waitedSeconds = 0;  // waited for a turn
    uint64_t partings = 0;     // steps parted for another account
  };

  // One executor. Used by one thread at a time.
  class Client {
   public:
    // threads: those that it computes with.
    explicit Client(int32_t threads) : threads_(threads), account_(std::make_shared<Account>()) {}
    void join(std::shared_ptr<Account> account, double weight);
    // Grows while this client waits, where it is given: whoever watches sees that the thread is alive.
    void setHeartbeat(int32_t* beats) { beats_ = beats; }
    Account account() const;

   private:
    friend class ComputeTurns;
    const int32_t threads_;
    std::shared_ptr<Account> account_;
    int32_t* beats_ = nullptr;
    int32_t depth_ = 0;
    bool waits_ = false;
    bool holds_ = false;
    std::chrono::steady_clock::time_point since_;  // charged up to here
    bool isBeside_ = false;  // computes without the turn: see kPatience
    std::condition_variable called_;
  };

  // Holds the turn; several of one client lie within each other.
  class Hold {
   public:
    explicit Hold(Client& client) : client_(client) { of().acquire(client_); }
    ~Hold() { of().release(client_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Client& client_;
  };

  // Processors that turns of the same time may take together; at first what the machine has.
  static void provide(int32_t processors);

  // Between two ops: hands the turn to who is further behind, and comes back with it.
  static void yield(Client& client) {
    ComputeTurns& turns = of();
    if (turns.waiting_.load(std::memory_order_relaxed) > 0) turns.part(client);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kMarginSeconds = 0.010;
  static constexpr double kCreditSeconds = 0.100;
  static constexpr std::chrono::milliseconds kBeat{100};
  static constexpr std::chrono::seconds kPatience{5};

  static ComputeTurns& of();

  void acquire(Client& client);
  void release(Client& client);
  void part(Client& client);

  // All of these with mutex_ held.
  void take(Client& client);
  void giveUp(Client& client);
  void charge(Client& client);
  bool fits(const Client& client) const { return inUse_ == 0 || inUse_ + client.threads_ <= processors_; }
  Client* next() const;
  void enqueue(Client& client);
  void dequeue(Client& client);
  void callNext();
  void wait(std::unique_lock<std::mutex>& lock, Client& client);

  std::mutex mutex_;
  int32_t processors_ = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  int32_t inUse_ = 0;             // threads of those that hold a turn
  uint64_t turn_ = 0;             // grows with each turn that begins
  double virtualSeconds_ = 0;     // of the latest turn's account when it began
  std::vector<Client*> queue_;    // in the order of their coming
  std::atomic<int32_t> waiting_{0};
};

}  // namespace skein

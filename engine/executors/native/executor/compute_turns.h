// Lets the executors of this process take turns to compute.
//
// An executor's threads usually take all processors, so two executors that compute side by side would each wait for threads
// that the other has displaced. So they take turns instead: one computes, with its own threads, and the others' threads
// sleep. Executors whose threads fit together have their turns at the same time. TurnQueue decides who is next.
//
//   model A   |== step ==|      |== step ==|        |== st|....|ep ==|
//   model B              |==st|.............|ep ====|     |=st=|      ...     a step may be parted between two of its ops
//
// No executor waits for ever: if no turn begins for kPatience, because an op takes that long or does not return, a
// waiting executor goes on without a turn.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "executor/turn_queue.h"

namespace skein {

class ComputeTurns {
 public:
  using Account = TurnQueue::Account;

  // Handle of one executor. Used by one thread at a time.
  class Client : private TurnQueue::Entry {
   public:
    // threads: the number that it computes with.
    explicit Client(int32_t threads) { this->threads = threads; }
    void join(std::shared_ptr<Account> shared, double weight);
    // Sets a counter that grows while this client waits, to show a watchdog that the thread is alive.
    void setHeartbeat(int32_t* beats) { beats_ = beats; }
    Account used() const;

   private:
    friend class ComputeTurns;
    int32_t* beats_ = nullptr;
    int32_t depth_ = 0;
    std::chrono::steady_clock::time_point since_;  // computing time is charged up to here
    std::condition_variable called_;
  };

  // Holds the turn; the holds of one client may be nested.
  class Hold {
   public:
    explicit Hold(Client& client) : client_(client) { of().acquire(client_); }
    ~Hold() { of().release(client_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Client& client_;
  };

  // Sets the number of processors that simultaneous turns may take together; by default all of the machine.
  static void provide(int32_t processors);

  // To be called between two ops: hands the turn to a client that is further behind, and returns with a turn again.
  static void yield(Client& client) {
    ComputeTurns& turns = of();
    if (turns.anyWaits_.load(std::memory_order_relaxed)) turns.part(client);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBeat{100};
  static constexpr std::chrono::seconds kPatience{5};

  ComputeTurns();
  static ComputeTurns& of();

  void acquire(Client& client);
  void release(Client& client);
  void part(Client& client);

  // mutex_ must be held for all of these.
  static void charge(Client& client);
  void callNext();
  void awaitTurn(std::unique_lock<std::mutex>& lock, Client& client);
  void noteQueue() { anyWaits_.store(queue_.anyWaits(), std::memory_order_relaxed); }

  std::mutex mutex_;
  TurnQueue queue_;
  std::atomic<bool> anyWaits_{false};
};

}  // namespace skein

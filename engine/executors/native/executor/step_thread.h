// The thread on which begun steps run, so that the thread of JavaScript can do other work meanwhile. It starts with the
// first step that is begun; an executor that only ever steps has none.
//
//   JavaScript   begin(job) ---- packs, answers, ... ---- finish()      begin(job) ----
//   this thread        job: forward and sampling ------------^                 job ----
//   state_       idle  begun                         done    idle              begun
//
// It touches no JavaScript. It sleeps where nothing is begun.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

namespace skein {

class StepThread {
 public:
  StepThread() = default;
  ~StepThread() { end(); }
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  // From begin() to finish(), also when the job is already done.
  bool busy() const { return state_.load(std::memory_order_acquire) != kIdle; }
  // Runs job() and returns at once. Not while busy(). Throws std::runtime_error where the system gives no thread.
  void begin(std::function<void()> job);
  // Waits for the job to end and throws what it threw. Only while busy().
  void finish();
  // Waits for a job that runs and ends the thread; nothing can be begun afterwards.
  void end();

 private:
  static constexpr int32_t kIdle = 0, kBegun = 1, kDone = 2, kStopping = 3;

  void loop();
  void set(int32_t state);

  std::atomic<int32_t> state_{kIdle};
  std::function<void()> job_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace skein

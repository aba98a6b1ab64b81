// The thread on which begun steps run, so that the thread of JavaScript can do other work meanwhile. It starts with the
// first begun step; an executor that only calls step() has no such thread.
//
//   JavaScript   begin(job) ---- packs, answers, ... ---- finish()      begin(job) ----
//   this thread        job: forward and sampling ------------^                 job ----
//   state_       idle  begun                         done    idle              begun
//
// The thread touches no JavaScript. It sleeps while no step is begun.
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

  // True from begin() to finish(), also when the job is already done.
  bool busy() const { return state_.load(std::memory_order_acquire) != kIdle; }
  // Runs job() and returns at once. Call only if not busy(). Throws std::runtime_error if the system gives no thread.
  void begin(std::function<void()> job);
  // Waits for the job to end and rethrows its error. Call only while busy().
  void finish();
  // Waits for a running job and ends the thread; nothing can be begun afterwards.
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

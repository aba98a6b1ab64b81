// The threads that compute one iteration: the calling thread and threads - 1 helpers.
//
// One primitive: run(count, fn) calls fn(task, thread) once for each task in 0..count-1 and returns when all are done.
// Tasks are claimed one by one, so a helper that the operating system has not scheduled holds nothing up: the others
// take its share. That is what keeps 8 threads on 2 cores usable.
//
//   state_ (one 64-bit word)   [ epoch 24 | task count 20 | next task 20 ]
//
// A claim is a compare-and-swap of the whole word. While a claimed task runs, its job cannot end, so the job's
// function and argument stay valid for exactly as long as they are used.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace skein {

class ThreadPool {
 public:
  static constexpr int32_t kMaxThreads = 1024;
  static constexpr int32_t kMaxTasks = (1 << 20) - 1;

  // threads counts the caller. Throws std::system_error where the system gives no more threads.
  explicit ThreadPool(int32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t threads() const { return static_cast<int32_t>(helpers_.size()) + 1; }

  // fn(int32_t task, int32_t thread), thread in 0..threads()-1. fn must not throw. Not reentrant.
  template <typename Function>
  void run(int32_t count, const Function& fn) {
    if (count <= 1 || helpers_.empty()) {
      for (int32_t task = 0; task < count; ++task) fn(task, 0);
      return;
    }
    runJob(count, &call<Function>, &fn);
  }

 private:
  using Call = void (*)(const void* function, int32_t task, int32_t thread);
  template <typename Function>
  static void call(const void* function, int32_t task, int32_t thread) {
    (*static_cast<const Function*>(function))(task, thread);
  }

  void runJob(int32_t count, Call call, const void* function);
  bool runOneTask(int32_t thread);
  void helperLoop(int32_t thread);
  void stop();

  std::vector<std::thread> helpers_;
  int32_t spinMicroseconds_ = 0;
  Call call_ = nullptr;
  const void* function_ = nullptr;
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int32_t> done_{0};
  alignas(64) std::atomic<uint32_t> doorbell_{0};
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace skein

// The threads that compute one iteration: the calling thread and threads - 1 helpers.
//
// One primitive: run(count, fn) calls fn(task, thread) once for each task in 0..count-1 and returns when all are done.
// Each thread has a share of consecutive tasks, and takes them from its front: the share of thread t of T begins at t / T
// of the tasks. So the same thread does the same rows op after op, and finds them in its own caches: two cores may be as
// far apart as two chips. A thread whose share is done takes tasks from the ends of the others' shares: so a helper that
// the operating system has not scheduled holds nothing up, which keeps 8 threads on 2 cores usable.
//
//   a share (one 64-bit word in a cache line of its own)   [ epoch 24 | end 20 | next 20 ]
//
// With places each thread stays on its processors: helpers from their start, and a calling thread from its first job on.
//
// A claim is a compare-and-swap of the whole word. While a claimed task runs, its job cannot end, so the job's
// function and argument stay valid for exactly as long as they are used.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "executor/thread_places.h"

namespace skein {

class ThreadPool {
 public:
  static constexpr int32_t kMaxThreads = 1024;

  // threads counts the caller. places is empty, or has the processors of each thread. Throws std::system_error if the
  // system gives no more threads.
  explicit ThreadPool(int32_t threads, ThreadPlaces places = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t threads() const { return threads_; }

  // Calls fn(int32_t task, int32_t thread), thread in 0..threads()-1. fn must not throw. Not reentrant.
  template <typename Function>
  void run(int32_t count, const Function& fn) {
    if (count <= 1 || threads_ == 1) {
      for (int32_t task = 0; task < count; ++task) fn(task, 0);
      return;
    }
    runJob(count, &call<Function>, &fn);
  }

  // Calls fn(int32_t thread) once on each thread, however late the system schedules them. fn must not throw.
  template <typename Function>
  void runOnEach(const Function& fn) {
    std::atomic<int32_t> begun{0};
    run(threads_, [&](int32_t, int32_t thread) {
      // There are as many tasks as threads, and no thread goes on before each has one.
      begun.fetch_add(1);
      while (begun.load() < threads_) std::this_thread::yield();
      fn(thread);
    });
  }

  // Makes the calling thread stay where the pool's thread of this number does.
  void stayBeside(int32_t thread) const {
    if (!places_.empty()) stayOn(places_[static_cast<size_t>(thread)]);
  }

 private:
  using Call = void (*)(const void* function, int32_t task, int32_t thread);
  template <typename Function>
  static void call(const void* function, int32_t task, int32_t thread) {
    (*static_cast<const Function*>(function))(task, thread);
  }

  struct alignas(64) Share {
    std::atomic<uint64_t> state{0};
  };

  void runJob(int32_t count, Call call, const void* function);
  int32_t runTasks(int32_t thread);
  int32_t runShare(Share& share, bool own, int32_t thread);
  void helperLoop(int32_t thread);
  void placeCaller() const;
  void stop();

  const int32_t threads_;
  const ThreadPlaces places_;
  const uint64_t id_;  // of the pool, never given again
  std::vector<std::thread> helpers_;
  std::unique_ptr<Share[]> shares_;
  int32_t spinMicroseconds_ = 0;
  // The fields that a helper reads first of a job lie together. The doorbell counts jobs.
  alignas(64) std::atomic<uint32_t> doorbell_{0};
  Call call_ = nullptr;
  const void* function_ = nullptr;
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int32_t> done_{0};
  alignas(64) std::atomic<int32_t> sleepers_{0};
};

}  // namespace skein

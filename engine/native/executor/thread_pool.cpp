#include "executor/thread_pool.h"

#include <chrono>

#include "executor/float_control.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace skein {
namespace {

constexpr int kFieldBits = 20;
constexpr uint64_t kFieldMask = (uint64_t(1) << kFieldBits) - 1;

uint64_t epochOf(uint64_t state) { return state >> (2 * kFieldBits); }
uint64_t countOf(uint64_t state) { return (state >> kFieldBits) & kFieldMask; }
uint64_t nextOf(uint64_t state) { return state & kFieldMask; }
bool hasTask(uint64_t state) { return nextOf(state) < countOf(state); }

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until ready() or the time is over; looks at the clock only now and then.
template <typename Ready>
bool spinUntil(int32_t microseconds, const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
    if (std::chrono::steady_clock::now() >= end) return false;
  }
}

// The gap between two ops of an iteration is a few microseconds. With more threads than processors a spinning helper
// only steals time from the one that holds the work.
constexpr int32_t kSpinMicroseconds = 60;
constexpr int32_t kSpinMicrosecondsOversubscribed = 2;

}  // namespace

ThreadPool::ThreadPool(int32_t threads) {
  const unsigned processors = std::thread::hardware_concurrency();
  const bool oversubscribed = processors != 0 && static_cast<unsigned>(threads) > processors;
  spinMicroseconds_ = oversubscribed ? kSpinMicrosecondsOversubscribed : kSpinMicroseconds;
  helpers_.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int32_t thread = 1; thread < threads; ++thread) helpers_.emplace_back([this, thread] { helperLoop(thread); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true);
  doorbell_.fetch_add(1);
  doorbell_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
}

void ThreadPool::runJob(int32_t count, Call call, const void* function) {
  call_ = call;
  function_ = function;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t epoch = epochOf(state_.load(std::memory_order_relaxed)) + 1;
  state_.store((epoch << (2 * kFieldBits)) | (static_cast<uint64_t>(count) << kFieldBits), std::memory_order_release);
  doorbell_.fetch_add(1);
  if (sleepers_.load() > 0) doorbell_.notify_all();

  while (runOneTask(0)) {
  }
  // The last tasks run on helpers. If one of them lost its processor, hand ours over.
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == count; };
  while (!spinUntil(spinMicroseconds_, finished)) std::this_thread::yield();
}

bool ThreadPool::runOneTask(int32_t thread) {
  uint64_t state = state_.load(std::memory_order_acquire);
  do {
    if (!hasTask(state)) return false;
  } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_acquire));
  call_(function_, static_cast<int32_t>(nextOf(state)), thread);
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void ThreadPool::helperLoop(int32_t thread) {
  const FloatControlScope floatControl;
  while (!stopping_.load()) {
    while (runOneTask(thread)) {
    }
    const uint32_t seen = doorbell_.load();
    const auto ready = [&] { return hasTask(state_.load(std::memory_order_acquire)) || stopping_.load(); };
    if (ready() || spinUntil(spinMicroseconds_, ready)) continue;
    // The doorbell was read before the last look for work: a job published since then has changed it.
    sleepers_.fetch_add(1);
    doorbell_.wait(seen);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace skein

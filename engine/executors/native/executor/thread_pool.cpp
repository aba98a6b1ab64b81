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

uint64_t endOf(uint64_t state) { return (state >> kFieldBits) & kFieldMask; }
uint64_t nextOf(uint64_t state) { return state & kFieldMask; }
bool hasTask(uint64_t state) { return nextOf(state) < endOf(state); }

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until ready() or the time is over; reads the clock only now and then.
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

// Time that a thread spins. The gap between two ops of an iteration is a few microseconds. With more threads than
// processors a spinning helper only steals time from the one that holds the work.
constexpr int32_t kSpinMicroseconds = 60;
constexpr int32_t kSpinMicrosecondsOversubscribed = 2;

uint64_t nextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

ThreadPool::ThreadPool(int32_t threads, ThreadPlaces places)
    : threads_(threads),
      places_(std::move(places)),
      id_(nextId()),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(threads))) {
  const unsigned processors = std::thread::hardware_concurrency();
  // A caller that has a place already sees the processors of its place only.
  const bool oversubscribed = places_.empty() && processors != 0 && static_cast<unsigned>(threads) > processors;
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
  placeCaller();
  call_ = call;
  function_ = function;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t epoch = uint64_t(doorbell_.load(std::memory_order_relaxed)) + 1;
  for (int64_t thread = 0; thread < threads_; ++thread) {
    const uint64_t next = static_cast<uint64_t>(thread * count / threads_),
                   end = static_cast<uint64_t>((thread + 1) * count / threads_);
    shares_[static_cast<size_t>(thread)].state.store((epoch << (2 * kFieldBits)) | (end << kFieldBits) | next,
                                                     std::memory_order_release);
  }
  doorbell_.fetch_add(1);
  if (sleepers_.load() > 0) doorbell_.notify_all();

  const int32_t own = runTasks(0);
  // The last tasks run on helpers. If one of them lost its processor, this thread gives up its own.
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == count - own; };
  while (!spinUntil(spinMicroseconds_, finished)) std::this_thread::yield();
}

// Different threads may call: the loop's, and the one of begun steps.
void ThreadPool::placeCaller() const {
  if (places_.empty()) return;
  thread_local uint64_t placedFor = 0;
  if (placedFor == id_) return;
  placedFor = id_;
  stayBeside(0);
}

// Runs tasks, of the thread's own share first, then of the shares after it in turn; returns how many.
int32_t ThreadPool::runTasks(int32_t thread) {
  int32_t count = runShare(shares_[static_cast<size_t>(thread)], true, thread);
  for (int32_t other = thread + 1; other < thread + threads_; ++other) {
    count += runShare(shares_[static_cast<size_t>(other % threads_)], false, thread);
  }
  return count;
}

int32_t ThreadPool::runShare(Share& share, bool own, int32_t thread) {
  int32_t count = 0;
  for (uint64_t state = share.state.load(std::memory_order_acquire); hasTask(state);) {
    const uint64_t task = own ? nextOf(state) : endOf(state) - 1;
    const uint64_t left = own ? state + 1 : state - (uint64_t(1) << kFieldBits);
    if (!share.state.compare_exchange_weak(state, left, std::memory_order_acquire, std::memory_order_acquire)) continue;
    call_(function_, static_cast<int32_t>(task), thread);
    ++count;
    state = share.state.load(std::memory_order_acquire);
  }
  return count;
}

void ThreadPool::helperLoop(int32_t thread) {
  const FloatControlScope floatControl;
  stayBeside(thread);
  while (!stopping_.load()) {
    // Must be read before the look for work: a job published after that changes it.
    const uint32_t seen = doorbell_.load();
    const int32_t count = runTasks(thread);
    if (count > 0) done_.fetch_add(count, std::memory_order_release);
    const auto ready = [&] { return doorbell_.load(std::memory_order_acquire) != seen || stopping_.load(); };
    if (spinUntil(spinMicroseconds_, ready)) continue;
    sleepers_.fetch_add(1);
    doorbell_.wait(seen);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace skein

#include "executor/group_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "coded_error.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kGroupMagic[8] = {'S', 'K', 'E', 'I', 'N', 'R', 'K', '1'};
constexpr size_t kTextBytes = 448;
// A wait spins for so long before it looks on.
constexpr int32_t kGroupSpinMicroseconds = 60;
// A wait that has spun keeps polling for this long, and yields the processor in between: ranks of one machine are
// seldom further apart within a layer, and to be woken takes as long as some of its products.
constexpr int32_t kYieldMicroseconds = 2000;
// A thread that gave its processor and has it back after so long shares it with others: there are more threads than processors.
constexpr int32_t kTakenMicroseconds = 100;
// Then no wait of this process looks on for so long: who sleeps is woken sooner than who has given its processor.
constexpr std::chrono::milliseconds kCrowdedTime(200);
std::atomic<Clock::rep> crowdedUntil{0};
// A sleeping wait checks this often whether the group was aborted by a process that cannot wake it.
constexpr int64_t kLookMs = 20;
// The same where there may soon be other work besides the wait.
constexpr int64_t kBesideMs = 1;

static_assert(std::atomic<uint32_t>::is_always_lock_free);

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void sleepOn(std::atomic<uint32_t>& word, uint32_t seen, int64_t milliseconds) {
#if defined(__linux__)
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
#else
  // Without a futex between processes a short sleep stands for it.
  (void)milliseconds;
  if (word.load() == seen) std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

void wakeAll(std::atomic<uint32_t>& word) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#else
  (void)word;
#endif
}

// True if `value` has come to `wanted`; the numbers wrap around.
bool reached(uint32_t value, uint32_t wanted) { return static_cast<int32_t>(value - wanted) >= 0; }

size_t signalCount(int32_t size) { return static_cast<size_t>(size) * kChannels * static_cast<size_t>(size + 1); }

void setText(char* target, const std::string& text) {
  const size_t length = std::min(text.size(), kTextBytes - 1);
  std::memcpy(target, text.data(), length);
  target[length] = 0;
}

std::string textOf(const char* source) { return std::string(source, strnlen(source, kTextBytes)); }

[[noreturn]] void failFile(const std::string& path, const char* what) {
  throw std::runtime_error("The memory that ranks share, " + path + ", " + what + " (" + std::strerror(errno) + ").");
}

void checkSize(int32_t size) {
  if (size < 2 || size > kMostRanks)
    throw std::runtime_error("A group has 2 to " + std::to_string(kMostRanks) + " ranks, not " + std::to_string(size) +
                             ".");
}

}  // namespace

struct GroupMemory::Header {
  char magic[8];
  uint32_t size;
  Signal call;
  Signal activity;                // grows with all that this rank does, while a relay watches
  std::atomic<uint32_t> watched;  // 1: a relay does
  std::atomic<uint32_t> aborted;  // 1: the reason is being written, 2: it is written
  char reason[kTextBytes];
};

// What a rank answers.
struct alignas(64) GroupMemory::State {
  Signal answered;
  uint32_t result;
  char error[kTextBytes];
};

namespace {

struct Layout {
  size_t states, signals, call, outboxes, bytes;
};

Layout layOut(size_t stateBytes, size_t signalBytes, int32_t size) {
  Layout layout{};
  const size_t ranks = static_cast<size_t>(size);
  layout.states = kPage;
  layout.signals = layout.states + roundUp(ranks * stateBytes, kPage);
  layout.call = layout.signals + roundUp(signalCount(size) * signalBytes, kPage);
  layout.outboxes = layout.call + kCallBytes;
  layout.bytes = layout.outboxes + ranks * kChannels * 2 * kSlotBytes;
  return layout;
}

}  // namespace

void GroupMemory::create(const std::string& path, int32_t size) {
  checkSize(size);
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) failFile(path, "cannot be made");
  const size_t bytes = layOut(sizeof(State), sizeof(Signal), size).bytes;
#if defined(__linux__)
  // A file system without room is an error here and not a fault at the first touch.
  const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  errno = error;
  const bool ok = error == 0;
#else
  const bool ok = ftruncate(file.get(), static_cast<off_t>(bytes)) == 0;
#endif
  if (!ok) {
    const int kept = errno;
    unlink(path.c_str());
    errno = kept;
    failFile(path, ("does not get its " + std::to_string(bytes) + " bytes").c_str());
  }
  const Mapping mapping = Mapping::writableFile(file.get(), bytes, path);
  auto* header = reinterpret_cast<Header*>(mapping.data());
  header->size = static_cast<uint32_t>(size);
  std::memcpy(header->magic, kGroupMagic, sizeof kGroupMagic);
}

GroupMemory::GroupMemory(const std::string& path, int32_t rank, int32_t size, int64_t limitMs)
    : rank_(rank), size_(size), limitMs_(limitMs) {
  checkSize(size);
  if (rank < 0 || rank >= size)
    throw std::runtime_error("Rank " + std::to_string(rank) + " is not one of " + std::to_string(size) + ".");
  if (limitMs < 1) throw std::runtime_error("The limit of a wait must be at least 1 ms.");
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || fstat(file.get(), &status) != 0) failFile(path, "cannot be opened");
  const Layout layout = layOut(sizeof(State), sizeof(Signal), size);
  if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) != layout.bytes)
    throw std::runtime_error(path + " is not the memory of a group of " + std::to_string(size) + " ranks.");
  mapping_ = Mapping::writableFile(file.get(), layout.bytes, path);
  if (std::memcmp(header().magic, kGroupMagic, sizeof kGroupMagic) != 0 || header().size != static_cast<uint32_t>(size))
    throw std::runtime_error(path + " is not the memory of a group of " + std::to_string(size) + " ranks.");
  signalsOffset_ = layout.signals;
  callOffset_ = layout.call;
  outboxOffset_ = layout.outboxes;
  counts_.resize(static_cast<size_t>(size) * kChannels);
}

GroupMemory::Header& GroupMemory::header() const { return *reinterpret_cast<Header*>(mapping_.data()); }

GroupMemory::State& GroupMemory::state(int32_t rank) const {
  return reinterpret_cast<State*>(mapping_.data() + kPage)[rank];
}

GroupMemory::Signal& GroupMemory::publishedBy(int32_t writer, int32_t channel) const {
  return reinterpret_cast<Signal*>(mapping_.data() + signalsOffset_)[writer * kChannels + channel];
}

GroupMemory::Signal& GroupMemory::takenBy(int32_t reader, int32_t writer, int32_t channel) const {
  const int32_t row = size_ + reader * size_ + writer;
  return reinterpret_cast<Signal*>(mapping_.data() + signalsOffset_)[row * kChannels + channel];
}

uint8_t* GroupMemory::slot(int32_t writer, int32_t channel, uint32_t number) const {
  const size_t index = static_cast<size_t>((writer * kChannels + channel) * 2) + number % 2;
  return mapping_.data() + outboxOffset_ + index * kSlotBytes;
}

void GroupMemory::set(Signal& signal, uint32_t value) {
  signal.value.store(value);
  if (signal.waiting.load() > 0) wakeAll(signal.value);
}

void GroupMemory::tell(Signal& signal, uint32_t value) {
  set(signal, value);
  if (header().watched.load(std::memory_order_relaxed) == 0) return;
  header().activity.value.fetch_add(1);
  if (header().activity.waiting.load() > 0) wakeAll(header().activity.value);
}

void GroupMemory::throwIfAborted() const {
  if (header().aborted.load(std::memory_order_acquire) != 0) throw CodedError(kGroupLost, abortReason());
}

template <typename Reached>
bool GroupMemory::await(Signal& signal, int64_t limitMs, const Reached& reachedValue, const Beside& beside) const {
  const auto begin = Clock::now();
  const auto spinEnd = begin + std::chrono::microseconds(kGroupSpinMicroseconds);
  // A relay needs the processor for what this wait is for, and a container may have given both of them one.
  const bool yields = header().watched.load(std::memory_order_relaxed) == 0 &&
                      begin.time_since_epoch().count() >= crowdedUntil.load(std::memory_order_relaxed);
  const auto yieldEnd = begin + std::chrono::microseconds(yields ? kYieldMicroseconds : 0);
  for (Clock::time_point now = begin, before = begin; now < spinEnd || now < yieldEnd; now = Clock::now()) {
    // Another thread had the processor, and may be the one that this wait is for.
    if (now >= spinEnd && now - before > std::chrono::microseconds(kTakenMicroseconds)) {
      crowdedUntil.store((now + kCrowdedTime).time_since_epoch().count(), std::memory_order_relaxed);
      break;
    }
    before = now;
    for (int i = 0; i < 32; ++i) {
      if (reachedValue(signal.value.load(std::memory_order_acquire))) return true;
      pause();
    }
    if (now >= spinEnd) std::this_thread::yield();
  }
  const auto end = begin + std::chrono::milliseconds(limitMs);
  signal.waiting.fetch_add(1);
  struct Leave {
    Signal& signal;
    ~Leave() { signal.waiting.fetch_sub(1); }
  } const leave{signal};
  for (;;) {
    const uint32_t seen = signal.value.load();
    if (reachedValue(seen)) return true;
    throwIfAborted();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    sleepOn(signal.value, seen, std::min<int64_t>(left, beside && beside() ? kBesideMs : kLookMs));
  }
}

void GroupMemory::awaitRank(Signal& signal, int32_t rank, uint32_t number, const char* what, int64_t limitMs,
                            const Beside& beside) const {
  if (await(signal, limitMs, [&](uint32_t value) { return reached(value, number); }, beside)) return;
  throw CodedError(kGroupLost, "Rank " + std::to_string(rank) + " of " + std::to_string(size_) + " has not " + what +
                                   " within " + std::to_string(limitMs) + " ms.");
}

void GroupMemory::ring() {
  throwIfAborted();
  tell(header().call, ++call_);
}

uint32_t GroupMemory::awaitAnswers(int64_t limitMs) {
  uint32_t sum = 0;
  std::string error;
  for (int32_t rank = 1; rank < size_; ++rank) {
    State& of = state(rank);
    awaitRank(of.answered, rank, call_, "answered a call", limitMs);
    sum += of.result;
    if (error.empty() && of.error[0] != 0) error = "Rank " + std::to_string(rank) + ": " + textOf(of.error);
  }
  if (!error.empty()) throw std::runtime_error(error);
  return sum;
}

uint32_t GroupMemory::answeredByAll() const {
  uint32_t least = call_;
  for (int32_t rank = 1; rank < size_; ++rank) {
    const uint32_t answered = state(rank).answered.value.load();
    if (reached(least, answered)) least = answered;
  }
  return least;
}

uint32_t GroupMemory::awaitCall(uint32_t last, int64_t timeoutMs) {
  throwIfAborted();
  await(header().call, timeoutMs, [&](uint32_t value) { return value != last; });
  return header().call.value.load();
}

void GroupMemory::answer(uint32_t call, uint32_t result, const std::string& error) {
  State& own = state(rank_);
  own.result = result;
  setText(own.error, error);
  tell(own.answered, call);
}

void GroupMemory::abort(const std::string& reason) {
  uint32_t none = 0;
  if (!header().aborted.compare_exchange_strong(none, 1)) return;
  setText(header().reason, reason);
  header().aborted.store(2);
}

std::string GroupMemory::abortReason() const {
  // The aborting process writes the reason at once, unless it dies while it does so.
  for (int i = 0; i < 100 && header().aborted.load() == 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (header().aborted.load() == 0) return {};
  const std::string reason = textOf(header().reason);
  return reason.empty() ? "The group of ranks was ended." : reason;
}

float* GroupMemory::beginPublication(int32_t channel, const std::vector<int32_t>& readers, const Beside& beside) {
  const uint32_t number = counts_[static_cast<size_t>(rank_ * kChannels + channel)] + 1;
  for (const int32_t reader : readers) {
    if (reader == rank_) continue;
    awaitRank(takenBy(reader, rank_, channel), reader, number - 2, "taken what was sent to it", limitMs_, beside);
  }
  return reinterpret_cast<float*>(slot(rank_, channel, number));
}

void GroupMemory::publish(int32_t channel, size_t bytes) {
  const uint32_t number = ++counts_[static_cast<size_t>(rank_ * kChannels + channel)];
  Signal& signal = publishedBy(rank_, channel);
  signal.bytes[number % 2] = static_cast<uint32_t>(bytes);
  tell(signal, number);
}

const float* GroupMemory::awaitPublication(int32_t writer, int32_t channel, const Beside& beside) {
  const uint32_t number = counts_[static_cast<size_t>(writer * kChannels + channel)] + 1;
  awaitRank(publishedBy(writer, channel), writer, number, "sent its part of a step", limitMs_, beside);
  return reinterpret_cast<const float*>(slot(writer, channel, number));
}

bool GroupMemory::hasPublication(int32_t writer, int32_t channel) const {
  const uint32_t number = counts_[static_cast<size_t>(writer * kChannels + channel)] + 1;
  return reached(publishedBy(writer, channel).value.load(std::memory_order_acquire), number);
}

void GroupMemory::take(int32_t writer, int32_t channel) {
  const uint32_t number = ++counts_[static_cast<size_t>(writer * kChannels + channel)];
  tell(takenBy(rank_, writer, channel), number);
}

uint32_t GroupMemory::callNumber() const { return header().call.value.load(); }

uint32_t GroupMemory::bytesOf(int32_t writer, int32_t channel, uint32_t number) const {
  return publishedBy(writer, channel).bytes[number % 2];
}

GroupMemory::Answer GroupMemory::answerOf(int32_t rank) const {
  const State& of = state(rank);
  return {of.answered.value.load(), of.result, textOf(of.error)};
}

void GroupMemory::relayCall(uint32_t number) { set(header().call, number); }

void GroupMemory::relayPublication(int32_t writer, int32_t channel, uint32_t number, uint32_t bytes) {
  Signal& signal = publishedBy(writer, channel);
  signal.bytes[number % 2] = bytes;
  set(signal, number);
}

void GroupMemory::relayTaken(int32_t reader, int32_t writer, int32_t channel, uint32_t number) {
  set(takenBy(reader, writer, channel), number);
}

void GroupMemory::relayAnswer(int32_t rank, const Answer& answer) {
  State& of = state(rank);
  of.result = answer.result;
  setText(of.error, answer.error);
  set(of.answered, answer.call);
}

uint32_t GroupMemory::awaitActivity(uint32_t seen, int64_t timeoutMs) {
  header().watched.store(1);
  Signal& activity = header().activity;
  activity.waiting.fetch_add(1);
  if (activity.value.load() == seen) sleepOn(activity.value, seen, timeoutMs);
  activity.waiting.fetch_sub(1);
  return activity.value.load();
}

}  // namespace skein

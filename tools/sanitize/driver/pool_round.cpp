#include <cstdint>
#include <utility>
#include <vector>

#include "executor/thread_pool.h"
#include "scenarios.h"

namespace skein {

void poolRound(Random& random) {
  const int32_t threads = random.integer(1, 6);
  // Half of them with places: all of them on the first processor.
  ThreadPlaces places(random.chance(50) ? static_cast<size_t>(threads) : 0, std::vector<int32_t>{0});
  if (!places.empty()) places[0].clear();
  ThreadPool pool(threads, std::move(places));
  std::vector<int64_t> results(600);
  std::vector<int64_t> perThread(static_cast<size_t>(threads));
  const int32_t jobs = random.integer(0, 60);
  for (int32_t job = 0; job < jobs; ++job) {
    const int32_t count = random.chance(80) ? random.integer(0, 12) : random.integer(0, 600);
    const bool uneven = random.chance(20);
    // Plain memory on purpose: a task's writes must be seen by who ran the job, and a thread's own by its later tasks.
    pool.run(count, [&](int32_t task, int32_t thread) {
      if (uneven && task % 7 == 0) std::this_thread::yield();
      results[static_cast<size_t>(task)] += int64_t(job) * 1000 + task;
      perThread[static_cast<size_t>(thread)]++;
    });
    int64_t tasks = 0;
    for (int64_t& count_ : perThread) tasks += count_, count_ = 0;
    expect(tasks == count, "A job of the pool ran another number of tasks than it has.");
    for (int32_t task = 0; task < count; ++task) {
      int64_t& result = results[static_cast<size_t>(task)];
      expect(result == int64_t(job) * 1000 + task, "A task of the pool did not run once.");
      result = 0;
    }
    if (random.chance(20)) {
      // Each thread once, whatever it is late with.
      pool.runOnEach([&](int32_t thread) { perThread[static_cast<size_t>(thread)]++; });
      for (int64_t& count_ : perThread) {
        expect(count_ == 1, "A thread of the pool did not run once.");
        count_ = 0;
      }
    }
    random.pause();
  }
}

}  // namespace skein

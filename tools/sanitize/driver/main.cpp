// Drives the native threads without Node.js, for ThreadSanitizer and AddressSanitizer to watch:
//
//   driver SECONDS SEED       all scenarios in turn, for so long altogether
//   driver plant race|bounds|overflow|leak
//
// A planted fault is there to be found: before a run that found nothing is trusted, a run with these must find them.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "executor/thread_pool.h"
#include "scenarios.h"

namespace skein {
namespace {

struct Scenario {
  const char* name;
  void (*round)(Random&);
};

constexpr std::array<Scenario, 5> kScenarios{{{"pool", poolRound},
                                              {"turns", turnsRound},
                                              {"begun steps", stepsRound},
                                              {"executors", executorRound},
                                              {"conversion", convertRound}}};

// Tasks of one job that count in the same word without a lock, as none may.
void plantRace() {
  int64_t counter = 0;
  ThreadPool pool(4);
  for (int32_t job = 0; job < 200; ++job) {
    pool.run(64, [&](int32_t, int32_t) {
      counter++;
      std::this_thread::yield();
    });
  }
  std::printf("nobody saw %lld\n", static_cast<long long>(counter));
}

// Both are computed from what the compiler cannot know, so that it has to leave them in.
void plantBounds(int32_t length) {
  const std::unique_ptr<int32_t[]> values(new int32_t[static_cast<size_t>(length)]());
  std::printf("nobody saw %d\n", values[static_cast<size_t>(length)]);
}
void plantOverflow(int32_t one) { std::printf("nobody saw %d\n", INT32_MAX - 1 + 2 * one); }
void plantLeak(int32_t length) {
  std::printf("nobody saw %p\n", static_cast<void*>(new char[static_cast<size_t>(length)]));
}

int plant(const char* fault, int32_t one) {
  if (std::strcmp(fault, "race") == 0) plantRace();
  else if (std::strcmp(fault, "bounds") == 0) plantBounds(8 * one);
  else if (std::strcmp(fault, "overflow") == 0) plantOverflow(one);
  else if (std::strcmp(fault, "leak") == 0) plantLeak(1000 * one);
  else return std::fprintf(stderr, "no fault is named %s\n", fault), 2;
  return 0;
}

int drive(double seconds, uint32_t seed) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> share(seconds / kScenarios.size());
  Random random(seed);
  for (const Scenario& scenario : kScenarios) {
    const Clock::time_point begin = Clock::now();
    int64_t rounds = 0;
    try {
      // At least one, however busy the machine is.
      do scenario.round(random), rounds++;
      while (Clock::now() - begin < share);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s, seed %u, round %lld: %s\n", scenario.name, seed, static_cast<long long>(rounds),
                   error.what());
      return 1;
    }
    std::printf("%s %lld\n", scenario.name, static_cast<long long>(rounds));
  }
  return 0;
}

}  // namespace
}  // namespace skein

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "driver SECONDS SEED, or driver plant FAULT\n");
    return 2;
  }
  if (std::strcmp(arguments[1], "plant") == 0) return skein::plant(arguments[2], count - 2);
  return skein::drive(std::atof(arguments[1]), static_cast<uint32_t>(std::strtoul(arguments[2], nullptr, 10)));
}

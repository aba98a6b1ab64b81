#include <memory>
#include <thread>
#include <vector>

#include "executor/compute_turns.h"
#include "executor/thread_pool.h"
#include "scenarios.h"

namespace skein {
namespace {

using Turns = ComputeTurns;

// An engine of that many threads, and what its worker's watcher reads.
struct Engine {
  explicit Engine(int32_t threads) : client(threads), pool(threads) { client.setHeartbeat(&beats); }
  Turns::Client client;
  ThreadPool pool;
  int32_t beats = 0;
  std::vector<int64_t> values = std::vector<int64_t>(64);
};

void runSteps(Engine& engine, uint32_t seed) {
  Random random(seed);
  for (int32_t step = random.integer(1, 12); step > 0; --step) {
    const Turns::Hold turn(engine.client);
    const Turns::Hold within(engine.client);
    for (int32_t op = random.integer(1, 8); op > 0; --op) {
      Turns::yield(engine.client);
      engine.pool.run(random.integer(1, 64),
                      [&](int32_t task, int32_t) { engine.values[static_cast<size_t>(task)]++; });
      random.pause();
    }
  }
}

}  // namespace

void turnsRound(Random& random) {
  std::vector<std::unique_ptr<Engine>> engines;
  std::shared_ptr<Turns::Account> account;
  for (int32_t i = random.integer(2, 5); i > 0; --i) {
    engines.push_back(std::make_unique<Engine>(random.integer(1, 4)));
    // Executors of one worker share an account.
    if (!account || random.chance(60)) account = std::make_shared<Turns::Account>();
    engines.back()->client.join(account, random.integer(1, 4));
  }
  std::vector<std::thread> workers;
  for (const auto& engine : engines) {
    workers.emplace_back([&engine = *engine, seed = random.next()] { runSteps(engine, seed); });
  }
  for (int32_t look = random.integer(0, 20); look > 0; --look) {
    Engine& engine = *engines[static_cast<size_t>(random.integer(0, static_cast<int32_t>(engines.size()) - 1))];
    expect(engine.client.used().heldSeconds >= 0, "An engine has computed for less than no time.");
    expect(__atomic_load_n(&engine.beats, __ATOMIC_SEQ_CST) >= 0, "A heartbeat went backwards.");
    if (random.chance(30)) Turns::provide(random.integer(1, 6));
    random.pause();
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace skein

#include "executor/turn_simulation.h"

#include <algorithm>
#include <limits>

#include "executor/turn_queue.h"

namespace skein {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Runner : TurnQueue::Entry {
  const SimulatedEngine* engine = nullptr;
  double due = 0;  // end of its op or of its gap; kNever while it waits
  int32_t opsLeft = 0;
  double waitsSince = 0;
  SimulatedTurns result;
};

class Simulation {
 public:
  Simulation(int32_t processors, const std::vector<SimulatedEngine>& engines)
      : queue_(processors), runners_(engines.size()) {
    for (size_t i = 0; i < engines.size(); ++i) {
      runners_[i].engine = &engines[i];
      runners_[i].threads = engines[i].threads;
      runners_[i].account->weight = engines[i].weight;
      runners_[i].due = engines[i].startSeconds;
    }
  }

  std::vector<SimulatedTurns> run(double seconds) {
    for (;;) {
      const auto byDue = [](const Runner& a, const Runner& b) { return a.due < b.due; };
      Runner& runner = *std::min_element(runners_.begin(), runners_.end(), byDue);
      if (runner.due > seconds) break;
      now_ = runner.due;
      if (runner.holds) endOp(runner);
      else beginStep(runner);
    }
    std::vector<SimulatedTurns> results;
    for (Runner& runner : runners_) {
      if (runner.waits) noteWait(runner, seconds);
      runner.result.heldSeconds = runner.account->heldSeconds;
      results.push_back(runner.result);
    }
    return results;
  }

 private:
  void beginStep(Runner& runner) {
    runner.opsLeft = runner.engine->opsPerStep;
    queue_.ask(runner);
    proceed(runner);
  }

  void endOp(Runner& runner) {
    TurnQueue::charge(runner, runner.engine->opSeconds);
    if (--runner.opsLeft == 0) {
      runner.result.steps++;
      queue_.giveUp(runner);
      callNext();
      runner.due = now_ + runner.engine->gapSeconds;
      return;
    }
    if (queue_.mustPart(runner)) {
      runner.result.partings++;
      queue_.giveUp(runner);
      callNext();
      queue_.wait(runner);
    }
    proceed(runner);
  }

  void proceed(Runner& runner) {
    runner.due = runner.holds ? now_ + runner.engine->opSeconds : kNever;
    runner.waitsSince = now_;
  }

  void callNext() {
    while (TurnQueue::Entry* entry = queue_.call()) {
      Runner& called = *static_cast<Runner*>(entry);
      noteWait(called, now_);
      proceed(called);
    }
  }

  static void noteWait(Runner& runner, double until) {
    const double waited = until - runner.waitsSince;
    runner.result.waitedSeconds += waited;
    runner.result.longestWaitSeconds = std::max(runner.result.longestWaitSeconds, waited);
  }

  TurnQueue queue_;
  std::vector<Runner> runners_;
  double now_ = 0;
};

}  // namespace

std::vector<SimulatedTurns> simulateTurns(int32_t processors, double seconds,
                                          const std::vector<SimulatedEngine>& engines) {
  return Simulation(processors, engines).run(seconds);
}

}  // namespace skein

#include <stdexcept>
#include <vector>

#include "executor/step_thread.h"
#include "scenarios.h"

namespace skein {

void stepsRound(Random& random) {
  std::vector<int32_t> result(8);
  StepThread thread;
  for (int32_t step = random.integer(0, 20); step > 0; --step) {
    const bool fails = random.chance(20), isSlow = random.chance(30);
    // Plain memory on purpose: begin() hands it over, finish() hands it back.
    for (int32_t& value : result) value = step;
    thread.begin([&result, fails, isSlow] {
      if (isSlow) std::this_thread::yield();
      for (int32_t& value : result) value *= 2;
      if (fails) throw std::runtime_error("this step fails");
    });
    expect(thread.busy(), "A begun step does not show.");
    random.pause();
    if (step == 1 && random.chance(50)) break;  // ended while it runs, or with no caller to finish it
    bool failed = false;
    try {
      thread.finish();
    } catch (const std::runtime_error&) {
      failed = true;
    }
    expect(failed == fails, "A step's error went astray.");
    expect(!thread.busy(), "A finished step is still there.");
    for (const int32_t value : result) expect(value == 2 * step, "What a step wrote is not there.");
    random.pause();
  }
  if (random.chance(50)) thread.end();
}

}  // namespace skein

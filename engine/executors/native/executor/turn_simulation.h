// Simulates engines that take turns, on a clock of its own: the decisions of TurnQueue without threads and without chance,
// for its tests.
#pragma once
#include <cstdint>
#include <vector>

namespace skein {

// An engine that runs one step after the other.
struct SimulatedEngine {
  int32_t threads;
  double weight;
  double opSeconds;
  int32_t opsPerStep;
  double gapSeconds;    // between two steps
  double startSeconds;  // of the first step
};

struct SimulatedTurns {
  double heldSeconds = 0, waitedSeconds = 0, longestWaitSeconds = 0;
  int32_t steps = 0, partings = 0;
};

// Runs the simulation for `seconds` and returns the times of each engine.
std::vector<SimulatedTurns> simulateTurns(int32_t processors, double seconds,
                                          const std::vector<SimulatedEngine>& engines);

}  // namespace skein

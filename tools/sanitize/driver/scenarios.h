// Work of the driver's threads, in random schedules. A scenario does one round of it; it throws std::runtime_error where
// the round's result is wrong, and the sanitizer (ThreadSanitizer, AddressSanitizer) ends the process where memory is used
// wrongly.
#pragma once
#include <stdexcept>

#include "random.h"

namespace skein {

inline void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// thread_pool.h: jobs of all sizes on pools of all sizes, whose helpers sleep and wake; what tasks wrote is read without locks.
void poolRound(Random& random);
// compute_turns.h, turn_queue.h: engines that compute in turn, with pools and accounts, while others watch and reconfigure.
void turnsRound(Random& random);
// step_thread.h: steps that are begun and finished, that throw, and that still run when their thread is ended.
void stepsRound(Random& random);
// executor.h: models of one process, each in a thread of its own, on several threads and by begun steps; the same bits as alone.
void executorRound(Random& random);
// convert.h: many tensors on many threads, and an error in the midst of them.
void convertRound(Random& random);

}  // namespace skein

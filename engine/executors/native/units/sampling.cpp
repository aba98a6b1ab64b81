// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "executor/draft_rejection.cpp"
#include "executor/logit_changes.cpp"
#include "executor/returned_rows.cpp"
#include "executor/sampler_chain.cpp"
#include "executor/sampling.cpp"
#include "executor/selection.cpp"
#include "executor/compute_turns.cpp"
#include "executor/step_thread.cpp"
#include "executor/thread_places.cpp"
#include "executor/thread_pool.cpp"
#include "executor/turn_queue.cpp"
#include "executor/turn_simulation.cpp"

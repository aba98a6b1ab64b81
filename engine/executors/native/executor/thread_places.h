// The processors that threads stay on. Where they are is decided outside; here it is only done.
#pragma once
#include <cstdint>
#include <vector>

namespace skein {

// Processors of each thread of a pool, the calling one first; empty: they run where the system puts them.
using ThreadPlaces = std::vector<std::vector<int32_t>>;

// Keeps the calling thread on these processors; threads that it starts begin there too. Does nothing if there are none, if
// the system refuses (a processor may have gone offline since it was chosen), or on a system without this call: a place
// changes only how fast a thread is.
void stayOn(const std::vector<int32_t>& processors);

}  // namespace skein

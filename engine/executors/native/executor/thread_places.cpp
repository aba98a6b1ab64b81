#include "executor/thread_places.h"

#if defined(__linux__)
#include <sched.h>

#include <algorithm>
#endif

namespace skein {

void stayOn(const std::vector<int32_t>& processors) {
  if (processors.empty()) return;
#if defined(__linux__)
  // A cpu_set_t has room for 1024 processors; machines may have more.
  const int count = *std::max_element(processors.begin(), processors.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(count);
  if (set == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int32_t processor : processors) CPU_SET_S(static_cast<size_t>(processor), bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
#endif
}

}  // namespace skein

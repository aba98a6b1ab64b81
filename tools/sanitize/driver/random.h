// Mulberry32, as in tools/soak/random.ts: the same numbers for a seed on every machine.
#pragma once
#include <chrono>
#include <cstdint>
#include <thread>

namespace skein {

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}

  uint32_t next() {
    state_ += 0x6d2b79f5u;
    uint32_t t = (state_ ^ (state_ >> 15)) * (1u | state_);
    t = (t + (t ^ (t >> 7)) * (61u | t)) ^ t;
    return t ^ (t >> 14);
  }
  // From least to most.
  int32_t integer(int32_t least, int32_t most) {
    return least + static_cast<int32_t>(next() % (static_cast<uint32_t>(most - least) + 1));
  }
  bool chance(int32_t percent) { return integer(1, 100) <= percent; }

  // Mostly none; else a yield, or some microseconds: around the time after which the pool's helpers go to sleep.
  void pause() {
    const int32_t kind = integer(0, 9);
    if (kind == 0) std::this_thread::sleep_for(std::chrono::microseconds(integer(1, 200)));
    else if (kind < 3) std::this_thread::yield();
  }

 private:
  uint32_t state_;
};

}  // namespace skein

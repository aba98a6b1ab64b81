// The floating-point mode of every thread that computes: round to nearest, denormals flushed, exceptions masked.
// A result must not depend on the thread that made it, so the calling thread and the helpers set the same mode.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace skein {

class FloatControlScope {
 public:
  FloatControlScope() : saved_(read()) { write(kMode); }
  ~FloatControlScope() { write(saved_); }
  FloatControlScope(const FloatControlScope&) = delete;
  FloatControlScope& operator=(const FloatControlScope&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kMode = 0x1F80 | 0x8000 | 0x0040;  // all masked, nearest, FTZ, DAZ
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kMode = uint64_t(1) << 24;  // FZ
  static uint64_t read() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kMode = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif
  uint64_t saved_;
};

}  // namespace skein

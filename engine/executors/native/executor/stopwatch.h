#pragma once
#include <chrono>

namespace skein {

// Adds the seconds of its scope to *seconds; does nothing for null.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~Stopwatch() {
    if (seconds_ != nullptr)
      *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace skein

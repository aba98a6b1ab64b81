// Turns a head before it is rounded to 8 bits. A few dimensions of a key are far greater than the others, and share their scale: after a
// Hadamard transform each number holds a part of all, so that none is far greater. The transform is orthogonal but for its length, so
// a query that is turned likewise has the same product with the key (QuaRot, Ashkboos et al. 2024, uses it so).
//
//   from   a0 a1 a2 a3 | b0 b1 b2 b3      halves of 2^n numbers
//   to     a0 + b0   a0 - b0   a1 + b1   a1 - b1 ..       n times: the order of the numbers in the end is that of any other
//
// Sums of two in a fixed tree: the same bits on every instruction set. The compiler makes vectors of them.
#pragma once
#include <cstdint>

namespace skein {
namespace {

constexpr int kMostRotated = 1024;  // numbers of a head; greater heads stay as they are

// Numbers that are turned together: the greatest power of two that divides the head.
constexpr int rotatedTogether(int headDim) { return headDim > kMostRotated ? 1 : headDim & -headDim; }

inline void addAndSubtract(const float* __restrict from, int half, float* __restrict to) {
  for (int i = 0; i < half; i++) {
    const float a = from[i], b = from[half + i];
    to[2 * i] = a + b;
    to[2 * i + 1] = a - b;
  }
}

// A head turned, in the memory that it brings along. Products of two such heads are `together` times those of the heads
// themselves. What is above 2^127 / together becomes infinite, and so a row that is not finite.
class RotatedHead {
 public:
  RotatedHead(const float* head, int headDim) : numbers_(head) {
    const int together = rotatedTogether(headDim);
    if (together == 1) return;
    numbers_ = turned_;
    const int steps = __builtin_ctz(unsigned(together));
    for (int at = 0; at < headDim; at += together) {
      const float* from = head + at;
      // The last step ends in turned_.
      for (int step = 0; step < steps; step++) {
        float* to = (steps - step) % 2 ? turned_ + at : between_;
        addAndSubtract(from, together / 2, to);
        from = to;
      }
    }
  }
  RotatedHead(const RotatedHead&) = delete;
  RotatedHead& operator=(const RotatedHead&) = delete;
  const float* numbers() const { return numbers_; }

 private:
  const float* numbers_;
  alignas(64) float turned_[kMostRotated];
  alignas(64) float between_[kMostRotated];
};

}  // namespace
}  // namespace skein

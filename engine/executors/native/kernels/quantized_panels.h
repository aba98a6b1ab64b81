// Panels of 8- and 4-bit weights in groups of 32 along k. A panel holds NR = 2 W outputs, group after group:
//
//   int8  NR scales (f16)                     | 8 steps of 4 k x NR outputs      | next group
//   int4  NR scales (f16) | NR minima (f16)   | 4 double steps of 8 k x NR       | next group
//
//   a step    lane 0: w[0][k .. k+3]   lane 1: w[1][k .. k+3]   ..   4 bytes a lane, W lanes a vector, 2 vectors
//   (int4: the low nibbles are the step 2 s, the high ones the step 2 s + 1)
#pragma once
#include "kernels/gemm.h"
#include "kernels/half.h"

namespace skein {
namespace {

template <class V, DType D>
constexpr int kScaleBytes = kPanelWidth<V> * (D == DType::kInt4 ? 4 : 2);
template <class V, DType D>
constexpr int kPanelGroupBytes = kScaleBytes<V, D> + kPanelWidth<V> * (D == DType::kInt4 ? kGroup / 2 : kGroup);

// Weights of one panel and group in the form that products take: vectors of both halves of the panel by turns, and scales
// in f32. `Packed` unpacks them on the way, which is cheap for one tile. For many tiles in a row they are unpacked once,
// into memory of the first-level cache (`expandGroup`), with the same values.
template <class V, DType D>
constexpr int kParts = D == DType::kInt4 ? 2 : V::kInt8Parts;  // vectors of one packed vector
template <class V, DType D>
constexpr int kSteps = D == DType::kInt4 ? kGroup / 8 : kGroup / 4;  // packed vectors of a group, for each half

template <class V, DType D>
[[gnu::always_inline]] inline typename V::I weightsOf(const uint8_t* p, int part) {
  if constexpr (D == DType::kInt4) return V::weights4(p, part);
  else return V::weights8(p, part);
}

// Scales, then minima, of both halves.
template <class V, DType D>
constexpr int kScaleVectors = D == DType::kInt4 ? 4 : 2;

template <class V, DType D>
struct PackedGroups {
  static constexpr int kBytes = kPanelGroupBytes<V, D>;
  // Bytes of prefetch ahead, measured for each width: wide vectors finish a group in a third of the time.
  static constexpr int kAhead = V::W == 16 ? 8192 : 2048;
  static typename V::F scales(const uint8_t* group, int i) { return V::loadHalf(group + i * 2 * V::W); }
  static typename V::I weights(const uint8_t* group, int step, int part, int half) {
    return weightsOf<V, D>(group + kScaleBytes<V, D> + (2 * step + half) * 4 * V::W, part);
  }
  static void prefetch(const uint8_t* group, int step) {
    const uint8_t* p = group + kScaleBytes<V, D> + step * 8 * V::W + kAhead;
    __builtin_prefetch(p);
    if constexpr (8 * V::W > 64) __builtin_prefetch(p + 64);
  }
};

template <class V, DType D>
struct ExpandedGroups {
  static constexpr int kVector = 4 * V::W;
  static constexpr int kBytes = (kScaleVectors<V, D> + 2 * kSteps<V, D> * kParts<V, D>)*kVector;
  static typename V::F scales(const uint8_t* group, int i) {
    return V::load(reinterpret_cast<const float*>(group + i * kVector));
  }
  static constexpr int place(int step, int part, int half) {
    return (kScaleVectors<V, D> + (step * kParts<V, D> + part) * 2 + half) * kVector;
  }
  static typename V::I weights(const uint8_t* group, int step, int part, int half) {
    return V::loadI(group + place(step, part, half));
  }
  static void prefetch(const uint8_t*, int) {}
};

template <class V, DType D>
void expandGroup(const uint8_t* packed, uint8_t* expanded) {
  using From = PackedGroups<V, D>;
  using To = ExpandedGroups<V, D>;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kScaleVectors<V, D>; i++)
    V::store(reinterpret_cast<float*>(expanded + i * To::kVector), From::scales(packed, i));
  SKEIN_UNROLL(8)
  for (int step = 0; step < kSteps<V, D>; step++) {
    SKEIN_UNROLL(2)
    for (int part = 0; part < kParts<V, D>; part++) {
      V::storeI(expanded + To::place(step, part, 0), From::weights(packed, step, part, 0));
      V::storeI(expanded + To::place(step, part, 1), From::weights(packed, step, part, 1));
    }
  }
}

}  // namespace
}  // namespace skein

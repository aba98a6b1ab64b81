// Panels of 8- and 4-bit weights in groups of 32 along k. A panel holds NR = 2 W outputs, group after group:
//
//   int8  NR scales (f16)                     | 8 steps of 4 k x NR outputs      | next group
//   int4  NR scales (f16) | NR minima (f16)   | 4 double steps of 8 k x NR       | next group
//
//   a step    lane 0: w[0][k .. k+3]   lane 1: w[1][k .. k+3]   ..   4 bytes a lane, W lanes a vector, 2 vectors
//   (int4: the low nibbles are the step 2 s, the high ones the step 2 s + 1)
//
// superblock_panels.h has those of superblocks.
#pragma once
#include "kernels/gemm.h"
#include "kernels/half.h"

namespace skein {
namespace {

// The form in which a product computes: weights of one form differ in how they are unpacked.
//
//   int8    scales in f32
//   int4    scales and minima in f32, quants of 4 bits           int4, q4_k
//   q6_k    scales in whole numbers, quants of up to 6 bits      q5_k, q6_k
constexpr DType formOf(DType weights) {
  if (weights == DType::kQ4K) return DType::kInt4;
  return weights == DType::kQ5K ? DType::kQ6K : weights;
}

template <class V, DType D>
constexpr int kScaleBytes = kPanelWidth<V> * (D == DType::kInt4 ? 4 : 2);
template <class V, DType D>
constexpr int kPanelGroupBytes = kScaleBytes<V, D> + kPanelWidth<V> * (D == DType::kInt4 ? kGroup / 2 : kGroup);

// Weights of one panel and group in the form that products take: vectors of both halves of the panel by turns, and scales
// in f32. `PackedGroups` unpacks them on the way, which is cheap for one tile. For many tiles in a row they are unpacked
// once, into memory of the first-level cache (`ExpandedGroups`), with the same values. Both walk from group to group.
template <class V, DType D>
constexpr int kParts = D == DType::kInt8 ? V::kInt8Parts : 2;  // vectors of one packed vector
template <class V, DType D>
constexpr int kSteps = D == DType::kInt8 ? kGroup / 4 : kGroup / 8;  // packed vectors of a group, for each half

// Vectors of scales, then minima, of both halves.
template <class V, DType D>
constexpr int kScaleVectors = formOf(D) == DType::kInt8 ? 2 : 4;

// Bytes of prefetch ahead, measured for each width: wide vectors finish a group in a third of the time.
template <class V>
constexpr int kPanelAhead = V::W == 16 ? 8192 : 2048;

// Prefetches the two vectors of a step that is needed later.
template <class V>
inline void prefetchStep(const uint8_t* vectors) {
  __builtin_prefetch(vectors + kPanelAhead<V>);
  if constexpr (8 * V::W > 64) __builtin_prefetch(vectors + kPanelAhead<V> + 64);
}

// int8 and int4.
template <class V, DType D>
class PackedGroups {
 public:
  using F = typename V::F;
  using I = typename V::I;
  static constexpr int64_t offsetOf(int group) { return int64_t(group) * kPanelGroupBytes<V, D>; }

  PackedGroups(const uint8_t* panel, int group) : group_(panel + offsetOf(group)) {}
  F scales(int i) const { return V::loadHalf(group_ + i * 2 * V::W); }
  I weights(int step, int part, int half) const {
    const uint8_t* p = group_ + kScaleBytes<V, D> + (2 * step + half) * 4 * V::W;
    if constexpr (D == DType::kInt4) return V::weights4(p, part);
    else return V::weights8(p, part);
  }
  void prefetch(int step) const { prefetchStep<V>(group_ + kScaleBytes<V, D> + step * 8 * V::W); }
  void next() { group_ += kPanelGroupBytes<V, D>; }

 private:
  const uint8_t* group_;
};

// Form is int8 or int4.
template <class V, DType Form>
class ExpandedGroups {
 public:
  using F = typename V::F;
  using I = typename V::I;
  static constexpr int kVector = 4 * V::W;
  static constexpr int kBytes = (kScaleVectors<V, Form> + 2 * kSteps<V, Form> * kParts<V, Form>)*kVector;

  ExpandedGroups(const uint8_t* part, int group) : group_(part + int64_t(group) * kBytes) {}
  F scales(int i) const { return V::load(reinterpret_cast<const float*>(group_ + i * kVector)); }
  I weights(int step, int part, int half) const { return V::loadI(group_ + place(step, part, half)); }
  void prefetch(int) const {}
  void next() { group_ += kBytes; }

  // Writes the group at which `packed` is.
  template <class Packed>
  static void expand(const Packed& packed, uint8_t* to) {
    SKEIN_UNROLL(4)
    for (int i = 0; i < kScaleVectors<V, Form>; i++)
      V::store(reinterpret_cast<float*>(to + i * kVector), packed.scales(i));
    SKEIN_UNROLL(8)
    for (int step = 0; step < kSteps<V, Form>; step++) {
      SKEIN_UNROLL(2)
      for (int part = 0; part < kParts<V, Form>; part++) {
        V::storeI(to + place(step, part, 0), packed.weights(step, part, 0));
        V::storeI(to + place(step, part, 1), packed.weights(step, part, 1));
      }
    }
  }

 private:
  static constexpr int place(int step, int part, int half) {
    return (kScaleVectors<V, Form> + (step * kParts<V, Form> + part) * 2 + half) * kVector;
  }
  const uint8_t* group_;
};

}  // namespace
}  // namespace skein

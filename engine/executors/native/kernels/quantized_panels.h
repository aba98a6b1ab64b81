// Panels of weights in groups of 32 along k. A panel holds NR = 2 W outputs, group after group:
//
//   int8     NR scales (f16)                     | 8 steps of 4 k x NR outputs      | next group
//   int4     NR scales (f16) | NR minima (f16)   | 4 double steps of 8 k x NR       | next group
//   q5_0     NR scales (f16)                     | 4 double steps | fifth bits      | next group
//   q5_1     NR scales (f16) | NR minima (f16)   | 4 double steps | fifth bits      | next group
//   iq4_nl   NR scales (f16)                     | 4 double steps                   | next group
//   mxfp4    NR scales (bf16: powers of two)     | 4 double steps                   | next group
//
//   a step         lane 0: w[0][k .. k+3]   lane 1: w[1][k .. k+3]   ..   4 bytes a lane, W lanes a vector, 2 vectors
//   a double step  the low nibbles are the step 2 s, the high ones the step 2 s + 1
//   fifth bits     bit s of byte b of a lane: the fifth bit of byte b of step s
//
// five_bit_panels.h and table_panels.h unpack what is not int8 or int4; superblock_panels.h has the panels of superblocks.
#pragma once
#include "kernels/gemm.h"
#include "kernels/half.h"

namespace skein {
namespace {

// The form in which a product computes: weights of one form differ in how they are unpacked.
//
//   int8    scales in f32, quants of 8 bits                           int8, iq4_nl, iq4_xs
//   int4    scales and minima in f32, quants of 4 bits                int4, q4_k
//   q5_0    scales in f32, quants of 5 bits, 16 too large             q5_0
//   q5_1    the same with minima                                      q5_1
//   mxfp4   as q5_0, and scales are powers of two                     mxfp4
//   q6_k    scales in whole numbers, quants of up to 6 bits           q5_k, q6_k
constexpr DType formOf(DType weights) {
  switch (weights) {
    case DType::kQ4K: return DType::kInt4;
    case DType::kQ5K: return DType::kQ6K;
    case DType::kIq4Nl:
    case DType::kIq4Xs: return DType::kInt8;
    default: return weights;
  }
}

template <class V, DType D>
struct GroupLayout {
  static constexpr int NR = kPanelWidth<V>;
  static constexpr int kQuants = NR * (D == DType::kInt4 || D == DType::kQ5_1 ? 4 : 2);  // after the scales
  static constexpr int kFifthBits = kQuants + NR * (D == DType::kInt8 ? kGroup : kGroup / 2);
  static constexpr int kBytes = kFifthBits + (D == DType::kQ5_0 || D == DType::kQ5_1 ? 4 * NR : 0);
};

// Weights of one panel and group in the form that products take: vectors of both halves of the panel by turns, and scales
// in f32. `PackedGroups` unpacks them on the way, which is cheap for one tile. For many tiles in a row they are unpacked
// once, into memory of the first-level cache (`ExpandedGroups`), with the same values. Both walk from group to group.
template <class V, DType D>
constexpr int kParts = D == DType::kInt8 ? V::kInt8Parts : 2;  // vectors of one packed vector
template <class V, DType D>
constexpr int kSteps = D == DType::kInt8 ? kGroup / 4 : kGroup / 8;  // packed vectors of a group, for each half

template <DType Form>
constexpr bool kHasMinima = Form == DType::kInt4 || Form == DType::kQ5_1;
// Vectors of scales, then minima, of both halves.
template <class V, DType D>
constexpr int kScaleVectors = kHasMinima<formOf(D)> ? 4 : 2;
// True if the quants are 16 too large, which is in the sums from the start (quantized_rows.h).
template <DType Form>
constexpr bool kIsSixteenMore = Form == DType::kQ5_0 || Form == DType::kQ5_1 || Form == DType::kMxfp4;

// Bytes of prefetch ahead, measured for each width: wide vectors finish a group in a third of the time.
template <class V>
constexpr int kPanelAhead = V::W == 16 ? 8192 : 2048;

// Prefetches the two vectors of a step that is needed later.
template <class V>
inline void prefetchStep(const uint8_t* vectors) {
  __builtin_prefetch(vectors + kPanelAhead<V>);
  if constexpr (8 * V::W > 64) __builtin_prefetch(vectors + kPanelAhead<V> + 64);
}

// Walks from group to group. kAlikeAfter: steps until one is unpacked by the same instructions again; 0: none is.
template <class V, DType D>
class GroupWalk {
 public:
  static constexpr int kAlikeAfter = 1;
  using Layout = GroupLayout<V, D>;
  static constexpr int64_t offsetOf(int group) { return int64_t(group) * Layout::kBytes; }

  GroupWalk(const uint8_t* panel, int group) : group_(panel + offsetOf(group)) {}
  // Prefetches what lies `step` packed vectors ahead.
  void prefetch(int step) const { prefetchStep<V>(quants(step, 0)); }
  void next() { group_ += Layout::kBytes; }

 protected:
  // Vector i of the scales and minima.
  const uint8_t* halves(int i) const { return group_ + i * 2 * V::W; }
  const uint8_t* quants(int step, int half) const { return group_ + Layout::kQuants + (2 * step + half) * 4 * V::W; }
  const uint8_t* fifthBits(int half) const { return group_ + Layout::kFifthBits + half * 4 * V::W; }

 private:
  const uint8_t* group_;
};

// int8 and int4.
template <class V, DType D>
class PackedGroups : public GroupWalk<V, D> {
 public:
  using GroupWalk<V, D>::GroupWalk;
  typename V::F scales(int i) const { return V::loadHalf(this->halves(i)); }
  typename V::I weights(int step, int part, int half) const {
    const uint8_t* p = this->quants(step, half);
    if constexpr (D == DType::kInt4) return V::weights4(p, part);
    else return V::part8(V::loadI(p), part);
  }
  // A double step as it is packed.
  typename V::I nibbles(int step, int half) const
    requires(D == DType::kInt4)
  {
    return V::loadI(this->quants(step, half));
  }
};

// Form is one of groups of 32.
template <class V, DType Form>
class ExpandedGroups {
 public:
  using F = typename V::F;
  using I = typename V::I;
  static constexpr int kAlikeAfter = 1;
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

 protected:
  static constexpr int place(int step, int part, int half) {
    return (kScaleVectors<V, Form> + (step * kParts<V, Form> + part) * 2 + half) * kVector;
  }
  const uint8_t* group_;
};

}  // namespace
}  // namespace skein

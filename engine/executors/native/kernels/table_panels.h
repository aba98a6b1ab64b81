// Panels of weights whose nibbles are places in a table of 16 signed bytes: iq4_nl, mxfp4 (quantized_panels.h) and iq4_xs
// (superblock_panels.h). One shuffle of bytes looks up all of a vector.
//
// iq4_nl and iq4_xs then multiply like int8. The values of mxfp4 lie within -12 .. 12, so with 16 added they are quants of q5_0's
// form, whose products of bytes are twice as many an instruction where there is no dot product of bytes.
#pragma once
#include "kernels/superblock_panels.h"

namespace skein {
namespace {

// Part `part` of step `step` of int8's form, from the double step that holds it.
template <class V>
inline typename V::I iq4Weights(const uint8_t* nibbles, int step, int part) {
  return V::part8(V::valuesAt(kIq4Values, V::weights4(nibbles, step % 2)), part);
}

// Two steps share a vector of nibbles. Where a step has two parts, a loop over them is slower than unrolled steps.
template <class V>
constexpr int kIq4AlikeAfter = V::kInt8Parts == 1 ? 2 : 0;

template <class V>
class PackedGroups<V, DType::kIq4Nl> : public GroupWalk<V, DType::kIq4Nl> {
 public:
  static constexpr int kAlikeAfter = kIq4AlikeAfter<V>;
  using GroupWalk<V, DType::kIq4Nl>::GroupWalk;
  typename V::F scales(int i) const { return V::loadHalf(this->halves(i)); }
  typename V::I weights(int step, int part, int half) const {
    return iq4Weights<V>(this->quants(step / 2, half), step, part);
  }
  void prefetch(int step) const {
    if (step % 2 == 0) GroupWalk<V, DType::kIq4Nl>::prefetch(step / 2);
  }
};

template <class V>
class PackedGroups<V, DType::kIq4Xs> : public SuperblockGroups<V, DType::kIq4Xs> {
 public:
  static constexpr int kAlikeAfter = kIq4AlikeAfter<V>;
  using SuperblockGroups<V, DType::kIq4Xs>::SuperblockGroups;
  typename V::F scales(int i) const { return V::mul(this->ofSuperblock(i), V::floatBytes(this->ofHeader(i))); }
  typename V::I weights(int step, int part, int half) const {
    return iq4Weights<V>(this->nibbleBytes(step / 2, half), step, part);
  }
  void prefetch(int step) const {
    if (step % 2 == 0) SuperblockGroups<V, DType::kIq4Xs>::prefetch(step / 2);
  }
};

constexpr int8_t kMxfp4Quants[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

template <class V>
class PackedGroups<V, DType::kMxfp4> : public GroupWalk<V, DType::kMxfp4> {
 public:
  using GroupWalk<V, DType::kMxfp4>::GroupWalk;
  typename V::F scales(int i) const {
    return V::loadBf16(reinterpret_cast<const uint16_t*>(this->halves(i)));
  }
  typename V::I weights(int step, int part, int half) const {
    return V::valuesAt(kMxfp4Quants, V::weights4(this->quants(step, half), part));
  }
};

}  // namespace
}  // namespace skein

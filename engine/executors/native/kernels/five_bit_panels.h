// Panels of q5_0 and q5_1 (quantized_panels.h). Sums are those of q - 16, which leaves 16 bits room for a whole group: so
// q5_1's minima become those of q - 16 too.
//
//   w = scale * q + minimum = scale * (q - 16) + (minimum + 16 * scale)
#pragma once
#include "kernels/quantized_panels.h"

namespace skein {
namespace {

template <class V, DType D>
class FiveBitGroups : public GroupWalk<V, D> {
 public:
  static constexpr int kAlikeAfter = 0;
  using GroupWalk<V, D>::GroupWalk;
  typename V::F scales(int i) const {
    if (i < 2) return V::loadHalf(this->halves(i));
    return V::fma(V::set1(16.0f), V::loadHalf(this->halves(i - 2)), V::loadHalf(this->halves(i)));
  }
  typename V::I weights(int step, int part, int half) const {
    return V::weights5(this->quants(step, half), part, this->fifthBits(half), 2 * step + part);
  }
};

template <class V>
class PackedGroups<V, DType::kQ5_0> : public FiveBitGroups<V, DType::kQ5_0> {
 public:
  using FiveBitGroups<V, DType::kQ5_0>::FiveBitGroups;
};
template <class V>
class PackedGroups<V, DType::kQ5_1> : public FiveBitGroups<V, DType::kQ5_1> {
 public:
  using FiveBitGroups<V, DType::kQ5_1>::FiveBitGroups;
};

}  // namespace
}  // namespace skein

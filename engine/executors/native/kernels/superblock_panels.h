// Panels of weights in superblocks of 256 (kernels.h). A panel holds NR = 2 W outputs, superblock after superblock:
//
//   q4_k   NR d | NR dmin (f16)   8 groups: NR scales | NR minima (bytes)        | 4 double steps
//   q5_k   NR d | NR dmin (f16)   8 groups: NR scales | NR minima (bytes)        | 4 double steps | fifth bits of 8 steps
//   q6_k   NR d (f16)             8 groups: NR scales | NR scales of the 2nd 16  | 4 double steps | upper bits of 2 x 4 steps
//   iq4_xs NR d (f16) | 8 x NR scales (bytes)                   8 groups:        | 4 double steps
//
//   double steps and fifth bits    as in quantized_panels.h
//   upper bits                     two bits at 2 (s % 4) of byte b of a lane, one vector for steps 0 .. 3, one for steps 4 .. 7
//
// So q4_k takes 4.625 bits a weight, q5_k 5.625, q6_k 6.5625, iq4_xs 4.3125.
#pragma once
#include "kernels/quantized_panels.h"

namespace skein {
namespace {

constexpr int kGroupsOfSuperblock = kSuperblock / kGroup;

template <class V, DType D>
struct SuperblockLayout {
  static constexpr int NR = kPanelWidth<V>;
  // The scales of iq4_xs, NR bytes a group, lie in the header, so that vectors of nibbles lie in one cache line each.
  static constexpr bool kScalesInHeader = D == DType::kIq4Xs;
  static constexpr int kHeader = kScalesInHeader ? 10 * NR : D == DType::kQ6K ? 2 * NR : 4 * NR;
  static constexpr int kNibbles = kScalesInHeader ? 0 : 2 * NR;  // of a group: after its scales
  static constexpr int kUpper = kNibbles + 16 * NR;              // of a group: fifth or upper bits
  static constexpr int kGroupBytes = kUpper + (D == DType::kQ5K ? 4 * NR : D == DType::kQ6K ? 8 * NR : 0);
  static constexpr int kBytes = kHeader + kGroupsOfSuperblock * kGroupBytes;
};

// Walks from group to group and steps over the headers of superblocks.
template <class V, DType D>
class SuperblockGroups {
 public:
  static constexpr int kAlikeAfter = 1;
  using F = typename V::F;
  using Layout = SuperblockLayout<V, D>;
  // Bytes before a group; at the beginning of a superblock, before its header.
  static constexpr int64_t offsetOf(int group) {
    const int inside = group % kGroupsOfSuperblock;
    const int64_t before = int64_t(group / kGroupsOfSuperblock) * Layout::kBytes;
    return inside == 0 ? before : before + Layout::kHeader + inside * Layout::kGroupBytes;
  }

  SuperblockGroups(const uint8_t* panel, int group)
      : header_(panel + int64_t(group / kGroupsOfSuperblock) * Layout::kBytes),
        group_(header_ + Layout::kHeader + group % kGroupsOfSuperblock * Layout::kGroupBytes),
        inside_(group % kGroupsOfSuperblock) {}
  void prefetch(int step) const { prefetchStep<V>(group_ + Layout::kNibbles + step * 8 * V::W); }
  void next() {
    group_ += Layout::kGroupBytes;
    if (++inside_ < kGroupsOfSuperblock) return;
    inside_ = 0;
    header_ = group_;
    group_ += Layout::kHeader;
  }

 protected:
  // Number i of the header: d of both halves, then dmin of both.
  F ofSuperblock(int i) const { return V::loadHalf(header_ + i * 2 * V::W); }
  // Bytes of this group in the header, of one half.
  const uint8_t* ofHeader(int half) const { return header_ + 2 * Layout::NR + (2 * inside_ + half) * V::W; }
  const uint8_t* bytes(int i) const { return group_ + i * V::W; }
  const uint8_t* nibbleBytes(int step, int half) const { return group_ + Layout::kNibbles + (2 * step + half) * 4 * V::W; }
  const uint8_t* upper(int i) const { return group_ + Layout::kUpper + i * 4 * V::W; }

 private:
  const uint8_t* header_;
  const uint8_t* group_;
  int inside_;
};

// The form of int4: the products d * scale and dmin * minimum are exact in f32.
template <class V>
class PackedGroups<V, DType::kQ4K> : public SuperblockGroups<V, DType::kQ4K> {
 public:
  using SuperblockGroups<V, DType::kQ4K>::SuperblockGroups;
  typename V::F scales(int i) const {
    const typename V::F whole = V::floatBytes(this->bytes(i));
    return i < 2 ? V::mul(this->ofSuperblock(i), whole)
                 : V::sub(V::set1(0.0f), V::mul(this->ofSuperblock(i), whole));
  }
  typename V::I weights(int step, int part, int half) const { return V::weights4(this->nibbleBytes(step, half), part); }
  // A double step as it is packed.
  typename V::I nibbles(int step, int half) const { return V::loadI(this->nibbleBytes(step, half)); }
};

// Scales of 16 elements are vectors that V::weigh() multiplies sums with; the quants of q6_k are 32 too large, which is in
// the sums from the start (quantized_rows.h).
template <class V>
class PackedGroups<V, DType::kQ5K> : public SuperblockGroups<V, DType::kQ5K> {
 public:
  using SuperblockGroups<V, DType::kQ5K>::SuperblockGroups;
  typename V::Scale scales(int, int half) const { return V::byteScales(this->bytes(half)); }
  typename V::F ofBlock(int half) const { return this->ofSuperblock(half); }
  typename V::F minima(int half) const {
    return V::sub(V::set1(0.0f), V::mul(this->ofSuperblock(2 + half), V::floatBytes(this->bytes(2 + half))));
  }
  typename V::I weights(int step, int part, int half) const {
    return V::weights5(this->nibbleBytes(step, half), part, this->upper(half), 2 * step + part);
  }
};

template <class V>
class PackedGroups<V, DType::kQ6K> : public SuperblockGroups<V, DType::kQ6K> {
 public:
  using SuperblockGroups<V, DType::kQ6K>::SuperblockGroups;
  typename V::Scale scales(int sixteen, int half) const { return V::byteScales(this->bytes(2 * sixteen + half)); }
  typename V::F ofBlock(int half) const { return this->ofSuperblock(half); }
  // Added all the same: a sum of -0 would stay one in this form alone.
  typename V::F minima(int) const { return V::set1(0.0f); }
  typename V::I weights(int step, int part, int half) const {
    return V::weights6(this->nibbleBytes(step, half), part, this->upper(step / 2 * 2 + half), (2 * step + part) % 4);
  }
};

// Scales of both halves for both sixteens | d of both halves | minima of both halves | 8 steps of both halves.
template <class V>
class ExpandedGroups<V, DType::kQ6K> {
 public:
  static constexpr int kVector = 4 * V::W;
  static constexpr int kBytes = (8 + 2 * kGroup / 4) * kVector;

  ExpandedGroups(const uint8_t* part, int group) : group_(part + int64_t(group) * kBytes) {}
  typename V::Scale scales(int sixteen, int half) const { return V::loadScale(group_ + (2 * sixteen + half) * kVector); }
  typename V::F ofBlock(int half) const { return number(4 + half); }
  typename V::F minima(int half) const { return number(6 + half); }
  typename V::I weights(int step, int part, int half) const { return V::loadI(group_ + place(step, part, half)); }
  void prefetch(int) const {}
  void next() { group_ += kBytes; }

  template <class Packed>
  static void expand(const Packed& packed, uint8_t* to) {
    for (int half = 0; half < 2; half++) {
      for (int sixteen = 0; sixteen < 2; sixteen++)
        V::storeScale(to + (2 * sixteen + half) * kVector, packed.scales(sixteen, half));
      V::store(reinterpret_cast<float*>(to + (4 + half) * kVector), packed.ofBlock(half));
      V::store(reinterpret_cast<float*>(to + (6 + half) * kVector), packed.minima(half));
      SKEIN_UNROLL(8)
      for (int step = 0; step < kGroup / 8; step++) {
        SKEIN_UNROLL(2)
        for (int part = 0; part < 2; part++) V::storeI(to + place(step, part, half), packed.weights(step, part, half));
      }
    }
  }

 protected:
  static constexpr int place(int step, int part, int half) { return (8 + (2 * step + part) * 2 + half) * kVector; }
  typename V::F number(int i) const { return V::load(reinterpret_cast<const float*>(group_ + i * kVector)); }
  const uint8_t* group_;
};

// Bytes of a panel of k weights for each output.
template <class V, DType D>
constexpr int64_t panelBytesOf(int k) {
  return PackedGroups<V, D>::offsetOf((k + kGroup - 1) / kGroup);
}

}  // namespace
}  // namespace skein

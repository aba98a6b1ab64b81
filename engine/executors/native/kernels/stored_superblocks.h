// stored_groups.h for superblocks of 256 (kernels.h, stored_superblock.h): of W rows the numbers of a superblock, and its quants.
#pragma once
#include "kernels/stored_groups.h"
#include "kernels/superblock_panels.h"
#include "kernels/table_panels.h"

namespace skein {
namespace {

// 8 words of each row: 32 bytes from `offset` on.
template <class V>
[[gnu::always_inline]] inline void eightWordsOfRows(const uint8_t* const* rows, int64_t offset,
                                                    typename V::I (&words)[8]) {
  typename V::I four[4];
  SKEIN_UNROLL(2)
  for (int i = 0; i < 2; i++) {
    V::wordsOfRows(rows, offset + 16 * i, four);
    SKEIN_UNROLL(4)
    for (int w = 0; w < 4; w++) words[4 * i + w] = four[w];
  }
}

// d, dmin and the scales of Q4_K and Q5_K: see stored_superblock.h.
template <class V>
struct KScales {
  using I = typename V::I;
  typename V::F d, lessDmin;
  I scales[2], minima[2];  // byte b of word i: of group 4 i + b

  template <class Rows>
  [[gnu::always_inline]] KScales(const Rows& rows, int64_t offset) {
    I head[4];
    V::wordsOfRows(rows, offset, head);
    using Lanes = StoredLanes<V>;
    d = Lanes::half(head[0], 0);
    lessDmin = Lanes::negative(Lanes::half(head[0], 1));
    const I low = Lanes::bytes(15), six = Lanes::bytes(63), upper = Lanes::bytes(48);
    scales[0] = V::both(head[1], six);
    minima[0] = V::both(head[2], six);
    scales[1] = V::either(V::both(head[3], low), V::both(V::downBits(head[1], 2), upper));
    minima[1] = V::either(V::both(V::downBits(head[3], 4), low), V::both(V::downBits(head[2], 2), upper));
  }
  I scaleOf(int g) const { return StoredLanes<V>::byteOf(scales[g / 4], g % 4); }
  // -0 for 0: added to a sum, which never is -0, both are the same.
  typename V::F minimaOf(int g) const {
    return V::mul(lessDmin, V::toFloat(StoredLanes<V>::byteOf(minima[g / 4], g % 4)));
  }
};

// The lower two bits of each byte from bit `from` on, as bits 4 and 5.
template <class V>
inline typename V::I upperTwo(typename V::I words, int from) {
  const auto bits = from < 4 ? V::upBits(words, 4 - from) : V::downBits(words, from - 4);
  return V::both(bits, StoredLanes<V>::bytes(48));
}

// d and the scales of the sixteens: byte b of word i is that of sixteen 4 i + b.
template <class V, StoredType T>
struct SixteenScales;

template <class V>
struct SixteenScales<V, StoredType::kQ6K> {
  typename V::I of[4];
  typename V::F d;
  template <class Rows>
  [[gnu::always_inline]] SixteenScales(const Rows& rows, int64_t offset) {
    typename V::I last[4];
    V::wordsOfRows(rows, offset + 192, of);
    V::wordsOfRows(rows, offset + 194, last);
    d = StoredLanes<V>::half(last[3], 1);
  }
};

// Four low bits in bytes 0 .. 7, two high ones in bytes 8 .. 11, 32 too large.
template <class V>
struct SixteenScales<V, StoredType::kQ3K> {
  using I = typename V::I;
  I of[4];
  typename V::F d;
  SixteenScales(const uint8_t* const* rows, int64_t offset) {
    using Lanes = StoredLanes<V>;
    I tail[4];
    V::wordsOfRows(rows, offset + 94, tail);
    d = Lanes::half(tail[3], 1);
    const auto joined = [&](int i) { return V::either(V::downBits(tail[i], 16), V::upBits(tail[i + 1], 16)); };
    const I low[2] = {joined(0), joined(1)}, high = joined(2);
    SKEIN_UNROLL(4)
    for (int i = 0; i < 4; i++) {
      // Less 32: five bits stay, and where the sixth is not set the upper three are, as in a negative byte.
      const I six = V::either(Lanes::nibbles(low[i % 2], i / 2), upperTwo<V>(high, 2 * i));
      const I isSet = V::both(V::downBits(six, 5), Lanes::bytes(1));
      const I isNegative = V::plus(Lanes::bytes(1), V::times(isSet, V::set1I(-1)));
      of[i] = V::either(V::both(six, Lanes::bytes(31)), V::times(isNegative, V::set1I(224)));
    }
  }
};

template <class V>
struct Iq4XsScales {
  typename V::I head[4];
  typename V::F d;
  Iq4XsScales(const uint8_t* const* rows, int64_t offset) {
    V::wordsOfRows(rows, offset, head);
    d = StoredLanes<V>::half(head[0], 0);
  }
  typename V::F scaleOf(int g) const {
    const auto low = V::both(V::downBits(head[1], 4 * g), V::set1I(15));
    const auto upper = V::upBits(V::both(V::downBits(head[0], 16 + 2 * g), V::set1I(3)), 4);
    return V::mul(d, V::toFloat(V::plus(V::either(low, upper), V::set1I(-32))));
  }
};

// The quants of kGroups groups of a superblock, from group `first` on, which share words: four(q, e) has elements 4 e .. 4 e + 3 of the
// group first + q, as its form takes them.
template <class V, StoredType T>
struct SuperblockQuants;

template <class V>
struct SuperblockQuants<V, StoredType::kQ4K> {
  static constexpr int kGroups = 2;
  typename V::I words[8];
  [[gnu::always_inline]] SuperblockQuants(const uint8_t* const* rows, int64_t offset, int first) {
    eightWordsOfRows<V>(rows, offset + 16 + 16 * first, words);
  }
  typename V::I four(int q, int e) const { return StoredLanes<V>::nibbles(words[e], q); }
};

template <class V>
struct SuperblockQuants<V, StoredType::kQ5K> {
  static constexpr int kGroups = 2;
  typename V::I words[8], upper[8];
  const int first;
  [[gnu::always_inline]] SuperblockQuants(const uint8_t* const* rows, int64_t offset, int group) : first(group) {
    eightWordsOfRows<V>(rows, offset + 48 + 16 * group, words);
    eightWordsOfRows<V>(rows, offset + 16, upper);
  }
  typename V::I four(int q, int e) const {
    const auto fifth = V::upBits(V::both(V::downBits(upper[e], first + q), StoredLanes<V>::bytes(1)), 4);
    return V::either(StoredLanes<V>::nibbles(words[e], q), fifth);
  }
};

template <class V>
struct SuperblockQuants<V, StoredType::kQ6K> {
  static constexpr int kGroups = 4;
  typename V::I low[2][8], upper[8];
  [[gnu::always_inline]] SuperblockQuants(const uint8_t* const* rows, int64_t offset, int first) {
    eightWordsOfRows<V>(rows, offset + 16 * first, low[0]);
    eightWordsOfRows<V>(rows, offset + 16 * first + 32, low[1]);
    eightWordsOfRows<V>(rows, offset + 128 + 8 * first, upper);
  }
  typename V::I four(int q, int e) const {
    return V::either(StoredLanes<V>::nibbles(low[q % 2][e], q / 2), upperTwo<V>(upper[e], 2 * q));
  }
};

//   32 bytes of third bits | 64 bytes of two bits | 12 bytes of scales | d
//
// Quants are 4 too large where the third bit is set; as q6_k's they are 32 too large.
template <class V>
struct SuperblockQuants<V, StoredType::kQ3K> {
  static constexpr int kGroups = 4;
  typename V::I third[8], two[8];
  const int first;
  [[gnu::always_inline]] SuperblockQuants(const uint8_t* const* rows, int64_t offset, int group) : first(group) {
    eightWordsOfRows<V>(rows, offset, third);
    eightWordsOfRows<V>(rows, offset + 32 + 8 * group, two);
  }
  typename V::I four(int q, int e) const {
    using Lanes = StoredLanes<V>;
    const auto isSet = V::both(V::downBits(third[e], first + q), Lanes::bytes(1));
    const auto low = V::both(V::downBits(two[e], 2 * q), Lanes::bytes(3));
    return V::plus(low, V::plus(Lanes::bytes(28), V::upBits(isSet, 2)));
  }
};

template <class V>
struct SuperblockQuants<V, StoredType::kIq4Xs> {
  static constexpr int kGroups = 1;
  typename V::I words[4];
  [[gnu::always_inline]] SuperblockQuants(const uint8_t* const* rows, int64_t offset, int first) {
    V::wordsOfRows(rows, offset + 8 + 16 * first, words);
  }
  typename V::I four(int, int e) const { return V::valuesAt(kIq4Values, StoredLanes<V>::nibbles(words[e % 4], e / 4)); }
};

// The numbers of a superblock of each half, for its eight groups.
template <class V, StoredType T>
struct SuperblockNumbers {
  static constexpr bool kIsWhole = T == StoredType::kQ5K || T == StoredType::kQ6K || T == StoredType::kQ3K;
  using Scale = typename V::Scale;
  typename V::F scale[kIsWhole ? 1 : 8], minimum[8], ofBlock;
  Scale whole[kIsWhole ? 16 : 1];

  SuperblockNumbers(const uint8_t* const* rows, int64_t offset) {
    using Lanes = StoredLanes<V>;
    if constexpr (T == StoredType::kQ4K || T == StoredType::kQ5K) {
      const KScales<V> scales(rows, offset);
      ofBlock = scales.d;
      SKEIN_UNROLL(8)
      for (int g = 0; g < 8; g++) {
        minimum[g] = scales.minimaOf(g);
        if constexpr (kIsWhole) whole[2 * g] = whole[2 * g + 1] = V::scalesOf(scales.scaleOf(g));
        else scale[g] = V::mul(scales.d, V::toFloat(scales.scaleOf(g)));
      }
    } else if constexpr (kIsWhole) {
      const SixteenScales<V, T> scales(rows, offset);
      ofBlock = scales.d;
      SKEIN_UNROLL(16)
      for (int i = 0; i < 16; i++) whole[i] = V::scalesOf(Lanes::signedByteOf(scales.of[i / 4], i % 4));
      SKEIN_UNROLL(8)
      for (int g = 0; g < 8; g++) minimum[g] = V::set1(0.0f);
    } else {
      const Iq4XsScales<V> scales(rows, offset);
      SKEIN_UNROLL(8)
      for (int g = 0; g < 8; g++) scale[g] = scales.scaleOf(g), minimum[g] = V::set1(0.0f);
    }
  }
};

template <class V, StoredType T>
void expandStoredSuperblocks(const uint8_t* const* rows, int group, int count, uint8_t* to) {
  using Writer = GroupWriter<V, formOf(formatOf(T).dtype)>;
  using Numbers = SuperblockNumbers<V, T>;
  using Quants = SuperblockQuants<V, T>;
  for (int first = group; first < group + count; first += kGroupsOfSuperblock) {
    const int64_t offset = int64_t(first / kGroupsOfSuperblock) * formatOf(T).blockBytes;
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const Numbers numbers(own, offset);
      for (int g = 0; g < kGroupsOfSuperblock; g += Quants::kGroups) {
        const Quants quants(own, offset, g);
        SKEIN_UNROLL(4)
        for (int q = 0; q < Quants::kGroups; q++) {
          const Writer writer(to + (first - group + g + q) * Writer::kBytes, half);
          if constexpr (Numbers::kIsWhole) {
            for (int sixteen = 0; sixteen < 2; sixteen++)
              writer.wholeScale(sixteen, numbers.whole[2 * (g + q) + sixteen]);
            writer.ofBlock(numbers.ofBlock);
            writer.minimaOfBlock(numbers.minimum[g + q]);
          } else {
            writer.scales(numbers.scale[g + q]);
            if constexpr (kHasMinima<formOf(formatOf(T).dtype)>) writer.minima(numbers.minimum[g + q]);
          }
          SKEIN_UNROLL(8)
          for (int e = 0; e < 8; e++) writer.quants(e, quants.four(q, e));
        }
      }
    }
  }
}

}  // namespace
}  // namespace skein

// Groups of W rows of quantised blocks, as a GGUF stores them, unpacked into the form in which products of many rows take the groups of
// a panel (ExpandedGroups): with the same values as if they had been packed first.
//
//   row 0    | scale | 16 bytes | scale | ..         words of W rows        one word of 4 quants of each row
//   row 1    | scale | 16 bytes | scale | ..    ->   lane 0: row 0     ->   4 e .. 4 e + 3
//   ..                                               lane 1: row 1 ..
#pragma once
#include "kernels/quantized.h"
#include "kernels/stored_superblock.h"

namespace skein {
namespace {

// Groups that are unpacked at a time for many rows: a superblock, whose bytes the first-level cache holds together with
// what is read next.
constexpr int kStoredGroups = kSuperblock / kGroup;

// Bytes of a row that are called for before they are needed, and those that are called for at a time.
constexpr int64_t kStoredAhead = 1024, kStoredPiece = 512;

// Calls for the rows of a panel, and past their ends for those of the panel that follows, into the second-level cache:
//
//   row 0    | 1 | 3 | ..      pieces of the rows by turns, kStoredAhead bytes of each row before they are needed
//   row 1    | 2 | 4 | ..
//
// A panel takes so few bytes of a row in a step that no processor foresees the order of their lines.
template <class V>
class StoredCalls {
 public:
  // The first kStoredAhead bytes of each row were called for with the panel before.
  StoredCalls(const uint8_t* const* rows, const uint8_t* const* next, int64_t rowBytes)
      : rows_(rows), next_(next), rowBytes_(rowBytes), at_(kStoredAhead) {
    begin();
  }
  // Calls for what follows when the first `bytes` of each row have been multiplied.
  [[gnu::always_inline]] void upTo(int64_t bytes) {
    while (called_ < bytes * NR) {
      __builtin_prefetch(place_, 0, 2);
      __builtin_prefetch(place_ + 64, 0, 2);
      place_ += 128;
      called_ += 128;
      if (place_ >= end_) [[unlikely]]
        next();
    }
  }

 private:
  static constexpr int64_t NR = kPanelWidth<V>;
  const uint8_t* const* rows_;
  const uint8_t* const* next_;
  const int64_t rowBytes_;
  const uint8_t *place_, *end_;  // of the piece
  int64_t called_ = 0, at_;
  int row_ = 0;

  void begin() {
    if (at_ >= rowBytes_) rows_ = next_, at_ = 0;
    place_ = rows_[row_] + at_;
    end_ = rows_[row_] + (at_ + kStoredPiece < rowBytes_ ? at_ + kStoredPiece : rowBytes_);
  }
  void next() {
    called_ -= place_ - end_;
    if (++row_ == NR) row_ = 0, at_ += kStoredPiece;
    begin();
  }
};

// Groups of wide vectors that a call is made for at a time: a call for each would cost a seventh of Q4_0's products with eight rows.
template <class V>
constexpr int kGroupsOfCall = V::W == 16 ? 4 : 1;

// Calls for what the groups from `group` on need next, where it is the first of those of a call.
template <class V>
[[gnu::always_inline]] inline void callForGroups(int group, int groups, int blockBytes, StoredCalls<V>& calls,
                                                 Ahead& ahead) {
  if constexpr (kGroupsOfCall<V> == 1) {
    ahead.some();
    return calls.upTo(int64_t(group) * blockBytes + blockBytes);
  }
  if (group % kGroupsOfCall<V> != 0) return;
  const int end = group + kGroupsOfCall<V> < groups ? group + kGroupsOfCall<V> : groups;
  for (int g = group; g < end; g++) ahead.some();
  calls.upTo(int64_t(end) * blockBytes);
}

template <class V>
struct StoredLanes {
  using F = typename V::F;
  using I = typename V::I;
  static I bytes(int32_t each) { return V::set1I(each * 0x01010101); }
  static I nibbles(I words, int high) { return V::both(high ? V::downBits(words, 4) : words, bytes(15)); }
  // Byte b of each word, without and with a sign.
  static I byteOf(I words, int b) {
    const I down = b == 0 ? words : V::downBits(words, 8 * b);
    return b == 3 ? down : V::both(down, V::set1I(255));
  }
  static I signedByteOf(I words, int b) { return V::downSigned(V::upBits(words, 24 - 8 * b), 24); }
  static F half(I words, int upper) {
    return V::halvesOf(upper ? V::downBits(words, 16) : V::both(words, V::set1I(0xffff)));
  }
  // Bits 4 e .. 4 e + 3 of each word, one in bit 4 of each byte.
  static I fifthBits(I words, int e) {
    const I four = V::both(V::downBits(words, 4 * e), V::set1I(15));
    return V::both(V::times(four, V::set1I(0x02040810)), bytes(16));
  }
  static F negative(F a) { return V::sub(V::set1(0.0f), a); }
};

// Writes one group of W rows, half `half` of a panel, in the form of the weights.
template <class V, DType Form>
struct GroupWriter : ExpandedGroups<V, Form> {
  using Expanded = ExpandedGroups<V, Form>;
  using F = typename V::F;
  using I = typename V::I;
  uint8_t* const to;
  const int half;

  GroupWriter(uint8_t* group, int ofPanel) : Expanded(group, 0), to(group), half(ofPanel) {}
  void scales(F scale) const { number(half, scale); }
  void minima(F minimum) const { number(2 + half, minimum); }
  // Elements 4 e .. 4 e + 3 of each row.
  void quants(int e, I four) const {
    if constexpr (Form == DType::kInt8) {
      SKEIN_UNROLL(2)
      for (int part = 0; part < V::kInt8Parts; part++)
        V::storeI(to + Expanded::place(e, part, half), V::part8(four, part));
    } else {
      V::storeI(to + Expanded::place(e / 2, e % 2, half), four);
    }
  }
  // Of q6_k's form.
  void wholeScale(int sixteen, typename V::Scale scale) const {
    V::storeScale(to + (2 * sixteen + half) * Expanded::kVector, scale);
  }
  void ofBlock(F d) const { number(4 + half, d); }
  void minimaOfBlock(F minimum) const { number(6 + half, minimum); }

 private:
  void number(int i, F value) const { V::store(reinterpret_cast<float*>(to + i * Expanded::kVector), value); }
};

// What blocks of 32 have before their quants: f16 scale (MXFP4: an exponent), f16 minimum, fifth bits.
template <StoredType T>
struct StoredHead {
  static constexpr bool kHasMinimum = T == StoredType::kQ4_1 || T == StoredType::kQ5_1;
  static constexpr bool kHasFifthBits = T == StoredType::kQ5_0 || T == StoredType::kQ5_1;
  static constexpr int kFifthBits = T == StoredType::kMxfp4 ? 1 : kHasMinimum ? 4 : 2;
  static constexpr int kQuants = kFifthBits + (kHasFifthBits ? 4 : 0);
};

// -8 d as it is packed: in f16, which has no number from 2^16 on, nor has 8 d one between 65504 and this. In f32 there is none from
// 2^128 on.
template <class V>
inline typename V::F eightTimesLess(typename V::F d) {
  return V::mul(V::mul(d, V::set1(-0x1p115f)), V::set1(0x1p-112f));
}

// mxfp4Scale() of exponents in lanes.
template <class V>
inline typename V::F mxfp4Scales(typename V::I exponents) {
  const auto subnormal = V::floatsOf(V::upBits(V::plus(exponents, V::set1I(1)), 21));
  const auto normal = V::floatsOf(V::upBits(V::plus(exponents, V::set1I(-1)), 23));
  return V::selectLess(V::toFloat(exponents), V::set1(2.0f), subnormal, normal);
}

// What the form of the type takes of the heads of W rows; a minimum of 0 where the type has none.
template <class V, StoredType T>
struct StoredNumbers {
  typename V::F scale, minimum = V::set1(0.0f);
  typename V::I fifthBits = V::set1I(0);

  template <class Rows>
  [[gnu::always_inline]] StoredNumbers(const Rows& rows, int64_t block) {
    using Lanes = StoredLanes<V>;
    using Head = StoredHead<T>;
    if constexpr (Head::kHasMinimum) {
      const auto both = V::wordOfRows(rows, block);
      scale = Lanes::half(both, 0);
      minimum = Lanes::half(both, 1);
    } else if constexpr (T == StoredType::kMxfp4) {
      scale = mxfp4Scales<V>(V::both(V::wordOfRows(rows, block), V::set1I(255)));
    } else {
      scale = V::halfOfRows(rows, block);
    }
    if constexpr (T == StoredType::kQ4_0) minimum = eightTimesLess<V>(scale);
    if constexpr (T == StoredType::kQ5_1) minimum = V::fma(V::set1(16.0f), scale, minimum);
    if constexpr (Head::kHasFifthBits) fifthBits = V::wordOfRows(rows, block + Head::kFifthBits);
  }
};

// Elements 4 e .. 4 e + 3, of word e % 4 of the quants, as the form of the type takes them. bits: of types that have them, all fifth bits.
template <class V, StoredType T>
[[gnu::always_inline]] inline typename V::I storedQuants(typename V::I word, typename V::I bits, int e) {
  const auto nibbles = StoredLanes<V>::nibbles(word, e / 4);
  if constexpr (StoredHead<T>::kHasFifthBits) return V::either(nibbles, StoredLanes<V>::fifthBits(bits, e));
  else if constexpr (T == StoredType::kIq4Nl) return V::valuesAt(kIq4Values, nibbles);
  else if constexpr (T == StoredType::kMxfp4) return V::valuesAt(kMxfp4Quants, nibbles);
  else return nibbles;
}

// The words of quants of W rows: 16 bytes, or 32 of Q8_0.
template <class V, StoredType T>
struct StoredQuants {
  typename V::I low[4], high[4];

  [[gnu::always_inline]] StoredQuants(const uint8_t* const* rows, int64_t block) {
    V::wordsOfRows(rows, block + StoredHead<T>::kQuants, low);
    if constexpr (T == StoredType::kQ8_0) V::wordsOfRows(rows, block + StoredHead<T>::kQuants + 16, high);
  }
  [[gnu::always_inline]] typename V::I four(int e, typename V::I fifthBits) const {
    if constexpr (T == StoredType::kQ8_0) return e < 4 ? low[e] : high[e - 4];
    else return storedQuants<V, T>(low[e % 4], fifthBits, e);
  }
};

template <class V, StoredType T>
void expandStoredGroups(const uint8_t* const* rows, int group, int count, uint8_t* to) {
  using Writer = GroupWriter<V, formOf(formatOf(T).dtype)>;
  for (int g = 0; g < count; g++, to += Writer::kBytes) {
    const int64_t block = int64_t(group + g) * formatOf(T).blockBytes;
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const Writer writer(to, half);
      const StoredNumbers<V, T> numbers(own, block);
      writer.scales(numbers.scale);
      if constexpr (kHasMinima<formOf(formatOf(T).dtype)>) writer.minima(numbers.minimum);
      const StoredQuants<V, T> quants(own, block);
      SKEIN_UNROLL(8)
      for (int e = 0; e < 8; e++) writer.quants(e, quants.four(e, numbers.fifthBits));
    }
  }
}

}  // namespace
}  // namespace skein

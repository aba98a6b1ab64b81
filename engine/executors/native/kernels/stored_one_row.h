// One row of activations times the rows of a panel as a GGUF has them, for 8 lanes: products are summed up along the rows, and what is
// turned into lanes is an eighth as many sums, not the quants (stored_rows.h). Each 16 bytes of two rows share a vector.
//
//   rows 0, 4    | 16 quants | 16 quants |   x activations ->  | 8 words | 8 words |
//   ..                                                                             ->   lane j: two words of row j
//   rows 3, 7    | 16 quants | 16 quants |                     | 8 words | 8 words |
//
// Words of 16 bits are exact as in tiles (quantized.h), and so are sums of them in any order: the bits are those of packed groups.
#pragma once
#include "kernels/stored_superblocks.h"

namespace skein {
namespace {

// W rows that lie at equal distances. Their addresses are sums of four registers; the compiler would keep one for each row.
struct EvenRows {
  const uint8_t *first, *fifth;
  int64_t stride, thrice;

  EvenRows(const uint8_t* rows, int64_t distance)
      : first(rows), fifth(rows + 4 * distance), stride(distance), thrice(3 * distance) {
    asm("" : "+r"(fifth), "+r"(thrice));
  }
  [[gnu::always_inline]] const uint8_t* operator[](int j) const {
    const uint8_t* base = j < 4 ? first : fifth;
    return base + (j % 4 == 3 ? thrice : j % 4 * stride);
  }
  EvenRows below() const { return {fifth + 4 * stride, stride}; }
  // Goes to what follows in the rows.
  [[gnu::always_inline]] void next(int64_t bytes) {
    first += bytes;
    fifth += bytes;
    asm("" : "+r"(first), "+r"(fifth));
  }
};

template <class V>
using OneRowFn = void (*)(const uint8_t* x, EvenRows rows, int groups, float* tile, StoredCalls<V> calls, Ahead* ahead);

// The sum of an output over a group of int4's form, added to what there is of the groups before.
template <class V>
[[gnu::always_inline]] inline typename V::F addInt4(typename V::I sum, const uint8_t* block, typename V::F scale,
                                                    typename V::F minimum, typename V::F before) {
  const auto total = V::set1(loadFloat(block + 4));
  return V::fma(V::scaled4(sum, V::multiplesOf(loadWord(block))), scale, V::fma(minimum, total, before));
}

// Q4_0 and Q4_1.
template <class V, StoredType T>
void oneOfGroups(const uint8_t* x, EvenRows rows, int groups, float* tile, StoredCalls<V> calls, Ahead* ahead) {
  using I = typename V::I;
  constexpr int kBytes = formatOf(T).blockBytes, kHead = kBlockHead<DType::kInt4>;
  EvenRows halves[2] = {rows, rows.below()};
  typename V::F sums[2] = {V::set1(0.0f), V::set1(0.0f)};
  for (int g = 0; g < groups; g++, x += kActivationBytes<V, DType::kInt4>) {
    callForGroups<V>(g, groups, kBytes, calls, *ahead);
    const I low = V::bytesTwice(x + kHead), high = V::bytesTwice(x + kHead + 16);
    SKEIN_UNROLL(2)
    for (int half = 0; half < 2; half++) {
      I words[4];
      SKEIN_UNROLL(4)
      for (int j = 0; j < 4; j++) {
        const I quants = V::bytesOfTwo(halves[half], j, StoredHead<T>::kQuants);
        words[j] = V::addWords(V::pairsOfProducts(StoredLanes<V>::nibbles(quants, 0), low),
                               V::pairsOfProducts(StoredLanes<V>::nibbles(quants, 1), high));
      }
      const StoredNumbers<V, T> numbers(halves[half], 0);
      sums[half] = addInt4<V>(V::sumsOfRows(words), x, numbers.scale, numbers.minimum, sums[half]);
      halves[half].next(kBytes);
    }
  }
  for (int half = 0; half < 2; half++) V::store(tile + half * V::W, sums[half]);
}

// Two groups of Q4_K, whose bytes are at the rows.
template <class V>
[[gnu::always_inline]] inline void pairOfQ4K(const uint8_t* x, const EvenRows& rows, typename V::I (&sums)[2]) {
  using I = typename V::I;
  constexpr int kHead = kBlockHead<DType::kQ4K>, kBlock = kActivationBytes<V, DType::kQ4K>;
  I words[2][4];
  SKEIN_UNROLL(4)
  for (int j = 0; j < 4; j++) {
    const I first = V::bytesOfTwo(rows, j, 0), second = V::bytesOfTwo(rows, j, 16);
    SKEIN_UNROLL(2)
    for (int q = 0; q < 2; q++) {
      const uint8_t* quants = x + q * kBlock + kHead;
      words[q][j] = V::addWords(V::pairsOfProducts(StoredLanes<V>::nibbles(first, q), V::bytesTwice(quants)),
                                V::pairsOfProducts(StoredLanes<V>::nibbles(second, q), V::bytesTwice(quants + 16)));
    }
  }
  for (int q = 0; q < 2; q++) sums[q] = V::sumsOfRows(words[q]);
}

// callFor(groups): the next `groups` groups of the superblock are about to be multiplied.
template <class V, class Calls>
[[gnu::always_inline]] inline typename V::F superblockOfQ4K(const uint8_t* x, EvenRows rows, typename V::F sum,
                                                            Calls callFor) {
  const KScales<V> scales(rows, 0);
  rows.next(16);
  SKEIN_UNROLL(4)
  for (int g = 0; g < kGroupsOfSuperblock; g += 2, x += 2 * kActivationBytes<V, DType::kQ4K>, rows.next(32)) {
    typename V::I sums[2];
    callFor(g + 2);
    pairOfQ4K<V>(x, rows, sums);
    SKEIN_UNROLL(2)
    for (int q = 0; q < 2; q++) {
      const auto scale = V::mul(scales.d, V::toFloat(scales.scaleOf(g + q)));
      sum = addInt4<V>(sums[q], x + q * kActivationBytes<V, DType::kQ4K>, scale, scales.minimaOf(g + q), sum);
    }
  }
  return sum;
}

// Of two groups of Q6_K that share bytes of nibbles, the first in the lower ones: the sums of both 16, times their scales. upper: where
// in a byte the upper bits of the first one begin; those of the second are four higher.
template <class V>
[[gnu::always_inline]] inline void pairOfQ6K(const uint8_t* x, const EvenRows& nibbles, const EvenRows& bits, int upper,
                                             const typename V::Scale (&scales)[2][2], typename V::Scale (&weighed)[2]) {
  using I = typename V::I;
  constexpr int kHead = kBlockHead<DType::kQ6K>, kBlock = 2 * kActivationBytes<V, DType::kQ6K>;
  SKEIN_UNROLL(2)
  for (int sixteen = 0; sixteen < 2; sixteen++) {
    I words[2][4];
    SKEIN_UNROLL(4)
    for (int j = 0; j < 4; j++) {
      const I low = V::bytesOfTwo(nibbles, j, 16 * sixteen), two = V::bytesOfTwo(bits, j, 16 * sixteen);
      SKEIN_UNROLL(2)
      for (int q = 0; q < 2; q++) {
        const I quants = V::either(StoredLanes<V>::nibbles(low, q), upperTwo<V>(two, upper + 4 * q));
        words[q][j] = V::pairsOfProducts(quants, V::bytesTwice(x + q * kBlock + kHead + 16 * sixteen));
      }
    }
    SKEIN_UNROLL(2)
    for (int q = 0; q < 2; q++) {
      const I start = V::startOf(loadWord(x + q * kBlock + 8 + 4 * sixteen));
      const I sum = V::addWords(V::sumsOfRows(words[q]), start);
      weighed[q] = sixteen == 0 ? V::weigh(sum, scales[q][0]) : V::addWeighed(weighed[q], sum, scales[q][1]);
    }
  }
}

template <class V, class Calls>
[[gnu::always_inline]] inline typename V::F superblockOfQ6K(const uint8_t* x, EvenRows rows, typename V::F sum,
                                                            Calls callFor) {
  constexpr int kBlock = kActivationBytes<V, DType::kQ6K>;
  const SixteenScales<V, StoredType::kQ6K> scales(rows, 0);
  EvenRows bits = rows;
  bits.next(128);
  SKEIN_UNROLL(2)
  for (int part = 0; part < 2; part++, x += 4 * kBlock, bits.next(32)) {
    typename V::Scale weighed[2][2];  // of groups q and q + 2
    SKEIN_UNROLL(2)
    for (int q = 0; q < 2; q++, rows.next(32)) {
      const auto scale = [&](int group, int sixteen) __attribute__((always_inline)) {
        return V::scaleOfByte(scales.of[2 * part + group / 2], group % 2 * 2 + sixteen);
      };
      const typename V::Scale own[2][2] = {{scale(q, 0), scale(q, 1)}, {scale(q + 2, 0), scale(q + 2, 1)}};
      callFor(4 * part + 2 * q + 2);
      pairOfQ6K<V>(x + q * kBlock, rows, bits, 2 * q, own, weighed[q]);
    }
    SKEIN_UNROLL(4)
    for (int q = 0; q < 4; q++) {
      const auto multiple = V::set1(loadFloat(x + q * kBlock));
      sum = V::fma(V::mul(V::floatOf(weighed[q % 2][q / 2]), multiple), scales.d, sum);
    }
  }
  return sum;
}

// Q4_K and Q6_K.
template <class V, StoredType T>
void oneOfSuperblocks(const uint8_t* x, EvenRows rows, int groups, float* tile, StoredCalls<V> calls, Ahead* ahead) {
  constexpr int kBytes = formatOf(T).blockBytes;
  EvenRows halves[2] = {rows, rows.below()};
  typename V::F sums[2] = {V::set1(0.0f), V::set1(0.0f)};
  int64_t offset = 0;
  for (int g = 0; g < groups; g += kGroupsOfSuperblock, offset += kBytes) {
    for (int i = 0; i < kGroupsOfSuperblock; i++) ahead->some();
    for (int half = 0; half < 2; half++) {
      const auto callFor = [&](int count) __attribute__((always_inline)) {
        calls.upTo(offset + (half * kGroupsOfSuperblock + count) * kBytes / (2 * kGroupsOfSuperblock));
      };
      if constexpr (T == StoredType::kQ4K) sums[half] = superblockOfQ4K<V>(x, halves[half], sums[half], callFor);
      else sums[half] = superblockOfQ6K<V>(x, halves[half], sums[half], callFor);
      halves[half].next(kBytes);
    }
    x += kGroupsOfSuperblock * kActivationBytes<V, formatOf(T).dtype>;
  }
  for (int half = 0; half < 2; half++) V::store(tile + half * V::W, sums[half]);
}

template <class V>
concept SumsAlongRows = requires { requires V::kSumsAlongRows; };

// The function of a type, or null where another way is as fast.
template <class V, StoredType T>
constexpr OneRowFn<V> oneRowOf() {
  if constexpr (SumsAlongRows<V>) {
    if constexpr (T == StoredType::kQ4_0 || T == StoredType::kQ4_1) return oneOfGroups<V, T>;
    if constexpr (T == StoredType::kQ4K || T == StoredType::kQ6K) return oneOfSuperblocks<V, T>;
  }
  return nullptr;
}

}  // namespace
}  // namespace skein

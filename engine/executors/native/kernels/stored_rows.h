// Few rows of activations times the rows of a panel as a GGUF has them: the words of W outputs are multiplied where they are unpacked, in
// registers. What many rows read several times is written to memory first (stored_products.h); here that would cost more than it saves.
//
// Each output is the chain over its groups that packed groups make, of the same numbers.
#pragma once
#include "kernels/stored_superblocks.h"

namespace skein {
namespace {

// Most rows of activations whose whole sums stay in registers with the words, and most that are multiplied there:
// AVX-512 has registers for the integer sums of eight.
constexpr int kMostInRegisters = 3;
template <class V>
constexpr int kFewStoredRows = V::W == 16 ? 8 : kMostInRegisters;

// Tables whose dot products of bytes take a word of activations from memory, for all lanes.
template <class V>
concept DotsWordsOfMemory = requires(typename V::I sum, const uint8_t* word) { V::dotWordAt(sum, sum, word); };

// The activations of M rows, group after group. kByMultiples: their addresses are sums of two registers and multiples of two more, where
// the rows of weights take the others; the compiler would keep one for each row.
template <class V, DType D, int M, bool kByMultiples>
class FewRows {
 public:
  static constexpr DType kForm = formOf(D);
  using F = typename V::F;
  using I = typename V::I;

  FewRows(const uint8_t* x, int64_t stride) : even_(x), odd_(x + stride), stride_(stride), thrice_(3 * stride) {
    if constexpr (kByMultiples) asm("" : "+r"(odd_), "+r"(thrice_));
  }
  void next() {
    even_ += kActivationBytes<V, D>;
    odd_ += kActivationBytes<V, D>;
  }
  [[gnu::always_inline]] const uint8_t* block(int m) const {
    if constexpr (!kByMultiples) return even_ + m * stride_;
    if (m == 3) return even_ + thrice_;
    const uint8_t* first = m % 2 == 0 ? even_ : odd_;
    return m < 6 ? first + m / 2 * 2 * stride_ : first + 2 * thrice_;
  }
  // Adds the products of four elements of each output: quants 4 e .. 4 e + 3.
  [[gnu::always_inline]] void add(I (&sum)[M], I four, int e) const {
    constexpr int kWords = kForm == DType::kInt8 ? V::kInt8Parts : 1;
    SKEIN_UNROLL(2)
    for (int part = 0; part < kWords; part++) {
      const I quants = kForm == DType::kInt8 ? V::part8(four, part) : four;
      SKEIN_UNROLL(8)
      for (int m = 0; m < M; m++) {
        const uint8_t* word = block(m) + kBlockHead<D> + (e * kWords + part) * 4;
        if constexpr (DotsWordsOfMemory<V>) {
          sum[m] = V::dotWordAt(sum[m], quants, word);
          continue;
        }
        const I a = V::set1I(loadWord(word));
        if constexpr (kForm == DType::kInt8) sum[m] = V::dot8(sum[m], quants, a);
        else if constexpr (kForm == DType::kQ6K) sum[m] = V::dot6(sum[m], quants, a);
        else sum[m] = V::dot4(sum[m], quants, a);
      }
    }
  }
  // The sums over a group, whose quants four(e) has, added to what there is of the groups before.
  template <class Sums, class Four>
  [[gnu::always_inline]] void addGroup(Sums& acc, F scale, F minimum, Four four) const {
    I sum[M];
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) sum[m] = startOfSum<V, kForm>(block(m));
    SKEIN_UNROLL(8)
    for (int e = 0; e < 8; e++) add(sum, four(e), e);
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) {
      if constexpr (kForm == DType::kInt8) {
        acc.set(m, V::fma(V::toFloat(sum[m]), V::mul(scale, V::set1(loadFloat(block(m)))), acc.get(m)));
      } else {
        const F total = V::set1(loadFloat(block(m) + 4));
        const auto multiples = V::multiplesOf(loadWord(block(m)));
        acc.set(m, V::fma(V::scaled4(sum[m], multiples), scale, V::fma(minimum, total, acc.get(m))));
      }
    }
  }
  // The same of q6_k's form.
  template <class Sums, class Four>
  [[gnu::always_inline]] void addGroup(Sums& acc, typename V::Scale first, typename V::Scale second, F ofBlock,
                                       F minimum, Four four) const {
    typename V::Scale weighed[M];
    SKEIN_UNROLL(2)
    for (int sixteen = 0; sixteen < 2; sixteen++) {
      I sum[M];
      SKEIN_UNROLL(8)
      for (int m = 0; m < M; m++) sum[m] = V::startOf(loadWord(block(m) + 8 + 4 * sixteen));
      SKEIN_UNROLL(4)
      for (int e = 0; e < 4; e++) add(sum, four(4 * sixteen + e), 4 * sixteen + e);
      SKEIN_UNROLL(8)
      for (int m = 0; m < M; m++)
        weighed[m] = sixteen == 0 ? V::weigh(sum[m], first) : V::addWeighed(weighed[m], sum[m], second);
    }
    SKEIN_UNROLL(8)
    for (int m = 0; m < M; m++) {
      const F multiple = V::set1(loadFloat(block(m))), total = V::set1(loadFloat(block(m) + 4));
      acc.set(m, addBlockScaled<V>(V::floatOf(weighed[m]), multiple, total, ofBlock, minimum, acc.get(m)));
    }
  }

 private:
  const uint8_t *even_, *odd_;
  int64_t stride_, thrice_;
};

// The outputs of half a panel: in registers where these have room for them, else in the tile, which the first-level cache holds.
template <class V, int M, bool kInRegisters = (M <= kMostInRegisters)>
struct FewSums {
  typename V::F of[M];
  FewSums() {
    for (int m = 0; m < M; m++) of[m] = V::set1(0.0f);
  }
  void at(float*) {}
  typename V::F get(int m) const { return of[m]; }
  void set(int m, typename V::F sum) { of[m] = sum; }
  void store(float* tile) const {
    for (int m = 0; m < M; m++) V::store(tile + m * kPanelWidth<V>, of[m]);
  }
};
template <class V, int M>
struct FewSums<V, M, false> {
  float* tile;
  void at(float* to) {
    tile = to;
    for (int m = 0; m < M; m++) V::store(tile + m * kPanelWidth<V>, V::set1(0.0f));
  }
  typename V::F get(int m) const { return V::load(tile + m * kPanelWidth<V>); }
  void set(int m, typename V::F sum) const { V::store(tile + m * kPanelWidth<V>, sum); }
  void store(float*) const {}
};

template <class V, StoredType T, int M>
void fewOfGroups(const uint8_t* x, int64_t stride, const uint8_t* const* rows, int groups, float* tile,
                 StoredCalls<V> calls, Ahead* ahead) {
  FewRows<V, formatOf(T).dtype, M, (M > kMostInRegisters)> few(x, stride);
  FewSums<V, M> sums[2];
  for (int half = 0; half < 2; half++) sums[half].at(tile + half * V::W);
  for (int g = 0; g < groups; g++, few.next()) {
    callForGroups<V>(g, groups, formatOf(T).blockBytes, calls, *ahead);
    const int64_t block = int64_t(g) * formatOf(T).blockBytes;
    SKEIN_UNROLL(1)
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const StoredNumbers<V, T> numbers(own, block);
      const StoredQuants<V, T> quants(own, block);
      few.addGroup(sums[half], numbers.scale, numbers.minimum,
                   [&](int e) __attribute__((always_inline)) { return quants.four(e, numbers.fifthBits); });
    }
  }
  for (int half = 0; half < 2; half++) sums[half].store(tile + half * V::W);
}

template <class V, StoredType T, int M>
void fewOfSuperblocks(const uint8_t* x, int64_t stride, const uint8_t* const* rows, int groups, float* tile,
                      StoredCalls<V> calls, Ahead* ahead) {
  FewRows<V, formatOf(T).dtype, M, false> few(x, stride);
  FewSums<V, M> sums[2];
  for (int half = 0; half < 2; half++) sums[half].at(tile + half * V::W);
  constexpr int kTogether = SuperblockQuants<V, T>::kGroups;
  for (int group = 0; group < groups; group += kGroupsOfSuperblock) {
    const int64_t offset = int64_t(group / kGroupsOfSuperblock) * formatOf(T).blockBytes;
    for (int i = 0; i < kGroupsOfSuperblock; i++) ahead->some();
    const auto first = few;
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const SuperblockNumbers<V, T> numbers(own, offset);
      few = first;
      for (int g = 0; g < kGroupsOfSuperblock; g += kTogether) {
        const int part = half * kGroupsOfSuperblock + g + kTogether;
        calls.upTo(offset + part * formatOf(T).blockBytes / (2 * kGroupsOfSuperblock));
        const SuperblockQuants<V, T> quants(own, offset, g);
        SKEIN_UNROLL(4)
        for (int q = 0; q < kTogether; q++, few.next()) {
          const auto four = [&](int e) __attribute__((always_inline)) { return quants.four(q, e); };
          if constexpr (SuperblockNumbers<V, T>::kIsWhole)
            few.addGroup(sums[half], numbers.whole[2 * (g + q)], numbers.whole[2 * (g + q) + 1], numbers.ofBlock,
                         numbers.minimum[g + q], four);
          else few.addGroup(sums[half], numbers.scale[g + q], numbers.minimum[g + q], four);
        }
      }
    }
  }
  for (int half = 0; half < 2; half++) sums[half].store(tile + half * V::W);
}

template <class V>
using FewRowsFn = void (*)(const uint8_t*, int64_t, const uint8_t* const*, int, float*, StoredCalls<V>, Ahead*);

}  // namespace
}  // namespace skein

// Few rows of activations times the rows of a panel as a GGUF has them: the words of W outputs are multiplied where they are unpacked, in
// registers. What many rows read several times is written to memory first (stored_products.h); here that would cost more than it saves.
//
// Each output is the chain over its groups that packed groups make, of the same numbers.
#pragma once
#include "kernels/stored_superblocks.h"

namespace skein {
namespace {

// Most rows of activations whose sums stay in registers beside the words.
template <class V>
constexpr int kFewStoredRows = 3;

// The activations of M rows, group after group.
template <class V, DType D, int M>
struct FewRows {
  static constexpr DType kForm = formOf(D);
  using F = typename V::F;
  using I = typename V::I;
  const uint8_t* x;
  const int64_t stride;

  void next() { x += kActivationBytes<V, D>; }
  const uint8_t* block(int m) const { return x + m * stride; }
  // Adds the products of four elements of each output: quants 4 e .. 4 e + 3.
  [[gnu::always_inline]] void add(I (&sum)[M], I four, int e) const {
    constexpr int kWords = kForm == DType::kInt8 ? V::kInt8Parts : 1;
    SKEIN_UNROLL(2)
    for (int part = 0; part < kWords; part++) {
      const I quants = kForm == DType::kInt8 ? V::part8(four, part) : four;
      SKEIN_UNROLL(4)
      for (int m = 0; m < M; m++) {
        const I a = V::set1I(loadWord(block(m) + kBlockHead<D> + (e * kWords + part) * 4));
        if constexpr (kForm == DType::kInt8) sum[m] = V::dot8(sum[m], quants, a);
        else if constexpr (kForm == DType::kQ6K) sum[m] = V::dot6(sum[m], quants, a);
        else sum[m] = V::dot4(sum[m], quants, a);
      }
    }
  }
  // The sums over a group, whose quants four(e) has, added to what there is of the groups before.
  template <class Four>
  [[gnu::always_inline]] void addGroup(F (&acc)[M], F scale, F minimum, Four four) const {
    I sum[M];
    SKEIN_UNROLL(4)
    for (int m = 0; m < M; m++) sum[m] = startOfSum<V, kForm>(block(m));
    SKEIN_UNROLL(8)
    for (int e = 0; e < 8; e++) add(sum, four(e), e);
    SKEIN_UNROLL(4)
    for (int m = 0; m < M; m++) {
      if constexpr (kForm == DType::kInt8) {
        acc[m] = V::fma(V::toFloat(sum[m]), V::mul(scale, V::set1(loadFloat(block(m)))), acc[m]);
      } else {
        const F total = V::set1(loadFloat(block(m) + 4));
        const auto multiples = V::multiplesOf(loadWord(block(m)));
        acc[m] = V::fma(V::scaled4(sum[m], multiples), scale, V::fma(minimum, total, acc[m]));
      }
    }
  }
  // The same of q6_k's form.
  template <class Four>
  [[gnu::always_inline]] void addGroup(F (&acc)[M], typename V::Scale first, typename V::Scale second, F ofBlock, F minimum,
                                       Four four) const {
    typename V::Scale weighed[M];
    SKEIN_UNROLL(2)
    for (int sixteen = 0; sixteen < 2; sixteen++) {
      I sum[M];
      SKEIN_UNROLL(4)
      for (int m = 0; m < M; m++) sum[m] = V::startOf(loadWord(block(m) + 8 + 4 * sixteen));
      SKEIN_UNROLL(4)
      for (int e = 0; e < 4; e++) add(sum, four(4 * sixteen + e), 4 * sixteen + e);
      SKEIN_UNROLL(4)
      for (int m = 0; m < M; m++)
        weighed[m] = sixteen == 0 ? V::weigh(sum[m], first) : V::addWeighed(weighed[m], sum[m], second);
    }
    SKEIN_UNROLL(4)
    for (int m = 0; m < M; m++) {
      const F multiple = V::set1(loadFloat(block(m))), total = V::set1(loadFloat(block(m) + 4));
      acc[m] = addBlockScaled<V>(V::floatOf(weighed[m]), multiple, total, ofBlock, minimum, acc[m]);
    }
  }
};

// acc[half][m]: the outputs of half a panel.
template <class V, int M>
struct FewSums {
  typename V::F of[2][M];
  FewSums() {
    for (int half = 0; half < 2; half++)
      for (int m = 0; m < M; m++) of[half][m] = V::set1(0.0f);
  }
  void store(float* tile) const {
    for (int m = 0; m < M; m++)
      for (int half = 0; half < 2; half++) V::store(tile + m * kPanelWidth<V> + half * V::W, of[half][m]);
  }
};

template <class V, StoredType T, int M>
void fewOfGroups(const uint8_t* x, int64_t stride, const uint8_t* const* rows, int groups, float* tile,
                 StoredCalls<V> calls, Ahead* ahead) {
  FewRows<V, formatOf(T).dtype, M> few{x, stride};
  FewSums<V, M> sums;
  for (int g = 0; g < groups; g++, few.next()) {
    const int64_t block = int64_t(g) * formatOf(T).blockBytes;
    ahead->some();
    calls.upTo(block + formatOf(T).blockBytes + kStoredAhead);
    SKEIN_UNROLL(2)
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const StoredNumbers<V, T> numbers(own, block);
      const StoredQuants<V, T> quants(own, block);
      few.addGroup(sums.of[half], numbers.scale, numbers.minimum,
                   [&](int e) __attribute__((always_inline)) { return quants.four(e, numbers.fifthBits); });
    }
  }
  sums.store(tile);
}

template <class V, StoredType T, int M>
void fewOfSuperblocks(const uint8_t* x, int64_t stride, const uint8_t* const* rows, int groups, float* tile,
                      StoredCalls<V> calls, Ahead* ahead) {
  FewRows<V, formatOf(T).dtype, M> few{x, stride};
  FewSums<V, M> sums;
  constexpr int kTogether = SuperblockQuants<V, T>::kGroups;
  for (int group = 0; group < groups; group += kGroupsOfSuperblock) {
    const int64_t offset = int64_t(group / kGroupsOfSuperblock) * formatOf(T).blockBytes;
    for (int i = 0; i < kGroupsOfSuperblock; i++) ahead->some();
    const FewRows<V, formatOf(T).dtype, M> first = few;
    for (int half = 0; half < 2; half++) {
      const uint8_t* const* own = rows + half * V::W;
      const SuperblockNumbers<V, T> numbers(own, offset);
      few.x = first.x;
      for (int g = 0; g < kGroupsOfSuperblock; g += kTogether) {
        const int part = half * kGroupsOfSuperblock + g + kTogether;
        calls.upTo(offset + part * formatOf(T).blockBytes / (2 * kGroupsOfSuperblock) + kStoredAhead);
        const SuperblockQuants<V, T> quants(own, offset, g);
        SKEIN_UNROLL(4)
        for (int q = 0; q < kTogether; q++, few.next()) {
          const auto four = [&](int e) __attribute__((always_inline)) { return quants.four(q, e); };
          if constexpr (SuperblockNumbers<V, T>::kIsWhole)
            few.addGroup(sums.of[half], numbers.whole[2 * (g + q)], numbers.whole[2 * (g + q) + 1], numbers.ofBlock,
                         numbers.minimum[g + q], four);
          else few.addGroup(sums.of[half], numbers.scale[g + q], numbers.minimum[g + q], four);
        }
      }
    }
  }
  sums.store(tile);
}

template <class V>
using FewRowsFn = void (*)(const uint8_t*, int64_t, const uint8_t* const*, int, float*, StoredCalls<V>, Ahead*);

}  // namespace
}  // namespace skein

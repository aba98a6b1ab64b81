// The loops over registers are not unrolled: see unroll.h.
#define SKEIN_EMULATED
// Sixteen lanes in plain C++, only for tests: the layouts and tile shapes of AVX-512 on any machine but one of ARM, where nothing has
// them.
#ifndef SKEIN_ARM64
#include "kernels/math.h"
#include "kernels/simd_emulated.h"
#include "kernels/table.h"
#include "kernels/test_hooks.h"

namespace skein {
namespace {

// Emulates the layouts of AVX-512 BF16 too: see pairs.h.
struct EmulatedPairsSimd : EmulatedSimd<16, 12> {
  static constexpr bool kBf16Pairs = true;
  [[gnu::noinline]] static F dotPairs(F sum, I a, I w) {
    for (int i = 0; i < W; i++)
      for (int half = 1; half >= 0; half--)
        sum.v[i] = normalOrZero(__builtin_fmaf(valueOf(a.v[i], half), valueOf(w.v[i], half), normalOrZero(sum.v[i])));
    return sum;
  }
  static void storeBf16(uint16_t* p, F a) {
    for (int i = 0; i < W; i++) p[i] = toBf16(normalOrZero(a.v[i]));
  }
  static void pairRows(const uint16_t* even, const uint16_t* odd, I& low, I& high) {
    low = eachI([&](int i) { return pair(int16_t(even[i]), int16_t(odd[i])); });
    high = eachI([&](int i) { return pair(int16_t(even[W + i]), int16_t(odd[W + i])); });
  }

 private:
  static float valueOf(int32_t pair, int half) {
    return normalOrZero(fromBf16(uint16_t(uint32_t(pair) >> (16 * half))));
  }
  static float normalOrZero(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
};

}  // namespace

const KernelTable& emulated16Kernels() {
  static constexpr KernelTable table = makeTable<EmulatedSimd<16, 12>>("emulated16");
  return table;
}

const KernelTable& emulated16PairsKernels() {
  static const KernelTable table = [] {
    KernelTable pairs = emulated16Kernels();
    pairs.name = "emulated16pairs";
    pairs.packedBytes = packedBytes<EmulatedPairsSimd>;
    pairs.packWeights = packWeights<EmulatedPairsSimd>;
    pairs.packedGatedBytes = packedGatedBytes<EmulatedPairsSimd>;
    pairs.packGatedWeights = packGatedWeights<EmulatedPairsSimd>;
    pairs.roundedBytes = roundedBytes<EmulatedPairsSimd>;
    pairs.roundRow = roundRow<EmulatedPairsSimd>;
    pairs.gemm = gemm<EmulatedPairsSimd>;
    pairs.gatedGemm = gatedGemm<EmulatedPairsSimd>;
    pairs.attentionSplit = attentionSplit<EmulatedPairsSimd>;
    pairs.attentionScratchFloats = attentionScratchFloats<EmulatedPairsSimd>;
    return pairs;
  }();
  return table;
}

}  // namespace skein
#endif

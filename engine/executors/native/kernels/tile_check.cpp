#include "kernels/tile_check.h"

#include <vector>

#include "kernels/tiles_order.h"

namespace skein {
namespace {

// Two tiles of rows, an end of a panel, two runs of k and an end of a tile.
constexpr int32_t kRows = 19, kOutputs = 35, kInner = 300;
constexpr int32_t kRowStep = 6, kOutputStep = 17;  // those that are compared

uint32_t nextOf(uint32_t& state) { return (state = state * 1664525u + 1013904223u) >> 8; }

// Numbers of many sizes, of which sums round at every step.
std::vector<uint16_t> anyNumbers(int32_t count, uint32_t state) {
  std::vector<uint16_t> numbers(static_cast<size_t>(count));
  for (uint16_t& number : numbers) {
    const uint32_t bits = nextOf(state);
    number = uint16_t((bits & 0x807f) | (120 + (bits >> 16) % 12) << 7);
  }
  return numbers;
}

// The order of tiles, in plain C++.
float sumOf(const uint16_t* x, const uint16_t* w) {
  constexpr int32_t kTile = 2 * kTilePairs;
  float sum = 0.0f;
  for (int32_t k = 0; k < kInner; k += kTile) {
    uint16_t a[kTile] = {}, b[kTile] = {};
    for (int32_t i = 0; i < kTile && k + i < kInner; i++) a[i] = x[k + i], b[i] = w[k + i];
    sum = tileSum(sum, a, b, kTilePairs, 2);
  }
  return sum;
}

}  // namespace

bool sumsAsTiles(const KernelTable& tested) {
  constexpr DType kType = DType::kBf16;
  const std::vector<uint16_t> w = anyNumbers(kOutputs * kInner, 1), x = anyNumbers(kRows * kInner, 2);
  std::vector<float> row(kInner), y(size_t(kRows) * kOutputs);
  std::vector<uint8_t> rounded(tested.roundedBytes(kType, kRows, kInner)),
      packed(tested.packedBytes(kType, kOutputs, kInner));
  for (int32_t r = 0; r < kRows; r++) {
    for (int32_t i = 0; i < kInner; i++) row[size_t(i)] = fromBf16(x[size_t(r * kInner + i)]);
    tested.roundRow(kType, row.data(), kInner, r, kRows, rounded.data());
  }
  tested.packWeights(kType, w.data(), kOutputs, kInner, packed.data());
  const GemmArgs args{.x = nullptr,
                      .ldx = 0,
                      .packed = packed.data(),
                      .dtype = kType,
                      .n = kOutputs,
                      .k = kInner,
                      .bias = nullptr,
                      .residual = nullptr,
                      .ldr = 0,
                      .y = y.data(),
                      .ldy = kOutputs,
                      .activation = Activation::kNone,
                      .rounded = rounded.data(),
                      .roundedRows = kRows};
  tested.gemm(args, 0, kRows, 0, (kOutputs + tested.panelWidth - 1) / tested.panelWidth);
  for (int32_t r = 0; r < kRows; r += kRowStep)
    for (int32_t j = 0; j < kOutputs; j += kOutputStep)
      if (y[size_t(r * kOutputs + j)] != sumOf(&x[size_t(r * kInner)], &w[size_t(j * kInner)])) return false;
  return true;
}

}  // namespace skein

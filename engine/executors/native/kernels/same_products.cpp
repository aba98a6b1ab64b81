#include "kernels/same_products.h"

#include <cstring>
#include <vector>

namespace skein {
namespace {

// Two tiles of unequal height, an end of a panel, and an odd number of groups and of parts (superblocks are whole).
constexpr int32_t kRows = 19, kOutputs = 70, kInner = 3 * kSuperblock;

uint32_t nextOf(uint32_t& state) { return (state = state * 1664525u + 1013904223u) >> 24; }

// Weights of any bytes of which no scale is infinite or NaN: two bits of every byte stay 0.
std::vector<uint8_t> anyWeights(DType dtype, int32_t k) {
  std::vector<uint8_t> weights(size_t(2 * kOutputs) * rowBytes(dtype, k));
  uint32_t state = 1;
  for (uint8_t& byte : weights) byte = uint8_t(nextOf(state) & 0xbb);
  return weights;
}

std::vector<float> anyRows(int32_t k) {
  std::vector<float> x(size_t(kRows) * size_t(k));
  uint32_t state = 2;
  for (float& value : x) value = float(int32_t(nextOf(state)) - 128) / 128.0f;
  return x;
}

// All products of one table, gated ones behind the others.
std::vector<float> productsOf(const KernelTable& table, DType dtype, int32_t k) {
  const std::vector<uint8_t> weights = anyWeights(dtype, k);
  const std::vector<float> x = anyRows(k);
  std::vector<uint8_t> rounded(table.roundedBytes(dtype, kRows, k)), packed(table.packedBytes(dtype, kOutputs, k)),
      gatedPacked(table.packedGatedBytes(dtype, kOutputs, k));
  for (int32_t row = 0; row < kRows; row++) table.roundRow(dtype, &x[size_t(row) * size_t(k)], k, row, kRows, rounded.data());
  table.packWeights(dtype, weights.data(), kOutputs, k, packed.data());
  table.packGatedWeights(dtype, weights.data(), kOutputs, k, gatedPacked.data());
  std::vector<float> y(2 * size_t(kRows) * kOutputs);
  const int32_t panels = (kOutputs + table.panelWidth - 1) / table.panelWidth;
  const GemmArgs args{.x = x.data(),
                      .ldx = k,
                      .packed = packed.data(),
                      .dtype = dtype,
                      .n = kOutputs,
                      .k = k,
                      .bias = nullptr,
                      .residual = nullptr,
                      .ldr = 0,
                      .y = y.data(),
                      .ldy = kOutputs,
                      .activation = Activation::kNone,
                      .rounded = rounded.data(),
                      .roundedRows = kRows};
  table.gemm(args, 0, kRows, 0, panels);
  const GatedGemmArgs gated{.x = x.data(),
                            .ldx = k,
                            .packed = gatedPacked.data(),
                            .dtype = dtype,
                            .n = kOutputs,
                            .k = k,
                            .bias = nullptr,
                            .y = y.data() + size_t(kRows) * kOutputs,
                            .ldy = kOutputs,
                            .activation = Activation::kRelu,
                            .rounded = rounded.data(),
                            .roundedRows = kRows};
  table.gatedGemm(gated, 0, kRows, 0, panels);
  return y;
}

}  // namespace

bool sameProducts(const KernelTable& tested, const KernelTable& known) {
  for (const WeightFormat& format : kWeightFormats) {
    if (!isQuantized(format.dtype)) continue;
    const int32_t k = isSuperblocked(format.dtype) ? kInner : kInner - kGroup / 2;
    const std::vector<float> a = productsOf(tested, format.dtype, k), b = productsOf(known, format.dtype, k);
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace skein

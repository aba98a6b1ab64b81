#include "quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "grid-types.h"
#include "kernels/half.h"

namespace skein {
namespace {

constexpr uint16_t kNanHalf = 0x7e00;

void store16(uint8_t* p, uint16_t value) {
  p[0] = uint8_t(value);
  p[1] = uint8_t(value >> 8);
}

bool allFinite(const float* x, int count) {
  return std::all_of(x, x + count, [](float value) { return std::isfinite(value); });
}

// Writes a block of int8: f16 scale | 32 signed bytes
void int8Block(const float* x, int count, uint8_t* block) {
  std::memset(block, 0, 34);
  float greatest = 0;
  for (int i = 0; i < count; i++) greatest = std::max(greatest, std::fabs(x[i]));
  uint16_t half = toHalf(greatest / 127.0f);
  // A tiny scale has few digits in half precision; rounded down it would leave the greatest value out of range.
  if (fromHalf(half) * 127.5f < greatest) half++;
  if (!allFinite(x, count) || !std::isfinite(fromHalf(half))) return store16(block, kNanHalf);
  store16(block, half);
  const float scale = fromHalf(half);
  for (int i = 0; scale > 0 && i < count; i++)
    block[2 + i] = uint8_t(int8_t(std::clamp(std::nearbyintf(x[i] / scale), -127.0f, 127.0f)));
}

// How much the error of each element of a block counts: its magnitude and the block's root mean square. Errors of great weights cost
// an answer more than those of small ones.
struct ErrorWeights {
  double of[kGroup];

  ErrorWeights(const float* x, int count) {
    double squares = 0;
    for (int i = 0; i < count; i++) squares += double(x[i]) * x[i];
    const double usual = std::sqrt(squares / count);
    for (int i = 0; i < count; i++) of[i] = usual + std::fabs(double(x[i]));
  }
};

// The nibbles of one block for a scale and a minimum, and their weighted squared error.
struct Int4Fit {
  uint16_t scale = 0, minimum = 0;
  uint8_t quants[kGroup] = {};
  double error = 0;

  Int4Fit() = default;
  Int4Fit(const float* x, const ErrorWeights& weights, int count, float wantedScale, float wantedMinimum)
      : scale(toHalf(wantedScale)), minimum(toHalf(wantedMinimum)) {
    const float d = fromHalf(scale), m = fromHalf(minimum);
    for (int i = 0; i < count; i++) {
      if (d > 0) quants[i] = uint8_t(std::clamp(std::nearbyintf((x[i] - m) / d), 0.0f, 15.0f));
      const double difference = double(x[i]) - (double(d) * quants[i] + double(m));
      error += weights.of[i] * (difference * difference);
    }
  }
};

// Finds scale and minimum of the least weighted error for given nibbles: a straight line through (quant, x).
bool fitLine(const float* x, const ErrorWeights& weights, const uint8_t* quants, int count, float& scale,
             float& minimum) {
  double all = 0, q = 0, qq = 0, y = 0, qy = 0;
  for (int i = 0; i < count; i++) {
    const double weight = weights.of[i], quant = quants[i], value = weight * x[i];
    all += weight;
    q += weight * quant;
    qq += weight * (quant * quant);
    y += value;
    qy += value * quant;
  }
  const double spread = all * qq - q * q;
  if (spread <= 0) return false;
  scale = float((all * qy - q * y) / spread);
  minimum = float((y - double(scale) * q) / all);
  return scale > 0;
}

Int4Fit bestInt4Fit(const float* x, int count) {
  const auto [least, greatest] = std::minmax_element(x, x + count);
  const float low = *least, range = *greatest - *least;
  const ErrorWeights weights(x, count);
  Int4Fit best(x, weights, count, range / 15.0f, low);
  // Tries ranges somewhat narrower and wider than that of the values: the ends are clipped, the middle is finer.
  for (float steps = 13.0f; range > 0 && best.error > 0 && steps < 18.0f; steps += 0.5f) {
    const float begin = low + range * 0.5f * (1.0f - 15.0f / steps);
    Int4Fit fit(x, weights, count, range / steps, begin);
    // A line through the quants makes other quants the nearest, through which the line is nearer still.
    for (int pass = 0; pass < 2; pass++) {
      float scale, minimum;
      if (!fitLine(x, weights, fit.quants, count, scale, minimum)) break;
      fit = Int4Fit(x, weights, count, scale, minimum);
      if (fit.error < best.error) best = fit;
    }
  }
  return best;
}

// f16 scale | f16 minimum | 16 bytes
void int4Block(const float* x, int count, uint8_t* block) {
  std::memset(block, 0, 20);
  const Int4Fit fit = allFinite(x, count) ? bestInt4Fit(x, count) : Int4Fit();
  const bool fits = allFinite(x, count) && std::isfinite(fromHalf(fit.scale)) && std::isfinite(fromHalf(fit.minimum));
  store16(block, fits ? fit.scale : kNanHalf);
  store16(block + 2, fits ? fit.minimum : kNanHalf);
  for (int i = 0; fits && i < 16; i++) block[4 + i] = uint8_t(fit.quants[i] | (fit.quants[i + 16] << 4));
}

// Copies blocks unchanged: Q8_0 is int8, Q4_1 is int4, and formats that are only kept are stored as they are.
template <DType D>
void copyBlocks(const uint8_t* source, int64_t blocks, uint8_t* target) {
  std::memcpy(target, source, size_t(blocks) * blockBytes(D));
}

// Converts d * (q - 8) to int4 as d * q + (-8 d); eight times a half is a half, unless it is beyond all weights.
void q4_0ToInt4(const uint8_t* source, int64_t blocks, uint8_t* target) {
  for (; blocks > 0; blocks--, source += 18, target += 20) {
    std::memcpy(target, source, 2);
    store16(target + 2, toHalf(-8.0f * fromHalf(load16(source))));
    std::memcpy(target + 4, source + 2, 16);
  }
}

void q4_0ToInt8(const uint8_t* source, int64_t blocks, uint8_t* target) {
  for (; blocks > 0; blocks--, source += 18, target += 34) {
    std::memcpy(target, source, 2);
    for (int i = 0; i < 16; i++) {
      target[2 + i] = uint8_t((source[2 + i] & 15) - 8);
      target[18 + i] = uint8_t((source[2 + i] >> 4) - 8);
    }
  }
}

void q5_0ToInt8(const uint8_t* source, int64_t blocks, uint8_t* target) {
  for (; blocks > 0; blocks--, source += 22, target += 34) {
    std::memcpy(target, source, 2);
    for (int i = 0; i < 32; i++) {
      const int low = i < 16 ? source[6 + i] & 15 : source[6 + i - 16] >> 4;
      const int high = (source[2 + i / 8] >> (i % 8)) & 1;
      target[2 + i] = uint8_t((low | (high << 4)) - 16);
    }
  }
}

// Converts Q3_K, d * scale * q with q in -4 .. 3 and groups of 16, to q6_k, whose groups and scales are of the same kind.
void q3kToQ6k(const uint8_t* source, int64_t blocks, uint8_t* target) {
  for (; blocks > 0; blocks--, source += 110, target += 210) {
    std::memset(target, 0, 210);
    std::memcpy(target + 208, source + 108, 2);
    for (int g = 0; g < 16; g++) target[192 + g] = uint8_t(int8_t(q3kScale(source, g)));
    for (int i = 0; i < kSuperblock; i++) {
      const int quant = q3kQuant(source, i) + 32, half = i / 128, quarter = i / 32 % 4;
      target[half * 64 + i % 64] |= uint8_t((quant & 15) << (4 * (quarter / 2)));
      target[128 + half * 32 + i % 32] |= uint8_t(quant >> 4 << (2 * quarter));
    }
  }
}

// Converts d * (q - 1) to eight blocks of int4, d * q + (-d) each.
template <int BlockBytes, int (*QuantOf)(const uint8_t*, int)>
void ternaryToInt4(const uint8_t* source, int64_t blocks, uint8_t* target) {
  for (; blocks > 0; blocks--, source += BlockBytes) {
    const uint16_t d = load16(source + BlockBytes - 2);
    for (int g = 0; g < kSuperblock / kGroup; g++, target += 20) {
      store16(target, d);
      store16(target + 2, uint16_t(d ^ 0x8000));
      for (int i = 0; i < 16; i++) {
        const int at = kGroup * g + i;
        target[4 + i] = uint8_t(QuantOf(source, at) | QuantOf(source, at + 16) << 4);
      }
    }
  }
}

}  // namespace

ExactConversion exactConversion(const TensorType& source, DType target) {
  struct Conversion {
    std::string_view source;
    DType target;
    ExactConversion run;
  };
  static constexpr Conversion kConversions[] = {
      {"Q8_0", DType::kInt8, copyBlocks<DType::kInt8>},     {"Q4_0", DType::kInt8, q4_0ToInt8},
      {"Q5_0", DType::kInt8, q5_0ToInt8},                   {"Q4_1", DType::kInt4, copyBlocks<DType::kInt4>},
      {"Q4_0", DType::kInt4, q4_0ToInt4},                   {"Q4_K", DType::kQ4K, copyBlocks<DType::kQ4K>},
      {"Q5_K", DType::kQ5K, copyBlocks<DType::kQ5K>},       {"Q6_K", DType::kQ6K, copyBlocks<DType::kQ6K>},
      {"Q3_K", DType::kQ6K, q3kToQ6k},                      {"Q5_0", DType::kQ5_0, copyBlocks<DType::kQ5_0>},
      {"TQ1_0", DType::kInt4, ternaryToInt4<54, tq1Quant>}, {"TQ2_0", DType::kInt4, ternaryToInt4<66, tq2Quant>},
      {"Q5_1", DType::kQ5_1, copyBlocks<DType::kQ5_1>},     {"IQ4_NL", DType::kIq4Nl, copyBlocks<DType::kIq4Nl>},
      {"IQ4_XS", DType::kIq4Xs, copyBlocks<DType::kIq4Xs>}, {"MXFP4", DType::kMxfp4, copyBlocks<DType::kMxfp4>},
  };
  for (const Conversion& conversion : kConversions)
    if (conversion.target == target && conversion.source == source.name) return conversion.run;
  return nullptr;
}

void quantizeWeights(DType target, const float* x, int64_t columns, uint8_t* blocks) {
  for (int64_t first = 0; first < columns; first += kGroup, blocks += blockBytes(target)) {
    const int count = int(std::min<int64_t>(kGroup, columns - first));
    if (target == DType::kInt8) int8Block(x + first, count, blocks);
    else int4Block(x + first, count, blocks);
  }
}

}  // namespace skein

// Passes in f64 over a row of logits, for executor/sampler_chain.h. A row is padded to whole groups of eight places; a place
// whose token is left out holds -infinity.
//
//   values    | 1.5 | -inf | 0.2 | ... | -inf |     n places, a multiple of kWideLanes
//   sums      lane 0, lane 1, ..., lane 7           by the place in its group, added up at the end of each block
//
// Written in the compiler's own vectors, as wide as the instruction set's, with multiplications and additions that are rounded
// one by one: every instruction set gives the same bits.
#pragma once
#include <cstring>

#include "kernels/kernels.h"

namespace skein {
namespace {

#if defined(__AVX512F__)
constexpr int kWideParts = 1;
#elif defined(__AVX__)
constexpr int kWideParts = 2;
#else
constexpr int kWideParts = 4;
#endif
constexpr int kPartLanes = kWideLanes / kWideParts;

typedef double PartDoubles __attribute__((vector_size(8 * kPartLanes)));
typedef long long PartInts __attribute__((vector_size(8 * kPartLanes)));
typedef float PartFloats __attribute__((vector_size(4 * kPartLanes)));
typedef int32_t PartInts32 __attribute__((vector_size(4 * kPartLanes)));

// Vectors are passed by reference: how they would be passed by value depends on the instruction set.
template <class Vector, class Element>
inline void loadPart(Vector& vector, const Element* from) {
  std::memcpy(&vector, from, sizeof vector);
}
template <class Vector, class Element>
inline void storePart(Element* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}
inline void loadAsDoubles(PartDoubles& doubles, const float* from) {
  PartFloats floats;
  loadPart(floats, from);
  doubles = __builtin_convertvector(floats, PartDoubles);
}

// Eight sums, one for each place of a group.
struct LaneSums {
  PartDoubles part[kWideParts] = {};
  double total() const {
    double lane[kWideLanes];
    std::memcpy(lane, part, sizeof lane);
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
  }
};

inline int32_t trueLanes(const PartInts32& lanes) {  // of comparisons that were added up, each -1 or 0
  int32_t sum = 0;
  for (int lane = 0; lane < kPartLanes; lane++) sum -= lanes[lane];
  return sum;
}

// result = 2^y for y <= 0, within 1e-15 of itself, and exactly 1 for 0; 0 below 2^-1020. `y` is raised to -1020 there.
//
//   y = n + f with n whole and |f| <= 1/2; 2^f by a polynomial through Chebyshev's nodes with 2^0 = 1
inline void exp2Of(PartDoubles& y, PartDoubles& result) {
  constexpr double kLeast = -1020, kShift = 0x1.8p52;  // y + kShift has n in its lowest bits
  const PartDoubles least = PartDoubles{} + kLeast;
  const PartInts isZero = y < least;
  y = isZero ? least : y;
  const PartDoubles shifted = y + kShift;
  const PartDoubles f = y - (shifted - kShift);
  PartDoubles p = f * 0x1.e5e9f548e5726p-28 + 0x1.b6571de2f2351p-24;
  p = p * f + 0x1.62bfe46117445p-20;
  p = p * f + 0x1.ffcb76789860fp-17;
  p = p * f + 0x1.4309130378460p-13;
  p = p * f + 0x1.5d87fe908f88ap-10;
  p = p * f + 0x1.3b2ab6fba385fp-7;
  p = p * f + 0x1.c6b08d7044119p-5;
  p = p * f + 0x1.ebfbdff82c590p-3;
  p = p * f + 0x1.62e42fefa39f7p-1;
  p = p * f + 1.0;
  const PartInts bits = ((PartInts)p + ((PartInts)shifted << 52)) & ~isZero;
  result = (PartDoubles)bits;
}

template <bool kWantsMoment>
inline double weighRow(const float* values, int32_t n, double maximum, double scale, double* weights, double* blockSums,
                       double* moment) {
  double total = 0, totalMoment = 0;
  for (int32_t begin = 0; begin < n; begin += kWideBlock) {
    const int32_t end = n - begin < kWideBlock ? n : begin + kWideBlock;
    LaneSums sums, moments;
    for (int32_t i = begin; i < end; i += kWideLanes) {
      for (int part = 0; part < kWideParts; part++) {
        const int32_t at = i + part * kPartLanes;
        PartDoubles y, weight;
        loadAsDoubles(y, values + at);
        y = (y - maximum) * scale;
        exp2Of(y, weight);
        storePart(weights + at, weight);
        sums.part[part] += weight;
        if constexpr (kWantsMoment) moments.part[part] += weight * y;
      }
    }
    const double sum = sums.total();
    blockSums[begin / kWideBlock] = sum;
    total += sum;
    totalMoment += moments.total();
  }
  if constexpr (kWantsMoment) *moment = totalMoment;
  return total;
}

inline double weigh(const float* values, int32_t n, double maximum, double scale, double* weights, double* blockSums,
                    double* moment) {
  return moment != nullptr ? weighRow<true>(values, n, maximum, scale, weights, blockSums, moment)
                           : weighRow<false>(values, n, maximum, scale, weights, blockSums, nullptr);
}

inline double sumKept(const float* values, int32_t n, double* weights, double* blockSums) {
  double total = 0;
  for (int32_t begin = 0; begin < n; begin += kWideBlock) {
    const int32_t end = n - begin < kWideBlock ? n : begin + kWideBlock;
    LaneSums sums;
    for (int32_t i = begin; i < end; i += kWideLanes) {
      for (int part = 0; part < kWideParts; part++) {
        const int32_t at = i + part * kPartLanes;
        PartDoubles value, weight;
        loadAsDoubles(value, values + at);
        loadPart(weight, weights + at);
        weight = value > -__builtin_inf() ? weight : PartDoubles{};
        storePart(weights + at, weight);
        sums.part[part] += weight;
      }
    }
    blockSums[begin / kWideBlock] = sums.total();
    total += blockSums[begin / kWideBlock];
  }
  return total;
}

// Calls visit(at, part) for the parts of a row.
template <class Visit>
inline void forParts(int32_t n, const Visit& visit) {
  for (int32_t i = 0; i < n; i += kWideLanes) {
    for (int part = 0; part < kWideParts; part++) visit(i + part * kPartLanes, part);
  }
}

inline double sumPresent(const float* values, int32_t n) {
  LaneSums sums;
  forParts(n, [&](int32_t at, int part) {
    PartDoubles value;
    loadAsDoubles(value, values + at);
    sums.part[part] += value > -__builtin_inf() ? value : PartDoubles{};
  });
  return sums.total();
}

inline double sumSquares(const float* values, int32_t n, double mean) {
  LaneSums sums;
  forParts(n, [&](int32_t at, int part) {
    PartDoubles value;
    loadAsDoubles(value, values + at);
    const PartDoubles distance = value > -__builtin_inf() ? value - mean : PartDoubles{};
    sums.part[part] += distance * distance;
  });
  return sums.total();
}

inline int32_t keepBetween(float* values, int32_t n, float least, float most) {
  PartInts32 kept = {};
  forParts(n, [&](int32_t at, int) {
    PartFloats value;
    loadPart(value, values + at);
    const PartInts32 keeps = (value >= least) & (value <= most);
    kept += keeps;
    value = keeps ? value : PartFloats{} - __builtin_inff();
    storePart(values + at, value);
  });
  return trueLanes(kept);
}

inline float leastOfWeight(const float* values, const double* weights, int32_t n, double weight) {
  PartFloats least = PartFloats{} + __builtin_inff();
  forParts(n, [&](int32_t at, int) {
    PartFloats value;
    PartDoubles own;
    loadPart(value, values + at);
    loadPart(own, weights + at);
    const PartInts reaches = own >= weight;
    const PartInts32 isLess = __builtin_convertvector(reaches, PartInts32) & (value < least);
    least = isLess ? value : least;
  });
  float result = least[0];
  for (int lane = 1; lane < kPartLanes; lane++) result = least[lane] < result ? least[lane] : result;
  return result;
}

// A distance's bits grow with it, so that their first ones number buckets, 2^kBucketBitsPerOctave for each power of two.
//
//   distance   0 ... 2^-48 | ... | 2^16 ...           | infinity
//   bucket     0           | ... | kDistanceBuckets-1 | kDistanceBuckets
inline void bucketByDistance(const float* values, int32_t n, double maximum, double center, int32_t* buckets) {
  constexpr int kShift = 52 - kBucketBitsPerOctave;
  constexpr int32_t kFirst = (1023 - kBucketOctavesBelowOne) << kBucketBitsPerOctave;
  constexpr int32_t kInfinity = (0x7ff << kBucketBitsPerOctave) - kFirst;
  constexpr int32_t kLast = kDistanceBuckets - 1;
  forParts(n, [&](int32_t at, int) {
    PartDoubles value;
    loadAsDoubles(value, values + at);
    const PartDoubles difference = center - (value - maximum);
    // Without its sign the difference's first bits, as whole numbers, are those of the distance.
    const PartInts bits = (PartInts)((PartInts)difference << 1);
    typedef unsigned long long PartBits __attribute__((vector_size(8 * kPartLanes)));
    const PartInts32 found = __builtin_convertvector((PartInts)((PartBits)bits >> (kShift + 1)), PartInts32) - kFirst;
    PartInts32 bucket = found < 0 ? PartInts32{} : found;
    bucket = bucket > kLast ? PartInts32{} + kLast : bucket;
    bucket = found == kInfinity ? PartInts32{} + kDistanceBuckets : bucket;
    storePart(buckets + at, bucket);
  });
}

inline int32_t keepBuckets(float* values, const int32_t* buckets, int32_t n, int32_t last) {
  PartInts32 kept = {};
  forParts(n, [&](int32_t at, int) {
    PartFloats value;
    PartInts32 bucket;
    loadPart(value, values + at);
    loadPart(bucket, buckets + at);
    const PartInts32 keeps = (bucket <= last) & (value > -__builtin_inff());
    kept += keeps;
    value = keeps ? value : PartFloats{} - __builtin_inff();
    storePart(values + at, value);
  });
  return trueLanes(kept);
}

constexpr WideRowKernels kWideRowKernels{
    .weigh = weigh,
    .sumKept = sumKept,
    .sumPresent = sumPresent,
    .sumSquares = sumSquares,
    .keepBetween = keepBetween,
    .leastOfWeight = leastOfWeight,
    .bucketByDistance = bucketByDistance,
    .keepBuckets = keepBuckets,
};

}  // namespace
}  // namespace skein

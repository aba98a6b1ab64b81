// Activations quantised to 8 bits in groups of 32, for products with quantised weights. They lie row by row, each row as
// its groups one after another:
//
//   int8    row 0: [ scale | start of sums | 32 quants ] [ .. ] ..                 row 1: ..
//   int4    a unit for each row, then  row 0: [ multiple | multiple x sum of quants | 32 quants ] [ .. ] ..
//   q5_0    the same, and before the quants the start of the sums (q5_1 and mxfp4 too)
//   q6_k    the same, and before the quants the starts of the sums of both 16
//
// by the form of the weights (quantized_panels.h).
// With units the scales of a row's groups are whole multiples of one, so that the instruction that adds the two
// halves of a sum can also multiply it by the scale.
#pragma once
#include "kernels/quantized_panels.h"

namespace skein {
namespace {

inline int groupsOf(int k) { return (k + kGroup - 1) / kGroup; }

// Bytes of a quant of activations: 2 for int8's form if the processor multiplies pairs of 16-bit words, else 1.
template <class V, DType D>
constexpr int kQuantBytes = formOf(D) == DType::kInt8 ? V::kInt8Parts : 1;
// Bytes of a block before its quants.
template <DType D>
constexpr int kBlockHead = formOf(D) == DType::kQ6K ? 16 : kIsSixteenMore<formOf(D)> ? 12 : 8;
template <class V, DType D>
constexpr int kActivationBytes = kBlockHead<D> + kGroup * kQuantBytes<V, D>;  // bytes of one block

inline int32_t loadWord(const uint8_t* p) {
  int32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}
inline float loadFloat(const uint8_t* p) {
  float value;
  __builtin_memcpy(&value, p, 4);
  return value;
}

// Magnitudes below this (2^-100) are negligible compared with any weight; their reciprocal could overflow.
constexpr float kSmallestMagnitude = 0x1p-100f;

// Adding 1.5 * 2^23 rounds to a whole number, ties to even, and leaves it in the low bits.
constexpr float kRound = 12582912.0f;

// The layout of rounded rows: whether they have units, and the bytes of a block.
struct RoundedLayout {
  bool hasUnits;
  int blockBytes;
  int64_t unitBytes(int64_t rows) const { return hasUnits ? (rows * 4 + 63) / 64 * 64 : 0; }
};
template <class V, DType D>
constexpr RoundedLayout roundedLayout() {
  return {formOf(D) != DType::kInt8, kActivationBytes<V, D>};
}

// Quantised activations of `rows` rows: the units where there are any, then the blocks.
struct RoundedRows {
  RoundedLayout layout;
  const uint8_t* base;
  int64_t blocks, rowStride;  // bytes

  RoundedRows(RoundedLayout rowLayout, const void* quantized, int32_t rows, int32_t k)
      : layout(rowLayout),
        base(static_cast<const uint8_t*>(quantized)),
        blocks(layout.unitBytes(rows)),
        rowStride(int64_t(groupsOf(k)) * layout.blockBytes) {}
  int64_t offset(int row, int group) const { return blocks + row * rowStride + group * layout.blockBytes; }
  const uint8_t* block(int row, int group) const { return base + offset(row, group); }
  float unit(int row) const { return loadFloat(base + 4 * row); }
};

// Greatest magnitude of 32 values; NaN where one is NaN or infinite.
template <class V>
inline float magnitudeOf(const float* x) {
  const typename V::F zero = V::set1(0.0f);
  typename V::F greatest = zero;
  SKEIN_UNROLL(4)
  for (int i = 0; i < kGroup; i += V::W) greatest = V::greaterMagnitude(greatest, V::load(x + i));
  return V::anyNan(V::mul(greatest, zero)) ? __builtin_nanf("") : V::reduceMax(greatest);
}

// Writes the quants x * inverse of one group; returns their sum.
template <class V, DType D>
inline float roundGroup(const float* x, float inverse, uint8_t* block) {
  using F = typename V::F;
  constexpr int kVectors = kGroup / V::W;
  const F factor = V::set1(inverse), round = V::set1(kRound);
  F values[kVectors], sums = V::set1(0.0f);
  SKEIN_UNROLL(4)
  for (int i = 0; i < kVectors; i++) {
    values[i] = V::add(V::mul(V::load(x + i * V::W), factor), round);
    sums = V::add(sums, V::sub(values[i], round));
  }
  if constexpr (kQuantBytes<V, D> == 2) V::storeWide(values, block + kBlockHead<D>);
  else V::storeBytes(values, block + kBlockHead<D>);
  return V::reduceAdd(sums);  // a sum of whole numbers: exact
}

template <class V, DType D>
inline void emptyGroup(uint8_t* block, float scale) {
  __builtin_memset(block, 0, kActivationBytes<V, D>);
  __builtin_memcpy(block, &scale, 4);
}

// Quantises a group for int8's form, with its own scale. A group that holds NaN or infinity gets the scale NaN, and so
// makes the outputs of its own row NaN, and of no other.
template <class V>
inline void quantizeGroup8(const float* x, uint8_t* block) {
  constexpr DType D = DType::kInt8;
  const float maximum = magnitudeOf<V>(x);
  if (!(maximum >= kSmallestMagnitude)) return emptyGroup<V, D>(block, maximum < kSmallestMagnitude ? 0.0f : maximum);
  const float scale = maximum / 127.0f;
  const int32_t start = V::startWord(int32_t(roundGroup<V, D>(x, 127.0f / maximum, block)));
  __builtin_memcpy(block, &scale, 4);
  __builtin_memcpy(block + 4, &start, 4);
}

// Number of units in a group's greatest scale. For weights with units a group's scale is a whole multiple of its row's unit,
// so that the integer sum can be multiplied by it: 127 * kUnits units are the row's greatest magnitude. 2 x 32512 x
// kUnits stays below 2^31.
constexpr float kUnits = 32767.0f;

// Writes where the sums over each part of a group begin, if the weights are `excess` too large: at -excess times the sum of
// the quants.
template <class V, DType D, int kPart, int kExcess>
inline void startSums(uint8_t* block) {
  const int8_t* quants = reinterpret_cast<const int8_t*>(block + kBlockHead<D>);
  for (int part = 0; part < kGroup / kPart; part++, quants += kPart) {
    int32_t low = 0, high = 0;
    for (int i = 0; i < kPart; i += 4) {
      low += quants[i] + quants[i + 1];
      high += quants[i + 2] + quants[i + 3];
    }
    const int32_t word = V::startWords(-kExcess * low, -kExcess * high);
    __builtin_memcpy(block + 8 + 4 * part, &word, 4);
  }
}

template <class V, DType D>
inline void writeMultiple(float multiple, uint8_t* block) {
  const int32_t word = V::multipleWord(int32_t(multiple));
  if constexpr (formOf(D) == DType::kQ6K) __builtin_memcpy(block, &multiple, 4);
  else __builtin_memcpy(block, &word, 4);
}

// Its multiple is 1 as well, so that none has the exponent of 0.
template <class V, DType D>
inline void emptyGroupInUnits(uint8_t* block) {
  __builtin_memset(block, 0, kActivationBytes<V, D>);
  writeMultiple<V, D>(1.0f, block);
}

template <class V, DType D>
inline void quantizeGroupInUnits(const float* x, float maximum, float unitsPerValue, uint8_t* block) {
  if (maximum == 0.0f) return emptyGroupInUnits<V, D>(block);
  const float wanted = __builtin_ceilf(maximum * unitsPerValue * (1.0f / 127.0f));
  const float multiple = wanted < 1.0f ? 1.0f : wanted > kUnits ? kUnits : wanted;
  const float sum = roundGroup<V, D>(x, unitsPerValue / multiple, block), total = multiple * sum;
  writeMultiple<V, D>(multiple, block);
  __builtin_memcpy(block + 4, &total, 4);
  if constexpr (D == DType::kQ5K) __builtin_memset(block + 8, 0, 8);
  if constexpr (D == DType::kQ6K) startSums<V, D, 16, 32>(block);
  if constexpr (!kIsSixteenMore<formOf(D)>) return;
  if constexpr (V::kInt8Parts == 2) return startSums<V, D, kGroup, 16>(block);
  const int32_t start = V::startWords(-16 * int32_t(sum), 0);
  __builtin_memcpy(block + 8, &start, 4);
}

// Calls fn(values of group g, g); the last group is filled up with zeros.
template <class Fn>
inline void forEachGroup(const float* x, int32_t k, Fn fn) {
  const int whole = k / kGroup;
  for (int g = 0; g < whole; g++) fn(x + g * kGroup, g);
  if (whole * kGroup == k) return;
  float tail[kGroup] = {};
  __builtin_memcpy(tail, x + whole * kGroup, size_t(k - whole * kGroup) * 4);
  fn(tail, whole);
}

template <class V>
void quantizeRow8(const float* x, int32_t k, int32_t row, int32_t rows, uint8_t* quantized) {
  const RoundedRows to(roundedLayout<V, DType::kInt8>(), quantized, rows, k);
  forEachGroup(x, k, [&](const float* values, int g) { quantizeGroup8<V>(values, quantized + to.offset(row, g)); });
}

// Quantises a row for weights with units. Each group's greatest magnitude is kept in its block until that of the row is
// known.
template <class V, DType D>
void quantizeRowInUnits(const float* x, int32_t k, int32_t row, int32_t rows, uint8_t* quantized) {
  const RoundedRows to(roundedLayout<V, D>(), quantized, rows, k);
  uint8_t* const blocks = quantized + to.offset(row, 0);
  constexpr int kBlock = kActivationBytes<V, D>;
  float greatest = 0.0f;
  bool finite = true;
  forEachGroup(x, k, [&](const float* values, int g) {
    const float maximum = magnitudeOf<V>(values);
    finite = finite && maximum == maximum;
    greatest = maximum > greatest ? maximum : greatest;
    __builtin_memcpy(blocks + g * kBlock, &maximum, 4);
  });
  const bool empty = !finite || greatest < kSmallestMagnitude;
  const float unit = !finite ? __builtin_nanf("") : empty ? 0.0f : greatest / (127.0f * kUnits);
  __builtin_memcpy(quantized + 4 * row, &unit, 4);
  const float unitsPerValue = empty ? 0.0f : 127.0f * kUnits / greatest;
  forEachGroup(x, k, [&](const float* values, int g) {
    uint8_t* block = blocks + g * kBlock;
    if (empty) return emptyGroupInUnits<V, D>(block);
    quantizeGroupInUnits<V, D>(values, loadFloat(block), unitsPerValue, block);
  });
}

template <class V>
void quantizeRow(DType weights, const float* x, int32_t k, int32_t row, int32_t rows, void* blocks) {
  uint8_t* to = static_cast<uint8_t*>(blocks);
  if (weights == DType::kQ5K) return quantizeRowInUnits<V, DType::kQ5K>(x, k, row, rows, to);
  switch (formOf(weights)) {
    case DType::kInt8: return quantizeRow8<V>(x, k, row, rows, to);
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kMxfp4: return quantizeRowInUnits<V, DType::kQ5_0>(x, k, row, rows, to);
    case DType::kQ6K: return quantizeRowInUnits<V, DType::kQ6K>(x, k, row, rows, to);
    default: return quantizeRowInUnits<V, DType::kInt4>(x, k, row, rows, to);
  }
}

template <class V, DType D>
size_t quantizedBytesOf(int32_t rows, int32_t k) {
  return size_t(roundedLayout<V, D>().unitBytes(rows)) + size_t(rows) * groupsOf(k) * kActivationBytes<V, D>;
}

template <class V>
size_t quantizedBytes(DType weights, int32_t rows, int32_t k) {
  switch (formOf(weights)) {
    case DType::kInt8: return quantizedBytesOf<V, DType::kInt8>(rows, k);
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kMxfp4: return quantizedBytesOf<V, DType::kQ5_0>(rows, k);
    case DType::kQ6K: return quantizedBytesOf<V, DType::kQ6K>(rows, k);
    default: return quantizedBytesOf<V, DType::kInt4>(rows, k);
  }
}

}  // namespace
}  // namespace skein

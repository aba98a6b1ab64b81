#include "quantized-rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "kernels/half.h"
#include "power-scales.h"

namespace skein {
namespace {

// Rows that AWQ has in a word, from its lowest bits on.
constexpr int kAwqOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr float kE2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

int64_t ceilOf(int64_t count, int64_t size) { return count / size + (count % size != 0); }

float e4m3Value(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if ((code & 0x7f) == 0x7f) return NAN;
  const float size = exponent == 0 ? std::ldexp(float(fraction), -9) : std::ldexp(float(8 + fraction), exponent - 10);
  return code & 0x80 ? -size : size;
}

struct E4m3Table {
  float values[256];
  E4m3Table() {
    for (int code = 0; code < 256; code++) values[code] = e4m3Value(uint8_t(code));
  }
};
const E4m3Table kE4m3;

int64_t scaleBytes(ScaleType type) {
  return type == ScaleType::kF32 ? 4 : type == ScaleType::kF16 || type == ScaleType::kBf16 ? 2 : 1;
}

float scaleOf(ScaleType type, const uint8_t* p) {
  switch (type) {
    case ScaleType::kF32: return std::bit_cast<float>(uint32_t(load16(p)) | uint32_t(load16(p + 2)) << 16);
    case ScaleType::kF16: return halfToFloat(load16(p));
    case ScaleType::kBf16: return std::bit_cast<float>(uint32_t(load16(p)) << 16);
    case ScaleType::kE4m3: return kE4m3.values[*p];
    case ScaleType::kE8m0: return std::ldexp(1.0f, int(*p) - 127);
  }
  return NAN;
}

bool isReadAs(std::string_view name) {
  return name == "F32" || name == "Q4_0" || name == "Q5_0" || name == "Q8_0" || name == "MXFP4";
}

void checkPart(const QuantizedSource& source, const char* what, const FilePart& part, int64_t expected,
               OpenFiles& files) {
  if (part.bytes != expected) {
    throw std::runtime_error(part.file + ": the " + what + " of " + source.name + " take " + std::to_string(expected) +
                             " bytes, found " + std::to_string(part.bytes) + ".");
  }
  files.open(part.file).checkRange("tensor", part.offset, part.bytes);
}

}  // namespace

void checkQuantized(const ConvertJob& job, OpenFiles& files) {
  if (!job.quantized) return;
  const QuantizedSource& source = *job.quantized;
  if (source.rowsEach < 1 || source.columnsEach < 1)
    throw std::runtime_error(job.source + ": the blocks of " + source.name + " should have sizes greater than 0.");
  if (!isReadAs(job.type->name))
    throw std::runtime_error(job.source + ": " + source.name + " cannot be read as " + std::string(job.type->name) +
                             ".");
  const int64_t bits = codeBits(source.codes), inWord = 32 / bits;
  const int64_t down = ceilOf(job.rows, source.rowsEach), across = ceilOf(job.columns, source.columnsEach);
  const bool isByRows = source.order == CodeOrder::kRows;
  const bool fits = isByRows ? job.sourceByteLength % job.rows == 0 &&
                                   job.sourceByteLength / job.rows >= ceilOf(job.columns * bits, 8)
                             : job.sourceByteLength == job.rows * ceilOf(4 * job.columns, inWord) &&
                                   (source.order == CodeOrder::kGptq ? job.columns : job.rows) % inWord == 0;
  if (!fits) {
    throw std::runtime_error(job.source + ": the codes of " + source.name + " take another number of bytes than " +
                             std::to_string(job.sourceByteLength) + ".");
  }
  checkPart(source, "scales", source.scales, down * across * scaleBytes(source.scales.type), files);
  if (source.zeros) {
    const bool areBytes = source.zeros->order == ZeroOrder::kBytes;
    checkPart(source, "zero points", *source.zeros, areBytes ? down * across : 4 * ceilOf(down, inWord) * across,
              files);
  }
  if (source.groups) checkPart(source, "groups", *source.groups, 4 * job.columns, files);
  if (source.divisor) checkPart(source, "divisor", *source.divisor, 4, files);
}

void QuantizedRows::read(const ConvertJob& job, const OpenFiles& files, int64_t first, int64_t count,
                         std::vector<uint8_t>& target) {
  const QuantizedSource& source = *job.quantized;
  first_ = first;
  count_ = count;
  gridFirst_ = first / source.rowsEach;
  gridRows_ = (first + count - 1) / source.rowsEach + 1 - gridFirst_;
  gridColumns_ = ceilOf(job.columns, source.columnsEach);
  readCodes(job, files.at(job.source), first, count);
  readScales(job, files);
  readZeros(job, files);
  readGroups(job, files);
  target.resize(size_t(count * (job.columns / job.type->blockElements) * job.type->blockBytes));
  if (job.type->name != "F32") return putBlocks(job, target.data());
  float* floats = reinterpret_cast<float*>(target.data());
  const auto zero = [&](int64_t group) { return zeros_.empty() ? source.zero : zeros_[size_t(group)]; };
  switch (source.codes) {
    case Codes::kE4m3: return putFloats(job, floats, [](uint8_t code, int64_t) { return kE4m3.values[code]; });
    case Codes::kE2m1: return putFloats(job, floats, [](uint8_t code, int64_t) { return kE2m1[code]; });
    case Codes::kI8:
      return putFloats(job, floats, [&](uint8_t code, int64_t group) { return float(int8_t(code) - zero(group)); });
    default: return putFloats(job, floats, [&](uint8_t code, int64_t group) { return float(code - zero(group)); });
  }
}

void QuantizedRows::readCodes(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count) {
  const int64_t columns = job.columns, bits = codeBits(job.quantized->codes);
  codes_.resize(size_t(count * columns));
  if (job.quantized->order == CodeOrder::kRows) {
    const int64_t rowSize = job.sourceByteLength / job.rows;
    bytes_.resize(size_t(count * rowSize));
    source.read(bytes_.data(), count * rowSize, job.sourceOffset + first * rowSize);
    for (int64_t r = 0; r < count; r++) {
      const uint8_t* from = bytes_.data() + r * rowSize;
      uint8_t* to = codes_.data() + r * columns;
      if (bits == 8) std::copy(from, from + columns, to);
      else
        for (int64_t c = 0; c < columns; c++) to[c] = uint8_t(from[c / 2] >> (4 * (c & 1)) & 15);
    }
    return;
  }
  if (job.quantized->order == CodeOrder::kGptq) {
    const int64_t inWord = 32 / bits;
    words_.resize(size_t(count));
    for (int64_t column = 0; column < columns; column += inWord) {
      source.read(words_.data(), 4 * count, job.sourceOffset + 4 * (column / inWord * job.rows + first));
      for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < inWord; j++)
          codes_[size_t(r * columns + column + j)] = uint8_t(words_[size_t(r)] >> (bits * j) & ((1u << bits) - 1));
    }
    return;
  }
  const int64_t from = first / 8, inRow = ceilOf(first + count, 8) - from;
  words_.resize(size_t(inRow));
  for (int64_t c = 0; c < columns; c++) {
    source.read(words_.data(), 4 * inRow, job.sourceOffset + 4 * (c * (job.rows / 8) + from));
    for (int64_t w = 0; w < inRow; w++)
      for (int64_t j = 0; j < 8; j++) {
        const int64_t row = 8 * (from + w) + kAwqOrder[j] - first;
        if (row >= 0 && row < count) codes_[size_t(row * columns + c)] = uint8_t(words_[size_t(w)] >> (4 * j) & 15);
      }
  }
}

void QuantizedRows::readScales(const ConvertJob& job, const OpenFiles& files) {
  const QuantizedScales& scales = job.quantized->scales;
  const int64_t size = scaleBytes(scales.type);
  const PositionedFile& file = files.at(scales.file);
  bytes_.resize(size_t(gridRows_ * gridColumns_ * size));
  scales_.resize(size_t(gridRows_ * gridColumns_));
  if (!scales.byColumns) {
    file.read(bytes_.data(), gridRows_ * gridColumns_ * size, scales.offset + gridFirst_ * gridColumns_ * size);
  } else {
    for (int64_t g = 0; g < gridColumns_; g++)
      file.read(bytes_.data() + g * gridRows_ * size, gridRows_ * size,
                scales.offset + (g * job.rows + gridFirst_) * size);
  }
  if (scales.type == ScaleType::kE8m0) {
    const auto placeOf = [&](int64_t i) {
      return scales.offset +
             (scales.byColumns ? i / gridRows_ * job.rows + gridFirst_ + i % gridRows_ : gridFirst_ * gridColumns_ + i);
    };
    const int most = job.quantized->codes == Codes::kE2m1 ? kMxfp4Exponent : kAnyExponent;
    checkPowers(bytes_.data(), gridRows_ * gridColumns_, 1, most, job.quantized->name, placeOf, scales.file);
  }
  for (int64_t r = 0; r < gridRows_; r++)
    for (int64_t g = 0; g < gridColumns_; g++) {
      const int64_t at = scales.byColumns ? g * gridRows_ + r : r * gridColumns_ + g;
      scales_[size_t(r * gridColumns_ + g)] = scaleOf(scales.type, bytes_.data() + at * size);
    }
  if (!job.quantized->divisor) return;
  uint8_t one[4];
  files.at(job.quantized->divisor->file).read(one, 4, job.quantized->divisor->offset);
  const float divisor = scaleOf(ScaleType::kF32, one);
  for (float& scale : scales_) scale /= divisor;
}

void QuantizedRows::readZeros(const ConvertJob& job, const OpenFiles& files) {
  zeros_.clear();
  if (!job.quantized->zeros) return;
  const QuantizedZeros& zeros = *job.quantized->zeros;
  const PositionedFile& file = files.at(zeros.file);
  zeros_.resize(size_t(gridRows_ * gridColumns_));
  if (zeros.order == ZeroOrder::kBytes) {
    bytes_.resize(zeros_.size());
    file.read(bytes_.data(), int64_t(bytes_.size()), zeros.offset + gridFirst_ * gridColumns_);
    for (size_t i = 0; i < zeros_.size(); i++) zeros_[i] = int8_t(bytes_[i]);
    return;
  }
  const int64_t bits = codeBits(job.quantized->codes), inWord = 32 / bits;
  const int64_t from = gridFirst_ / inWord, down = ceilOf(gridFirst_ + gridRows_, inWord) - from;
  const bool byRows = zeros.order == ZeroOrder::kPackedRows;
  words_.resize(size_t(down * gridColumns_));
  if (byRows) {
    file.read(words_.data(), 4 * down * gridColumns_, zeros.offset + 4 * from * gridColumns_);
  } else {
    const int64_t across = ceilOf(ceilOf(job.rows, job.quantized->rowsEach), inWord);
    for (int64_t g = 0; g < gridColumns_; g++)
      file.read(words_.data() + g * down, 4 * down, zeros.offset + 4 * (g * across + from));
  }
  const uint32_t added = zeros.add * (bits == 4 ? 0x11111111u : 0x01010101u);
  for (int64_t w = 0; w < down; w++)
    for (int64_t g = 0; g < gridColumns_; g++) {
      const uint32_t word = words_[size_t(byRows ? w * gridColumns_ + g : g * down + w)] + added;
      for (int64_t j = 0; j < inWord; j++) {
        const int64_t place = zeros.order == ZeroOrder::kAwq ? kAwqOrder[j] : j;
        const int64_t at = inWord * (from + w) + place - gridFirst_;
        if (at >= 0 && at < gridRows_)
          zeros_[size_t(at * gridColumns_ + g)] = int32_t(word >> (bits * j) & ((1u << bits) - 1));
      }
    }
}

void QuantizedRows::readGroups(const ConvertJob& job, const OpenFiles& files) {
  groups_.resize(size_t(job.columns));
  const QuantizedSource& source = *job.quantized;
  if (!source.groups) {
    for (int64_t c = 0; c < job.columns; c++) groups_[size_t(c)] = int32_t(c / source.columnsEach);
    return;
  }
  files.at(source.groups->file).read(groups_.data(), 4 * job.columns, source.groups->offset);
  for (int64_t c = 0; c < job.columns; c++) {
    const int32_t group = groups_[size_t(c)];
    if (group >= 0 && group < gridColumns_) continue;
    throw std::runtime_error(source.groups->file + ": column " + std::to_string(c) + " of " + source.name +
                             " should be in a group below " + std::to_string(gridColumns_) + ", found " +
                             std::to_string(group) + ".");
  }
}

template <class Value>
void QuantizedRows::putFloats(const ConvertJob& job, float* target, const Value& value) const {
  const uint8_t* code = codes_.data();
  for (int64_t r = 0; r < count_; r++) {
    const int64_t block = groupsOf(*job.quantized, r);
    for (int64_t c = 0; c < job.columns; c++) {
      const int64_t group = block + groups_[size_t(c)];
      *target++ = value(*code++, group) * scales_[size_t(group)];
    }
  }
}

// Codes of elements 0 .. 15 low, those of 16 .. 31 high.
static void putNibbles(const uint8_t* codes, uint8_t* target) {
  for (int i = 0; i < 16; i++) target[i] = uint8_t((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

void QuantizedRows::putBlocks(const ConvertJob& job, uint8_t* target) const {
  const QuantizedSource& source = *job.quantized;
  const int64_t blocks = job.columns / kGroup;
  const std::string_view type = job.type->name;
  const uint8_t* codes = codes_.data();
  for (int64_t r = 0; r < count_; r++)
    for (int64_t b = 0; b < blocks; b++, codes += kGroup, target += job.type->blockBytes) {
      const size_t group = size_t(groupsOf(source, r) + groups_[size_t(b * kGroup)]);
      const float scale = scales_[group];
      if (type == "MXFP4") {
        target[0] = uint8_t(127 + std::ilogb(scale));
        putNibbles(codes, target + 1);
        continue;
      }
      const uint16_t half = halfScale(job, r, scale);
      target[0] = uint8_t(half);
      target[1] = uint8_t(half >> 8);
      const int32_t zero = zeros_.empty() ? source.zero : zeros_[group];
      if (type == "Q4_0") {
        putNibbles(codes, target + 2);
      } else if (type == "Q8_0") {
        for (int i = 0; i < kGroup; i++) target[2 + i] = uint8_t(codes[i] - zero);
      } else {
        uint8_t quants[kGroup];
        uint32_t fifths = 0;
        for (int i = 0; i < kGroup; i++) {
          quants[i] = uint8_t(codes[i] + 16 - zero);
          fifths |= uint32_t(quants[i] >> 4 & 1) << i;
        }
        for (int i = 0; i < 4; i++) target[2 + i] = uint8_t(fifths >> (8 * i));
        putNibbles(quants, target + 6);
      }
    }
}

uint16_t QuantizedRows::halfScale(const ConvertJob& job, int64_t row, float scale) const {
  const uint16_t half = toHalf(scale);
  if ((half & 0x7fff) != 0x7c00 || std::isinf(scale)) return half;
  const QuantizedSource& source = *job.quantized;
  throw std::runtime_error(source.scales.file + ": row " + std::to_string(first_ + row) + " of " + source.name +
                           " has a scale beyond 65504, the greatest number of half precision.");
}

}  // namespace skein

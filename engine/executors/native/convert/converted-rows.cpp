#include "converted-rows.h"

#include <algorithm>
#include <stdexcept>

#include "power-scales.h"
#include "quantize.h"

namespace skein {
namespace {

constexpr int64_t kMaxColumns = 1 << 24;
constexpr int64_t kMaxRows = int64_t(1) << 32;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

// Row of the source that holds target row `row`. llama.cpp stores the halves of a head as pairs:
//
//   target (halves)   0 1 2 3 | 4 5 6 7      row = half * size + i
//   source (pairs)    0 4 1 5 2 6 3 7        row = 2 * i + half
int64_t sourceRow(int64_t row, int64_t headRows) {
  const int64_t head = row / headRows, inside = row % headRows, size = headRows / 2;
  return head * headRows + 2 * (inside % size) + inside / size;
}

// The rows of the source that hold target rows from `first` on, and those between them.
struct SourceSpan {
  int64_t first, count;
};
SourceSpan spanOf(const ConvertJob& job, int64_t first, int64_t count) {
  if (job.interleavedHeads == 0) return {first, count};
  const int64_t headRows = job.rows / job.interleavedHeads;
  int64_t least = sourceRow(first, headRows), most = least;
  for (int64_t row = first + 1; row < first + count; row++) {
    const int64_t at = sourceRow(row, headRows);
    least = std::min(least, at);
    most = std::max(most, at);
  }
  return {least, most - least + 1};
}

// Takes target rows from `first` on, `size` bytes each, out of the rows of a span; of heads that are interleaved alone.
void pickRows(const ConvertJob& job, SourceSpan span, int64_t first, int64_t count, int64_t size, const uint8_t* rows,
              uint8_t* target) {
  const int64_t headRows = job.rows / job.interleavedHeads;
  for (int64_t r = 0; r < count; r++) {
    const uint8_t* row = rows + (sourceRow(first + r, headRows) - span.first) * size;
    std::copy(row, row + size, target + r * size);
  }
}

// Bytes of a row below which a read of each row by itself takes longer than one of all.
constexpr int64_t kShortRow = 64;

}  // namespace

void checkSource(const ConvertJob& job, const PositionedFile& source) {
  const std::string shape = "[" + std::to_string(job.rows) + ", " + std::to_string(job.columns) + "]";
  if (job.rows < 1 || job.rows > kMaxRows || job.columns < 1 || job.columns > kMaxColumns) {
    fail(job.source + ": a tensor of shape " + shape + " is out of range.");
  }
  if (job.columns % job.type->blockElements != 0) {
    fail(job.source + ": rows of " + std::to_string(job.columns) + " elements do not hold whole blocks of " +
         std::string(job.type->name) + " (" + std::to_string(job.type->blockElements) + " elements).");
  }
  // At most 2^32 rows of 2^24 * 4 bytes: no product here overflows 63 bits.
  const int64_t expected = job.rows * (job.columns / job.type->blockElements * job.type->blockBytes);
  if (!job.quantized && job.sourceByteLength != expected) {
    fail(job.source + ": a tensor of type " + std::string(job.type->name) + " and shape " + shape + " takes " +
         std::to_string(expected) + " bytes, found " + std::to_string(job.sourceByteLength) + ".");
  }
  if (job.interleavedHeads < 0 || (job.interleavedHeads > 0 && job.rows % (2 * job.interleavedHeads) != 0)) {
    fail(job.source + ": " + std::to_string(job.rows) + " rows do not divide into " +
         std::to_string(job.interleavedHeads) + " heads of interleaved halves.");
  }
  if (job.transposed && (job.type->blockElements != 1 || job.quantized)) {
    fail(job.source + ": a transposed tensor of type " + std::string(job.type->name) +
         " cannot be turned; its elements must be single numbers.");
  }
  const WeightFormat& format = formatOf(job.targetType);
  if (!format.made && !exactConversion(*job.type, job.targetType)) {
    fail(job.source + ": a tensor of type " + std::string(job.type->name) + " cannot be stored as " + format.name +
         ", a format that only keeps numbers which a file has in it.");
  }
  source.checkRange("tensor", job.sourceOffset, job.sourceByteLength);
}

void ConvertedRows::read(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count) {
  const int64_t rowBytes = job.columns / job.type->blockElements * job.type->blockBytes;
  raw_.resize(size_t(count * rowBytes));
  const SourceSpan span = spanOf(job, first, count);
  if (job.interleavedHeads == 0 && (!job.transposed || count == job.rows)) {
    source.read(raw_.data(), count * rowBytes, job.sourceOffset + first * rowBytes);
  } else if (job.transposed) {
    const int64_t element = job.type->blockBytes;
    for (int64_t c = 0; c < job.columns; c++) {
      uint8_t* target = raw_.data() + c * count * element;
      const int64_t from = job.sourceOffset + (c * job.rows + span.first) * element;
      if (job.interleavedHeads == 0) {
        source.read(target, count * element, from);
        continue;
      }
      heads_.resize(size_t(span.count * element));
      source.read(heads_.data(), span.count * element, from);
      pickRows(job, span, first, count, element, heads_.data(), target);
    }
  } else if (job.interleavedHeads > 0 && rowBytes < kShortRow) {
    heads_.resize(size_t(span.count * rowBytes));
    source.read(heads_.data(), span.count * rowBytes, job.sourceOffset + span.first * rowBytes);
    pickRows(job, span, first, count, rowBytes, heads_.data(), raw_.data());
  } else {
    const int64_t headRows = job.rows / job.interleavedHeads;
    for (int64_t r = 0; r < count; r++) {
      const int64_t from = job.sourceOffset + sourceRow(first + r, headRows) * rowBytes;
      source.read(raw_.data() + r * rowBytes, rowBytes, from);
    }
  }
}

// Refuses scales of MXFP4 that are no numbers, in the rows from `first` on that were read.
void ConvertedRows::checkScales(const ConvertJob& job, int64_t first, int64_t count) const {
  const int64_t inRow = job.columns / job.type->blockElements, blockBytes = job.type->blockBytes;
  const auto placeOf = [&](int64_t block) {
    const int64_t row = first + block / inRow;
    const int64_t at = job.interleavedHeads == 0 ? row : sourceRow(row, job.rows / job.interleavedHeads);
    return job.sourceOffset + (at * inRow + block % inRow) * blockBytes;
  };
  checkPowers(raw_.data(), count * inRow, blockBytes, kMxfp4Exponent, "a tensor in MXFP4", placeOf, job.source);
}

// Where heads are interleaved, all rows from the first to the last are read, and put in order.
void ConvertedRows::readQuantized(const ConvertJob& job, const OpenFiles& files, int64_t first, int64_t count) {
  if (job.interleavedHeads == 0) return quantized_.read(job, files, first, count, raw_);
  const SourceSpan span = spanOf(job, first, count);
  quantized_.read(job, files, span.first, span.count, heads_);
  const int64_t rowSize = int64_t(heads_.size()) / span.count;
  raw_.resize(size_t(count * rowSize));
  pickRows(job, span, first, count, rowSize, heads_.data(), raw_.data());
}

const uint8_t* ConvertedRows::of(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count,
                                 const OpenFiles* files) {
  if (job.quantized && files) readQuantized(job, *files, first, count);
  else read(job, source, first, count);
  if (!job.quantized && job.type->name == "MXFP4") checkScales(job, first, count);
  const int64_t blocks = count * (job.columns / job.type->blockElements);
  const ExactConversion exact = job.isCopied() ? exactConversion(*job.type, job.targetType) : nullptr;
  // Blocks of one size are the same blocks.
  if (exact && size_t(job.type->blockBytes) == blockBytes(job.targetType)) return raw_.data();
  const size_t targetBytes = size_t(count) * rowBytes(job.targetType, job.columns);
  if (exact) {
    converted_.resize(targetBytes);
    exact(raw_.data(), blocks, converted_.data());
    return converted_.data();
  }
  floats_.resize(size_t(count * job.columns));
  job.type->toF32(raw_.data(), blocks, floats_.data());
  if (job.transposed) transpose(count, job.columns);
  if (job.addend != 0)
    for (float& x : floats_) x += job.addend;
  if (job.factor != 1)
    for (float& x : floats_) x *= job.factor;
  if (job.targetType == DType::kF32) return reinterpret_cast<const uint8_t*>(floats_.data());
  converted_.resize(targetBytes);
  round(job.targetType, count, job.columns);
  return converted_.data();
}

// Transposes floats_ from [columns, rows] to [rows, columns].
void ConvertedRows::transpose(int64_t rows, int64_t columns) {
  turned_.resize(floats_.size());
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) turned_[size_t(r * columns + c)] = floats_[size_t(c * rows + r)];
  floats_.swap(turned_);
}

// Rounds floats_ into converted_.
void ConvertedRows::round(DType type, int64_t rows, int64_t columns) {
  if (type == DType::kBf16) {
    uint16_t* rounded = reinterpret_cast<uint16_t*>(converted_.data());
    for (int64_t i = 0; i < rows * columns; i++) rounded[i] = floatToBf16(floats_[size_t(i)]);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    quantizeWeights(type, floats_.data() + r * columns, columns,
                    converted_.data() + r * int64_t(rowBytes(type, columns)));
}

}  // namespace skein

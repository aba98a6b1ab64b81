#pragma once
#include <cstdint>
#include <vector>

#include "convert.h"
#include "open-files.h"

namespace skein {

// Opens the files of a quantised matrix, and throws std::runtime_error unless each part has the bytes that the shape asks for and lies
// within its file.
void checkQuantized(const ConvertJob& job, OpenFiles& files);

// Reads rows of quantised matrices as blocks of the job's type (F32, Q4_0, Q5_0, Q8_0 or MXFP4) in memory of its own, which it reuses.
class QuantizedRows {
 public:
  // Rows `first` to `first + count` of a job with `quantized`, into `target`. Throws std::runtime_error as reading does, and for numbers
  // that no block has.
  void read(const ConvertJob& job, const OpenFiles& files, int64_t first, int64_t count, std::vector<uint8_t>& target);

 private:
  void readCodes(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count);
  void readScales(const ConvertJob& job, const OpenFiles& files);
  void readZeros(const ConvertJob& job, const OpenFiles& files);
  void readGroups(const ConvertJob& job, const OpenFiles& files);
  template <class Value>
  void putFloats(const ConvertJob& job, float* target, const Value& value) const;
  void putBlocks(const ConvertJob& job, uint8_t* target) const;
  uint16_t halfScale(const ConvertJob& job, int64_t row, float scale) const;
  // The first group of a row of the piece.
  int64_t groupsOf(const QuantizedSource& source, int64_t row) const {
    return ((first_ + row) / source.rowsEach - gridFirst_) * gridColumns_;
  }

  // The piece, and its part of the grid of scales.
  int64_t first_ = 0, count_ = 0;
  int64_t gridFirst_ = 0, gridRows_ = 0, gridColumns_ = 0;
  std::vector<uint8_t> codes_, bytes_;
  std::vector<uint32_t> words_;
  std::vector<float> scales_;
  std::vector<int32_t> zeros_, groups_;
};

}  // namespace skein

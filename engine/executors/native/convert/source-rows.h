#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "convert.h"
#include "converted-rows.h"
#include "positioned-file.h"

namespace skein {

// Memory of one thread for the rows that it reads.
struct RowsBuffer {
  ConvertedRows converted;
  std::vector<uint8_t> joined;
};

// The rows of a tensor that lies in a checkpoint's file: those of each job, one after the other, with the bytes that
// weights.bin would have. Threads may read at once, each into a buffer of its own.
class SourceRows {
 public:
  // The jobs, which must outlive this, read one file and have one number of columns and one target type; what they say of the target's
  // place does not count. Throws std::runtime_error as checkSource() does, or if they are not alike.
  SourceRows(const std::vector<ConvertJob>& jobs, std::shared_ptr<const PositionedFile> file);

  int64_t rows() const { return rows_; }
  size_t rowSize() const { return rowSize_; }
  // Rows `first` to `first + count`, until the buffer is used again. Throws std::runtime_error if the file cannot be read.
  const uint8_t* read(int64_t first, int64_t count, RowsBuffer& buffer) const;

 private:
  const std::vector<ConvertJob>* jobs_;
  std::shared_ptr<const PositionedFile> file_;
  int64_t rows_ = 0;
  size_t rowSize_ = 0;
};

// CRC-32 of all rows, as zlib computes it, on `threads` threads. Throws as read() does.
uint32_t checksumOf(const SourceRows& rows, int32_t threads);

}  // namespace skein

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "quantized-source.h"
#include "tensor-types.h"

namespace skein {

// One tensor, or a slice of a stacked one, from a checkpoint file into the target file.
struct ConvertJob {
  std::string source;
  int64_t sourceOffset;
  int64_t sourceByteLength;
  const TensorType* type;
  int64_t rows;
  int64_t columns;
  int64_t interleavedHeads;  // 0 = the rows are in order
  bool transposed = false;   // the source holds [columns, rows]
  float addend = 0;          // added to each element
  float factor = 1;          // by which each is multiplied then
  bool isCopied() const {
    return !transposed && addend == 0 && factor == 1;
  }  // the target has the source's numbers, in their order
  // Other parts of a quantised matrix, whose codes the source's bytes are: it is read as blocks of `type`. Null: it is plain.
  std::shared_ptr<const QuantizedSource> quantized = nullptr;
  int64_t targetOffset;
  DType targetType;
};

// Converts all jobs into `target`, an existing file of its final size, on `threads` threads. Every bound is checked
// against the files' present sizes first; throws std::runtime_error naming the file and the bound. Files are read and
// written by position, not mapped, so that a file truncated or a disk filled meanwhile causes an error and not a
// signal.
void convert(const std::string& target, const std::vector<ConvertJob>& jobs, int32_t threads);

// Bytes of a file.
struct FileRange {
  int64_t offset, bytes;
};

// CRC-32 of each range of a file, as zlib computes it, on `threads` threads. Throws std::runtime_error as convert() does.
std::vector<uint32_t> checksums(const std::string& file, const std::vector<FileRange>& ranges, int32_t threads);

}  // namespace skein

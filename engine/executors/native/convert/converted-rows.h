#pragma once
#include <cstdint>
#include <vector>

#include "convert.h"
#include "open-files.h"
#include "positioned-file.h"
#include "quantized-rows.h"

namespace skein {

// Throws std::runtime_error if the job's tensor is not one that can be converted, or does not lie within the file at its present size.
void checkSource(const ConvertJob& job, const PositionedFile& source);

// Converts pieces of tensors in memory of its own, which it reuses.
class ConvertedRows {
 public:
  // Rows `first` to `first + count` of a job in the target's format, until the next call. `files` has those of a quantised matrix.
  const uint8_t* of(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count,
                    const OpenFiles* files = nullptr);

 private:
  void read(const ConvertJob& job, const PositionedFile& source, int64_t first, int64_t count);
  void checkScales(const ConvertJob& job, int64_t first, int64_t count) const;
  void readQuantized(const ConvertJob& job, const OpenFiles& files, int64_t first, int64_t count);
  void transpose(int64_t rows, int64_t columns);
  void round(DType type, int64_t rows, int64_t columns);

  QuantizedRows quantized_;
  std::vector<uint8_t> raw_, heads_;
  std::vector<float> floats_, turned_;
  std::vector<uint8_t> converted_;
};

}  // namespace skein

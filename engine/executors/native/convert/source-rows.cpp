#include "source-rows.h"

#include <algorithm>
#include <stdexcept>

namespace skein {

SourceRows::SourceRows(const std::vector<ConvertJob>& jobs, std::shared_ptr<const PositionedFile> file)
    : jobs_(&jobs), file_(std::move(file)) {
  if (jobs.empty()) throw std::runtime_error("A tensor in a checkpoint's file needs at least one piece.");
  const ConvertJob& first = jobs.front();
  for (const ConvertJob& job : jobs) {
    if (job.source != first.source || job.columns != first.columns || job.targetType != first.targetType) {
      throw std::runtime_error(job.source + ": the pieces of a tensor differ in their file, columns or target type.");
    }
    checkSource(job, *file_);
    rows_ += job.rows;
  }
  rowSize_ = rowBytes(first.targetType, first.columns);
}

const uint8_t* SourceRows::read(int64_t first, int64_t count, RowsBuffer& buffer) const {
  buffer.joined.clear();
  int64_t before = 0;
  for (const ConvertJob& job : *jobs_) {
    const int64_t begin = std::max(first, before), end = std::min(first + count, before + job.rows);
    if (begin < end) {
      const uint8_t* rows = buffer.converted.of(job, *file_, begin - before, end - begin);
      if (end - begin == count) return rows;
      buffer.joined.insert(buffer.joined.end(), rows, rows + size_t(end - begin) * rowSize_);
    }
    before += job.rows;
  }
  return buffer.joined.data();
}

}  // namespace skein

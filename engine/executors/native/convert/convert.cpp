#include "convert.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "converted-rows.h"
#include "executor/checksums.h"
#include "open-files.h"
#include "quantized-rows.h"
#include "source-rows.h"

namespace skein {
namespace {

// Number of elements in a piece of rows, about: 1 MiB of float32.
constexpr int64_t kPieceElements = 1 << 18;
// Least number of rows in a piece of a transposed source, which is read piece by piece.
constexpr int64_t kTransposedRows = 256;
// Number of elements in a piece of a quantised matrix that lies by columns, about; and its least number of rows.
constexpr int64_t kByColumnsElements = 1 << 22, kByColumnsRows = 32;
// Bytes that are read and summed up at once.
constexpr int64_t kSummedBytes = 1 << 20;

// A job with its open file and its share of the pieces.
struct Work {
  const ConvertJob* job;
  const PositionedFile* source;
  int64_t rowsPerPiece;
  int64_t firstPiece;
};

// Rows that are converted at once: many where a row does not lie in one place.
int64_t rowsOfPiece(const ConvertJob& job) {
  if (job.quantized && job.quantized->order != CodeOrder::kRows)
    return std::max(kByColumnsRows, kByColumnsElements / job.columns);
  return std::max<int64_t>(job.transposed ? kTransposedRows : 1, kPieceElements / job.columns);
}

void runPiece(ConvertedRows& rows, const Work& work, const OpenFiles& files, const PositionedFile& target,
              int64_t piece) {
  const ConvertJob& job = *work.job;
  const int64_t rowSize = int64_t(rowBytes(job.targetType, job.columns));
  const int64_t first = piece * work.rowsPerPiece, count = std::min(work.rowsPerPiece, job.rows - first);
  target.write(rows.of(job, *work.source, first, count, &files), count * rowSize, job.targetOffset + first * rowSize);
}

// Runs pieces 0 .. pieces - 1 on up to `threads` threads. worker() makes the function of one thread, which is called with numbers
// that grow. Throws the first error.
template <class Worker>
void eachPiece(int64_t pieces, int32_t threads, const Worker& worker) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      auto run = worker();
      for (int64_t i; (i = next.fetch_add(1)) < pieces;) run(i);
    } catch (...) {
      next = pieces;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (int32_t i = 1; i < threads && i < pieces; i++) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads can be started: the existing ones do the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

void convert(const std::string& targetPath, const std::vector<ConvertJob>& jobs, int32_t threads) {
  const PositionedFile target(targetPath, PositionedFile::Role::kTarget);
  OpenFiles files;
  std::vector<Work> works;
  int64_t pieces = 0;
  for (const ConvertJob& job : jobs) {
    const PositionedFile& source = files.open(job.source);
    checkSource(job, source);
    target.checkRange("converted tensor", job.targetOffset, job.rows * int64_t(rowBytes(job.targetType, job.columns)));
    checkQuantized(job, files);
    const int64_t rowsPerPiece = rowsOfPiece(job);
    works.push_back({&job, &source, rowsPerPiece, pieces});
    pieces += (job.rows + rowsPerPiece - 1) / rowsPerPiece;
  }

  eachPiece(pieces, threads, [&] {
    return [&, rows = ConvertedRows(), at = size_t(0)](int64_t i) mutable {
      while (at + 1 < works.size() && works[at + 1].firstPiece <= i) at++;
      runPiece(rows, works[at], files, target, i - works[at].firstPiece);
    };
  });
}

std::vector<uint32_t> checksums(const std::string& path, const std::vector<FileRange>& ranges, int32_t threads) {
  const PositionedFile file(path, PositionedFile::Role::kSource);
  struct Part {
    int64_t offset, bytes;
    uint32_t sum;
  };
  std::vector<Part> parts;
  for (const FileRange& range : ranges) {
    file.checkRange("summed", range.offset, range.bytes);
    for (int64_t at = 0; at < range.bytes; at += kSummedBytes)
      parts.push_back({range.offset + at, std::min(kSummedBytes, range.bytes - at), 0});
  }
  eachPiece(int64_t(parts.size()), threads, [&] {
    return [&, buffer = std::vector<uint8_t>(size_t(kSummedBytes))](int64_t i) mutable {
      Part& part = parts[size_t(i)];
      file.read(buffer.data(), part.bytes, part.offset);
      part.sum = crc32Of(buffer.data(), size_t(part.bytes));
    };
  });
  std::vector<uint32_t> sums;
  auto part = parts.begin();
  for (const FileRange& range : ranges) {
    uint32_t sum = 0;
    for (int64_t left = range.bytes; left > 0; left -= (part++)->bytes)
      sum = crc32Joined(sum, part->sum, uint64_t(part->bytes));
    sums.push_back(sum);
  }
  return sums;
}

uint32_t checksumOf(const SourceRows& rows, int32_t threads) {
  const int64_t rowSize = int64_t(rows.rowSize()), rowsPerPiece = std::max<int64_t>(1, kSummedBytes / rowSize);
  std::vector<uint32_t> sums(size_t((rows.rows() + rowsPerPiece - 1) / rowsPerPiece));
  const auto countOf = [&](size_t piece) {
    return std::min(rowsPerPiece, rows.rows() - int64_t(piece) * rowsPerPiece);
  };
  eachPiece(int64_t(sums.size()), threads, [&] {
    return [&, buffer = RowsBuffer()](int64_t i) mutable {
      const int64_t count = countOf(size_t(i));
      sums[size_t(i)] = crc32Of(rows.read(i * rowsPerPiece, count, buffer), size_t(count * rowSize));
    };
  });
  uint32_t sum = 0;
  for (size_t i = 0; i < sums.size(); i++) sum = crc32Joined(sum, sums[i], uint64_t(countOf(i) * rowSize));
  return sum;
}

}  // namespace skein

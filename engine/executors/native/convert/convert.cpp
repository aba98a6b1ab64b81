#include "convert.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "../coded_error.h"
#include "quantize.h"

namespace skein {
namespace {

// Number of elements in a piece of rows, about: 1 MiB of float32.
constexpr int64_t kPieceElements = 1 << 18;
// Least number of rows in a piece of a transposed source, which is read piece by piece.
constexpr int64_t kTransposedRows = 256;
constexpr int64_t kMaxColumns = 1 << 24;
constexpr int64_t kMaxRows = int64_t(1) << 32;

enum class Role { kSource, kTarget };

[[noreturn]] void fail(const std::string& what, Role role = Role::kSource) {
  if (role == Role::kTarget) throw CodedError(kTargetFile, what);
  throw std::runtime_error(what);
}

// A file opened for reading or writing. O_NONBLOCK: a pipe in the place of a file is refused, not waited for; the flag
// has no effect on files.
class File {
 public:
  File(const std::string& path, Role role)
      : path_(path),
        role_(role),
        fd_(open(path.c_str(), (role == Role::kTarget ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail(path + ": cannot be opened: " + std::strerror(errno) + ".", role);
    struct stat status;
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(fd_);
      fail(path + ": is not a regular file.", role);
    }
    size_ = status.st_size;
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int64_t size() const { return size_; }

  void read(void* buffer, int64_t length, int64_t offset) const {
    auto* bytes = static_cast<char*>(buffer);
    while (length > 0) {
      const ssize_t got = pread(fd_, bytes, size_t(length), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        fail(path_ + ": cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno) + ".");
      if (got == 0) {
        fail(path_ + ": ended at byte " + std::to_string(offset) + " while it was read; it was " +
             std::to_string(size_) + " bytes long before.");
      }
      bytes += got, offset += got, length -= got;
    }
  }

  void write(const void* buffer, int64_t length, int64_t offset) const {
    auto* bytes = static_cast<const char*>(buffer);
    while (length > 0) {
      const ssize_t put = pwrite(fd_, bytes, size_t(length), offset);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) fail(path_ + ": cannot be written: " + std::strerror(put < 0 ? errno : EIO) + ".", role_);
      bytes += put, offset += put, length -= put;
    }
  }

 private:
  std::string path_;
  Role role_;
  int fd_;
  int64_t size_ = 0;
};

// A job with its open file and its share of the pieces.
struct Work {
  const ConvertJob* job;
  const File* source;
  int64_t rowsPerPiece;
  int64_t firstPiece;
};

void checkRange(const std::string& path, const char* what, int64_t offset, int64_t length, int64_t size, Role role) {
  if (offset < 0 || length < 0 || offset > size || length > size - offset) {
    fail(path + ": " + what + " bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
         " lie beyond the file's " + std::to_string(size) + " bytes.",
         role);
  }
}

void checkJob(const ConvertJob& job, const File& source, const std::string& targetPath, const File& target) {
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
  if (job.sourceByteLength != expected) {
    fail(job.source + ": a tensor of type " + std::string(job.type->name) + " and shape " + shape + " takes " +
         std::to_string(expected) + " bytes, found " + std::to_string(job.sourceByteLength) + ".");
  }
  if (job.interleavedHeads < 0 || (job.interleavedHeads > 0 && job.rows % (2 * job.interleavedHeads) != 0)) {
    fail(job.source + ": " + std::to_string(job.rows) + " rows do not divide into " +
         std::to_string(job.interleavedHeads) + " heads of interleaved halves.");
  }
  if (job.transposed && (job.type->blockElements != 1 || job.interleavedHeads != 0)) {
    fail(job.source + ": a transposed tensor of type " + std::string(job.type->name) +
         " cannot be turned; its elements must "
         "be single numbers, in the order of rows.");
  }
  const WeightFormat& format = formatOf(job.targetType);
  if (!format.made && !exactConversion(*job.type, job.targetType)) {
    fail(job.source + ": a tensor of type " + std::string(job.type->name) + " cannot be stored as " + format.name +
         ", a format that only keeps numbers which a file has in it.");
  }
  checkRange(job.source, "tensor", job.sourceOffset, job.sourceByteLength, source.size(), Role::kSource);
  checkRange(targetPath, "converted tensor", job.targetOffset,
             job.rows * int64_t(rowBytes(job.targetType, job.columns)), target.size(), Role::kTarget);
}

// Row of the source that holds target row `row`. llama.cpp stores the halves of a head as pairs:
//
//   target (halves)   0 1 2 3 | 4 5 6 7      row = half * size + i
//   source (pairs)    0 4 1 5 2 6 3 7        row = 2 * i + half
int64_t sourceRow(int64_t row, int64_t headRows) {
  const int64_t head = row / headRows, inside = row % headRows, size = headRows / 2;
  return head * headRows + 2 * (inside % size) + inside / size;
}

class Piece {
 public:
  void run(const Work& work, const File& target, int64_t piece) {
    const ConvertJob& job = *work.job;
    const int64_t begin = piece * work.rowsPerPiece;
    const int64_t rows = std::min(work.rowsPerPiece, job.rows - begin);
    const int64_t blocks = job.columns / job.type->blockElements;
    const int64_t sourceBytes = blocks * job.type->blockBytes;
    raw_.resize(size_t(rows * sourceBytes));
    if (job.transposed) {
      const int64_t element = job.type->blockBytes;
      for (int64_t c = 0; c < job.columns; c++)
        work.source->read(raw_.data() + c * rows * element, rows * element,
                          job.sourceOffset + (c * job.rows + begin) * element);
    } else if (job.interleavedHeads == 0) {
      work.source->read(raw_.data(), rows * sourceBytes, job.sourceOffset + begin * sourceBytes);
    } else {
      const int64_t headRows = job.rows / job.interleavedHeads;
      for (int64_t r = 0; r < rows; r++) {
        const int64_t from = job.sourceOffset + sourceRow(begin + r, headRows) * sourceBytes;
        work.source->read(raw_.data() + r * sourceBytes, sourceBytes, from);
      }
    }
    const size_t targetBytes = size_t(rows) * rowBytes(job.targetType, job.columns);
    const int64_t to = job.targetOffset + begin * int64_t(rowBytes(job.targetType, job.columns));
    const ExactConversion exact =
        job.transposed || job.addend != 0 ? nullptr : exactConversion(*job.type, job.targetType);
    if (exact) {
      converted_.resize(targetBytes);
      exact(raw_.data(), rows * blocks, converted_.data());
      return target.write(converted_.data(), int64_t(targetBytes), to);
    }
    floats_.resize(size_t(rows * job.columns));
    job.type->toF32(raw_.data(), rows * blocks, floats_.data());
    if (job.transposed) transpose(rows, job.columns);
    if (job.addend != 0)
      for (float& x : floats_) x += job.addend;
    if (job.targetType == DType::kF32) return target.write(floats_.data(), int64_t(targetBytes), to);
    converted_.resize(targetBytes);
    round(job.targetType, rows, job.columns);
    target.write(converted_.data(), int64_t(targetBytes), to);
  }

 private:
  // Transposes floats_ from [columns, rows] to [rows, columns].
  void transpose(int64_t rows, int64_t columns) {
    turned_.resize(floats_.size());
    for (int64_t c = 0; c < columns; c++)
      for (int64_t r = 0; r < rows; r++) turned_[size_t(r * columns + c)] = floats_[size_t(c * rows + r)];
    floats_.swap(turned_);
  }

  // Rounds floats_ into converted_.
  void round(DType type, int64_t rows, int64_t columns) {
    if (type == DType::kBf16) {
      uint16_t* rounded = reinterpret_cast<uint16_t*>(converted_.data());
      for (int64_t i = 0; i < rows * columns; i++) rounded[i] = floatToBf16(floats_[size_t(i)]);
      return;
    }
    for (int64_t r = 0; r < rows; r++)
      quantizeWeights(type, floats_.data() + r * columns, columns,
                      converted_.data() + r * int64_t(rowBytes(type, columns)));
  }

  std::vector<uint8_t> raw_;
  std::vector<float> floats_, turned_;
  std::vector<uint8_t> converted_;
};

}  // namespace

void convert(const std::string& targetPath, const std::vector<ConvertJob>& jobs, int32_t threads) {
  const File target(targetPath, Role::kTarget);
  std::map<std::string, std::unique_ptr<File>> sources;
  std::vector<Work> works;
  int64_t pieces = 0;
  for (const ConvertJob& job : jobs) {
    auto& source = sources[job.source];
    if (!source) source = std::make_unique<File>(job.source, Role::kSource);
    checkJob(job, *source, targetPath, target);
    const int64_t rowsPerPiece = std::max<int64_t>(job.transposed ? kTransposedRows : 1, kPieceElements / job.columns);
    works.push_back({&job, source.get(), rowsPerPiece, pieces});
    pieces += (job.rows + rowsPerPiece - 1) / rowsPerPiece;
  }

  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  auto work = [&] {
    try {
      Piece piece;
      size_t at = 0;
      for (int64_t i; (i = next.fetch_add(1)) < pieces;) {
        while (at + 1 < works.size() && works[at + 1].firstPiece <= i) at++;
        piece.run(works[at], target, i - works[at].firstPiece);
      }
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

}  // namespace skein

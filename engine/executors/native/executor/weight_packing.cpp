#include "executor/weight_packing.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>

#include "executor/checksums.h"

namespace skein {
namespace {

constexpr size_t kPanelPieceBytes = 1 << 20;

// Some panels of a matrix.
struct Piece {
  const MatrixToPack* matrix;
  int32_t firstPanel, panels;
  uint32_t sums[2] = {};  // CRC-32 of the rows of each half
};

// Memory of one thread.
struct Scratch {
  RowsBuffer read;
  std::vector<uint8_t> rows, panels;
};

class Packing {
 public:
  Packing(const std::vector<MatrixToPack>& matrices, const KernelTable& kernels, const PackingTarget& target)
      : kernels_(kernels), target_(target) {
    for (const MatrixToPack& matrix : matrices) {
      const int32_t panels = (matrix.n + kernels.panelWidth - 1) / kernels.panelWidth;
      const size_t together = panelBytes(matrix) * static_cast<size_t>(halves(matrix));
      const int32_t most = static_cast<int32_t>(std::max<size_t>(1, kPanelPieceBytes / together));
      for (int32_t first = 0; first < panels; first += most)
        pieces_.push_back({&matrix, first, std::min(most, panels - first)});
    }
  }

  // False if the file could not be written. Throws if a source could not be read.
  bool run(ThreadPool& pool) {
    std::vector<Scratch> scratch(static_cast<size_t>(pool.threads()));
    pool.run(static_cast<int32_t>(pieces_.size()), [&](int32_t piece, int32_t thread) {
      if (!failed_) tryPiece(pieces_[static_cast<size_t>(piece)], scratch[static_cast<size_t>(thread)]);
    });
    if (error_) std::rethrow_exception(error_);
    return !failed_;
  }

  uint32_t sumOf(const MatrixToPack& matrix) const {
    uint32_t sum = 0;
    for (int32_t half = 0; half < halves(matrix); ++half) {
      for (const Piece& piece : pieces_) {
        if (piece.matrix != &matrix) continue;
        const size_t bytes = static_cast<size_t>(rowsOf(piece)) * rowBytes(matrix.dtype, matrix.k);
        sum = crc32Joined(sum, piece.sums[half], bytes);
      }
    }
    return sum;
  }

 private:
  static int32_t halves(const MatrixToPack& matrix) { return matrix.gated ? 2 : 1; }
  size_t panelBytes(const MatrixToPack& matrix) const {
    return kernels_.packedBytes(matrix.dtype, kernels_.panelWidth, matrix.k);
  }
  int32_t rowsOf(const Piece& piece) const {
    const int32_t first = piece.firstPanel * kernels_.panelWidth;
    return std::min(piece.panels * kernels_.panelWidth, piece.matrix->n - first);
  }

  // The pool's tasks must not throw.
  void tryPiece(Piece& piece, Scratch& scratch) {
    try {
      runPiece(piece, scratch);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }

  void runPiece(Piece& piece, Scratch& scratch) {
    const MatrixToPack& matrix = *piece.matrix;
    const size_t together = panelBytes(matrix) * static_cast<size_t>(halves(matrix));
    const size_t bytes = together * static_cast<size_t>(piece.panels);
    const size_t offset = matrix.offset + together * static_cast<size_t>(piece.firstPanel);
    if (target_.memory == nullptr && scratch.panels.size() < bytes) scratch.panels.resize(bytes);
    uint8_t* panels = target_.memory == nullptr ? scratch.panels.data() : target_.memory + offset;
    for (int32_t half = 0; half < halves(matrix); ++half) packHalf(piece, half, scratch, panels);
    if (target_.memory == nullptr && !write(panels, bytes, offset)) failed_ = true;
  }

  void packHalf(Piece& piece, int32_t half, Scratch& scratch, uint8_t* panels) const {
    const MatrixToPack& matrix = *piece.matrix;
    const size_t rowSize = rowBytes(matrix.dtype, matrix.k), panelSize = panelBytes(matrix);
    const int32_t width = kernels_.panelWidth, count = rowsOf(piece);
    const int32_t first = half * matrix.n + piece.firstPanel * width;
    const uint8_t* rows =
        matrix.slices.empty() ? storedRows(matrix, first, count, scratch) : gather(matrix, first, count, scratch);
    if (matrix.slices.empty()) piece.sums[half] = crc32Of(rows, static_cast<size_t>(count) * rowSize);
    if (!matrix.gated) return kernels_.packWeights(matrix.dtype, rows, count, matrix.k, panels);
    for (int32_t panel = 0; panel < piece.panels; ++panel) {
      kernels_.packWeights(matrix.dtype, rows + static_cast<size_t>(panel * width) * rowSize,
                           std::min(width, count - panel * width), matrix.k,
                           panels + static_cast<size_t>(2 * panel + half) * panelSize);
    }
  }

  static const uint8_t* storedRows(const MatrixToPack& matrix, int32_t first, int32_t count, Scratch& scratch) {
    if (matrix.source != nullptr) return matrix.source->read(first, count, scratch.read);
    return matrix.rows + static_cast<size_t>(first) * rowBytes(matrix.dtype, matrix.k);
  }

  // Rows of a rank's part, which may lie apart, as those of its heads in a stack of queries, keys and values.
  static const uint8_t* gather(const MatrixToPack& matrix, int32_t first, int32_t count, Scratch& scratch) {
    const size_t rowSize = rowBytes(matrix.dtype, matrix.k);
    std::vector<uint8_t>& to = scratch.rows;
    to.clear();
    int32_t before = 0;
    for (const WeightSlice& slice : matrix.slices) {
      const int32_t begin = std::max(first, before), end = std::min(first + count, before + slice.count);
      if (begin < end) {
        const uint8_t* from = storedRows(matrix, slice.first + begin - before, end - begin, scratch);
        to.insert(to.end(), from, from + static_cast<size_t>(end - begin) * rowSize);
      }
      before += slice.count;
    }
    return to.data();
  }

  bool write(const uint8_t* data, size_t bytes, size_t offset) const {
    while (bytes > 0) {
      const ssize_t put = pwrite(target_.file, data, bytes, static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      data += put, offset += static_cast<size_t>(put), bytes -= static_cast<size_t>(put);
    }
    return true;
  }

  const KernelTable& kernels_;
  const PackingTarget target_;
  std::vector<Piece> pieces_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::vector<uint32_t> packMatrices(const std::vector<MatrixToPack>& matrices, const KernelTable& kernels,
                                   ThreadPool& pool, const PackingTarget& target) {
  Packing packing(matrices, kernels, target);
  std::vector<uint32_t> sums;
  if (!packing.run(pool)) return sums;
  for (const MatrixToPack& matrix : matrices) sums.push_back(packing.sumOf(matrix));
  return sums;
}

}  // namespace skein

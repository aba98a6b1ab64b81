// Weights of a network that stay where a GGUF has them: its files are mapped, and products read the rows as they lie. Nothing is packed
// and nothing is written. Whatever truncates a mapped file ends this process.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/mapped_pages.h"
#include "executor/memory.h"
#include "executor/plan.h"

namespace skein {

class StoredWeights {
 public:
  // held: memory of the tensors that lie in no file; it must outlive this object. Throws std::runtime_error that names the file and the
  // tensor if a matrix does not lie in its file, or is of a type whose rows no product reads.
  StoredWeights(const ExecutorConfig& config, const uint8_t* held);

  // By index into the config's tensors, of matrices alone.
  const StoredMatrix& matrix(size_t tensor) const { return matrices_[tensor]; }
  // One row in the tensor's format: where it lies, or converted into `converted`.
  const uint8_t* row(size_t tensor, int32_t row, std::vector<uint8_t>& converted) const;
  // Of the matrices that lie in files.
  size_t bytes() const { return bytes_; }
  // Where the rows of a matrix lie.
  std::vector<MappedBytes> placesOf(size_t tensor) const;
  // True if the system says which pages of all files are in memory.
  bool tellsResidency() const;
  // Asks the system to read the files ahead, but for experts that are read from the disk as they are needed; provide() waits for it.
  void willNeed() const;
  void provide() const;

 private:
  void addMatrix(size_t index, const WeightTensor& tensor, const uint8_t* held);
  StoredPiece pieceOf(const WeightTensor& tensor, const ConvertJob& job);
  template <typename Fn>
  void eachCommonPiece(const Fn& fn) const;

  std::unordered_map<std::string, Mapping> files_;
  std::vector<std::vector<StoredPiece>> pieces_;  // by tensor
  std::vector<bool> staysOnDisk_;                 // by tensor; empty: none does
  std::vector<StoredMatrix> matrices_;
  size_t bytes_ = 0;
};

}  // namespace skein

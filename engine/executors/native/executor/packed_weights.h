// The matrices of a network in the layout that the kernels of one instruction set read.
//
//   packed file   [ header, one page | sums of experts | matrix 0 | matrix 1 | ... ]   each matrix at a page boundary
//
// The matrices' rows come from weights.bin or, where the engine has no copy of them, from the checkpoint's file, which is opened only
// to pack: once there is a packed file, that file may be gone.
//
// Where weights stay stored (stored_weights.h) there are no packed matrices and no packed file.
//
// The header names the instruction set, the file's size, a fingerprint of everything the bytes depend on, and a checksum of the
// bytes themselves but for matrices of experts, which have a checksum each: where memory does not hold all experts (expert_reads.h), a start
// leaves them unread, and each is checked when rows first go to it. A file that does not match is made again: written
// next to it under a temporary name, then renamed, so that two processes may do so at once and a reader never sees half
// a file.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "convert/source-rows.h"
#include "executor/mapped_pages.h"
#include "executor/memory.h"
#include "executor/plan.h"
#include "executor/stored_weights.h"
#include "executor/thread_pool.h"
#include "executor/weight_packing.h"

namespace skein {

// Consecutive columns of a product, whose weights are packed in one format, or stay stored in one.
struct PackedPart {
  const void* packed;
  DType dtype;
  int32_t firstColumn, columns, firstPanel;
  const StoredMatrix* stored = nullptr;
};

// CRC-32 of a tensor that lies in a checkpoint's file, found while it was packed.
struct PackedSum {
  size_t tensor;  // index into the config's tensors
  uint32_t sum;
};

class PackedWeights {
 public:
  // Maps weights.bin and computes the layout of the packed matrices without packing them: then only bytes() may be
  // called.
  PackedWeights(const ExecutorConfig& config, const KernelTable& kernels);
  // Maps weights.bin, and maps or makes the packed file. Throws if a weight of the plan is missing, has another shape, lies
  // outside the file, or is to be packed and cannot be read or its checksum has changed since the build. If the packed file cannot be written,
  // packs into memory. Where weights stay stored, nothing is packed.
  PackedWeights(const ExecutorConfig& config, const KernelTable& kernels, ThreadPool& pool);

  // The weight as stored, row-major, for embeddings, norms and biases: one that is stored in one format.
  const void* raw(int32_t weight) const {
    const std::vector<uint8_t>& own = ownParts_[static_cast<size_t>(weight)];
    return own.empty() ? tensorData(weight) : own.data();
  }
  DType dtype(int32_t weight) const { return tensor(weight).dtype; }
  // One row of a matrix that is stored in one format; `converted` may take it.
  const uint8_t* row(int32_t weight, int32_t row, std::vector<uint8_t>& converted) const;
  // The weight of a product of the plan, in one part for each format: packed for gatedGemm where a gated product has one part, else
  // for gemm.
  std::vector<PackedPart> packedFor(const OpProduct& product) const;
  // Formats in which a weight is stored.
  std::vector<DType> dtypes(int32_t weight) const;
  // Bytes of a product's weight as products read it, in whole pages where it is packed; and where they are mapped.
  size_t bytesOf(const OpProduct& product) const;
  std::vector<MappedBytes> placesOf(const OpProduct& product) const;
  // True if the system says which of these pages are in memory.
  bool tellsResidency() const;
  // Checks the bytes of an expert's packed matrix. Throws a CodedError if they are not those that were packed; then the file is removed, so that
  // the next start packs it again. Matrices that stay stored have no checksum.
  void checkExpert(const OpProduct& product, ThreadPool& pool) const;
  // Makes the system provide the pages of the packed weights, but for those of experts that are read from the disk.
  void provide() const;
  // Of what products read.
  size_t bytes() const { return stored_ != nullptr ? stored_->bytes() : packedBytes_; }
  // Sums of whole tensors that lie in the checkpoint's file; none if the packed file was mapped.
  const std::vector<PackedSum>& sums() const { return sums_; }

 private:
  struct Entry {
    int32_t weight;
    bool gated;
    int32_t n, k;
    size_t offset, bytes;
    size_t part;  // of the weight's parts
    int32_t firstColumn, firstPanel;
    bool isExpert;
    size_t sum = 0;  // its number among those of experts

    size_t pageBytes() const { return roundUp(bytes, kPage); }
  };

  // True if the product's weight is packed for gatedGemm.
  bool isGated(const OpProduct& product) const {
    return product.gated && parts_[static_cast<size_t>(product.weight)].size() == 1;
  }
  const WeightPart& part(int32_t weight, size_t index) const { return parts_[static_cast<size_t>(weight)][index]; }
  const WeightTensor& tensor(int32_t weight, size_t index = 0) const { return tensors_[part(weight, index).tensor]; }
  const uint8_t* tensorData(int32_t weight, size_t index = 0) const {
    return weights_.data() + tensor(weight, index).offset;
  }
  static Mapping mapWeights(const ExecutorConfig& config);
  void checkTensors(const ExecutorConfig& config) const;
  void copyVectors(const ExecutorConfig& config);
  void layOut(const ExecutorConfig& config, const KernelTable& kernels);
  void layOutProduct(const OpProduct& product, const KernelTable& kernels);
  std::vector<PackedPart> storedFor(const OpProduct& product) const;
  // The entries of a product's weight.
  std::vector<const Entry*> entriesOf(const OpProduct& product) const;
  // Ranges of the packed file after the header, without matrices of experts.
  std::vector<MappedBytes> commonParts(const Mapping& file) const;
  void askForCommonParts(const Mapping& file) const;
  uint64_t commonChecksum(const Mapping& file, ThreadPool& pool) const;
  uint64_t expertChecksum(const Mapping& file, const Entry& entry, ThreadPool& pool) const;
  // As the file has it: sums lie after the header, in the order of the entries.
  uint64_t keptSum(const Mapping& file, const Entry& entry) const;
  bool areExpertsWhole(const Mapping& file, ThreadPool& pool) const;
  std::vector<uint64_t> expertSums(const Mapping& file, ThreadPool& pool) const;
  uint64_t fingerprint(const ExecutorConfig& config, const KernelTable& kernels) const;
  bool mapExisting(const std::string& path, uint64_t fingerprint, const KernelTable& kernels, ThreadPool& pool);
  // Opens the checkpoint's file for the matrices that lie in it.
  void openSource(const std::string& weightsFile);
  // Says that a matrix has changed since the build.
  [[noreturn]] void refuse(const std::string& weightsFile, const Entry& entry) const;
  // Throws if matrices of which only a part is about to be packed have changed since the build.
  void checkSlicedMatrices(const std::string& weightsFile, ThreadPool& pool) const;
  void moveNear(ThreadPool& pool);
  void make(const ExecutorConfig& config, uint64_t fingerprint, const KernelTable& kernels, ThreadPool& pool);
  // Packs all matrices, and finds the sums. Throws if one has changed since the build; false if the target cannot be written.
  bool pack(const std::string& weightsFile, const PackingTarget& target, const KernelTable& kernels, ThreadPool& pool);

  Mapping weights_;
  std::unique_ptr<const StoredWeights> stored_;  // null: matrices are packed
  int32_t panelWidth_;
  Mapping packed_;
  size_t packedBytes_ = 0;
  // Where the packed file is; empty where experts are in memory, or nothing is packed.
  std::string fileOfExperts_;
  std::vector<WeightTensor> tensors_;
  std::vector<std::vector<WeightPart>> parts_;  // by weight index of the plan
  std::vector<std::vector<uint8_t>> ownParts_;  // by weight index: a rank's part of a vector; else empty
  std::vector<Entry> entries_;
  // By weight, twice: where its entries for gemm begin, and those for gatedGemm; -1: there are none.
  std::vector<std::array<int32_t, 2>> firstEntry_;
  // By tensor, while matrices are packed; null: it lies in weights.bin.
  std::vector<std::shared_ptr<const SourceRows>> sources_;
  std::vector<PackedSum> sums_;
};

}  // namespace skein

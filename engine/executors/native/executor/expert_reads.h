// Experts that memory does not hold: their matrices are read from the mapped file once rows go to them.
//
//   route a layer's rows      experts 3, 4 and 9
//   mapped file               | 0 | 1 | 2 | 3   4 | 5 ... | 9 |      what of these is not in memory is asked for, all of it at once,
//                                         ~~~~~           ~~~       before the first product; then products wait for their pages
//
// The system keeps in its memory for files what fits, as of any file. Nothing of the arithmetic changes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/expert_rows.h"
#include "executor/mapped_pages.h"
#include "executor/packed_weights.h"
#include "executor/plan.h"
#include "executor/thread_pool.h"

namespace skein {

// Bytes of a network's experts: of all, of those of the layer that has most, and of those that a token goes to, at most.
struct ExpertBytes {
  size_t all = 0, ofLayer = 0, perToken = 0;
};
ExpertBytes expertBytesOf(const ExecutorConfig& config, const PackedWeights& weights);

class ExpertReads {
 public:
  // Reads nothing unless the config says that experts are read from the disk. weights must outlive this object.
  ExpertReads(const ExecutorConfig& config, const PackedWeights& weights);

  // For op number `op`, once all rows are routed: asks for the experts that have rows, and checks those that come for the first time.
  // Throws a CodedError if the bytes of one are not those that were packed.
  void readAhead(size_t op, const ExpertRows& rows, ThreadPool& pool);

  const ExpertBytes& bytes() const { return bytes_; }
  // Bytes of experts that were not in memory when they were needed, since the start. Any thread may ask.
  uint64_t bytesRead() const { return bytesRead_.load(std::memory_order_relaxed); }
  // Bytes a second at which this machine read some of them when they were opened; 0: they were in memory.
  double bytesPerSecond() const { return bytesPerSecond_; }

 private:
  // A piece of an expert's matrices.
  struct Place {
    MappedBytes pages;
    int32_t expert;
  };
  struct Op {
    std::vector<OpProduct> products;  // two of each expert
    std::vector<Place> places;        // ascending
    std::vector<bool> isChecked;      // by expert
  };

  void measure();
  // Asks for what of the pages is not in memory. Returns how many bytes that are.
  size_t ask(const MappedBytes& pages);

  const PackedWeights& weights_;
  const ExpertBytes bytes_;
  bool tellsResidency_ = false;
  std::vector<Op> ops_;  // by op, empty for ops without experts; none: experts are in memory
  std::vector<unsigned char> pages_;
  std::atomic<uint64_t> bytesRead_{0};
  double bytesPerSecond_ = 0;
};

}  // namespace skein

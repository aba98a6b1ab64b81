// Packs matrices for the kernels on all threads, in pieces of about a MiB:
//
//   rows      | rows of piece 0 | of piece 1 | ..        a piece packs whole panels; of a gated matrix those of both its halves
//   target    | panels of piece 0 | of piece 1 | ..
//
// A piece's rows are summed up and packed while they lie in the processor's cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/source-rows.h"
#include "executor/plan.h"
#include "executor/thread_pool.h"
#include "kernels/kernels.h"

namespace skein {

// A matrix whose rows are those of one tensor, or a rank's part of them; gated: two stacked ones, of n rows each.
struct MatrixToPack {
  DType dtype;
  bool gated;
  int32_t n, k;
  const uint8_t* rows;              // null: they are read from `source`
  std::vector<WeightSlice> slices;  // empty: all rows
  size_t offset;                    // of its panels in the target
  std::shared_ptr<const SourceRows> source = nullptr;
};

// Memory, or an open file, for all panels.
struct PackingTarget {
  uint8_t* memory;
  int file = -1;  // where memory is null
};

// Result: the CRC-32 of the rows of each matrix that has no slices; empty if the file could not be written.
// Throws std::runtime_error if a source cannot be read.
std::vector<uint32_t> packMatrices(const std::vector<MatrixToPack>& matrices, const KernelTable& kernels,
                                   ThreadPool& pool, const PackingTarget& target);

}  // namespace skein

// Converts rows of quantised blocks (kernels.h) into f32.
#pragma once
#include "kernels/stored_superblock.h"

namespace skein {
namespace {

// Converts one stored row to f32.
template <DType D>
void dequantizeRow(const uint8_t* row, int n, float* y) {
  for (int first = 0; first < n; first += kGroup, row += blockBytes(D)) {
    const int count = n - first < kGroup ? n - first : kGroup;
    if constexpr (D == DType::kInt8) {
      const float scale = halfAt(row);
      for (int i = 0; i < count; i++) y[first + i] = scale * float(int8_t(row[2 + i]));
    } else {
      const StoredGroup<D> stored{row};
      for (int i = 0; i < count; i++) y[first + i] = stored.value(i);
    }
  }
}

template <DType D>
  requires(isSuperblocked(D))
void dequantizeRow(const uint8_t* row, int n, float* y) {
  for (int first = 0; first < n; first += kSuperblock, row += blockBytes(D)) {
    const StoredSuperblock<D> stored{row};
    for (int i = 0; i < kSuperblock; i++) y[first + i] = stored.value(i);
  }
}

}  // namespace
}  // namespace skein

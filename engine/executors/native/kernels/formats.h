// The quantised formats, once for all kernels that exist for each of them.
#pragma once
#include "kernels/kernels.h"

namespace skein {
namespace {

template <DType D>
struct Format {};

// Calls fn(Format<D>()) for the quantised format `dtype`: `[&]<DType D>(Format<D>) { .. }` has it as a constant.
template <class Fn>
inline auto forFormat(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kInt8: return fn(Format<DType::kInt8>());
    case DType::kQ4K: return fn(Format<DType::kQ4K>());
    case DType::kQ5K: return fn(Format<DType::kQ5K>());
    case DType::kQ6K: return fn(Format<DType::kQ6K>());
    case DType::kQ5_0: return fn(Format<DType::kQ5_0>());
    case DType::kQ5_1: return fn(Format<DType::kQ5_1>());
    case DType::kIq4Nl: return fn(Format<DType::kIq4Nl>());
    case DType::kIq4Xs: return fn(Format<DType::kIq4Xs>());
    case DType::kMxfp4: return fn(Format<DType::kMxfp4>());
    default: return fn(Format<DType::kInt4>());
  }
}

}  // namespace
}  // namespace skein

// The tasks of work that is done row by row, shared by the files of ops.
#pragma once
#include <algorithm>

#include "executor/executor.h"

namespace skein {

constexpr int64_t kTasksPerThread = 8;
// Elements of per-row work below which waking the helpers costs more than it saves.
constexpr int64_t kSerialElements = 16 << 10;

template <typename Function>
void Executor::eachRow(int64_t rows, int64_t rowElements, const Function& fn, int64_t together) {
  eachRowRange(
      rows, rowElements,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) fn(row);
      },
      together);
}

template <typename Function>
void Executor::eachRowRange(int64_t rows, int64_t rowElements, const Function& fn, int64_t together) {
  const int64_t tasks =
      rows * rowElements <= kSerialElements ? 1 : std::min<int64_t>(rows, config_.threads * kTasksPerThread);
  const int64_t perTask = ceilDivide(ceilDivide(std::max<int64_t>(rows, 1), tasks), together) * together;
  pool_.run(static_cast<int32_t>(ceilDivide(rows, perTask)),
            [&](int32_t task, int32_t) { fn(task * perTask, std::min(rows, (task + 1) * perTask)); });
}

}  // namespace skein

// Rows of logits that leave the executor in addition to sampling.
//
// Memory holds maxLogitRows rows of logits, so the ops after the last layer run in passes over that many rows, and a
// last time for the sampled rows, which then stay in place:
//
//   rows of T wanted   0 1 2 3 4 5 6 7 | 12 13          maxLogitRows 4
//   passes             [0 1 2 3] [4 5 6 7] [12 13]      each handed out before the next
//   then               [logitRows]                      as in every step
//
// A row's bits do not depend on the rows next to it, so neither passes nor neighbours affect the returned values.
#include <cmath>
#include <cstring>

#include "executor/executor.h"
#include "executor/log_probs.h"

namespace skein {

void Executor::returnTokenRows(const BatchView& batch) {
  BatchView pass{};
  pass.numTokens = batch.numTokens;
  pass.logitRows = {passRows_.data(), static_cast<int64_t>(passRows_.size())};
  for (const ReturnedRows& rows : batch.returnedRows) {
    if (rows.sampled) continue;
    for (int64_t i = 0; i < rows.count; ++i) {
      passRows_[static_cast<size_t>(pass.numLogitRows)] = static_cast<int32_t>(rows.first + i);
      passTargets_[static_cast<size_t>(pass.numLogitRows)] = {&rows, i};
      if (++pass.numLogitRows == config_.maxLogitRows) runPass(pass);
    }
  }
  if (pass.numLogitRows > 0) runPass(pass);
}

void Executor::runPass(BatchView& pass) {
  runOps(firstLogitOp_, config_.plan.ops.size(), pass);
  pool_.run(static_cast<int32_t>(pass.numLogitRows), [&](int32_t row, int32_t thread) {
    const auto& [rows, index] = passTargets_[static_cast<size_t>(row)];
    returnRow(*rows, index, row, thread);
  });
  pass.numLogitRows = 0;
}

void Executor::returnSampledRows(const BatchView& batch) {
  for (const ReturnedRows& rows : batch.returnedRows) {
    if (!rows.sampled) continue;
    pool_.run(static_cast<int32_t>(rows.count),
              [&](int32_t index, int32_t thread) { returnRow(rows, index, rows.first + index, thread); });
  }
}

// Returns row `index` of the request, from row `logitRow` of the logits.
void Executor::returnRow(const ReturnedRows& rows, int64_t index, int64_t logitRow, int32_t thread) const {
  if (!rows.wantsLogits && !rows.wantsLogProbs) return;
  const int32_t n = config_.plan.vocabSize;
  const float* row = logits() + logitRow * n;
  if (rows.wantsLogits) std::memcpy(rows.logits.data + index * n, row, static_cast<size_t>(n) * sizeof(float));
  if (!rows.wantsLogProbs) return;
  const RowLogProbsView& out = rows.logProbs;
  int32_t* topTokens = out.topTokens.data + index * out.numTop;
  float* topLogProbs = out.topLogProbs.data + index * out.numTop;
  float maximum = 0;
  if (kernels_.argmax(row, n, &maximum, nullptr) >= 0) {
    const LogProbs probs(kernels_, row, n, maximum);
    out.logProbs[index] = out.tokens[index] < 0 ? NAN : probs.of(out.tokens[index]);
    probs.top(static_cast<int32_t>(out.numTop), samplers_[static_cast<size_t>(thread)]->selection(), topTokens,
              topLogProbs);
    return;
  }
  out.logProbs[index] = NAN;
  for (int64_t i = 0; i < out.numTop; ++i) {
    topTokens[i] = -1;
    topLogProbs[i] = NAN;
  }
}

}  // namespace skein

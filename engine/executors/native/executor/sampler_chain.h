// Draws the token of a row that asks for more than temperature, top-k, top-p and min-p: engine/decoding/sampler-chain.ts says
// what each value means and in which order the filters come.
//
//   top-n-sigma -> top-k -> typical-p -> top-p -> min-p -> XTC -> (dynamic) temperature -> draw
//   mirostat in place of all of them
//
// A filter replaces the logits of the tokens that it leaves out by -infinity; once few are left, they move together:
//
//   values_    0.3  -inf  1.2  -inf ...          place = id
//   values_    0.3  1.2  |                       ids_ has the ids, ascending
//
// Nothing is put in order but the tokens next to a bound (keepNearest). Weights and their sums are f64, and sums have one order
// (kernels/wide_row.h), so that a row's token depends on nothing but the row.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"
#include "executor/selection.h"
#include "kernels/kernels.h"

namespace skein {

// Temperatures below this are greedy: their distribution is a single token in f32.
constexpr float kLeastTemperature = 1e-5f;

// Places of the values of a chain.
enum ChainValue : int32_t {
  kChainTypicalP,
  kChainTopNSigma,
  kChainXtcProbability,
  kChainXtcThreshold,
  kChainDynamicRange,
  kChainDynamicExponent,
  kChainTemperatureLast,
  kChainMirostat,
  kChainMirostatTau,
  kChainMirostatEta,
  kChainMirostatMu,
  kChainMirostatMuAfter,
  kNumChainValues,
};

// One object per thread; its memory is made with the first row that has a chain.
class SamplerChain {
 public:
  SamplerChain(const KernelTable& kernels, Selection& selection) : kernels_(kernels), selection_(selection) {}

  // `logits` are free of NaN, and `maximum` is their finite maximum.
  int32_t draw(const SamplingView& sampling, int64_t row, const ChainView& chain, const float* logits,
               int32_t vocabSize, float maximum);

 private:
  void begin(const float* logits, int32_t vocabSize, float maximum);
  int32_t drawFiltered(const SamplingView& sampling, int64_t row, const ArrayView<double>& values);
  int32_t drawMirostat(const SamplingView& sampling, int64_t row, const ArrayView<double>& values, int32_t vocabSize);
  void keepTopNSigma(double count);
  void keepTopK(int64_t count);
  void keepTypical(double mass);
  void keepTopP(double mass, double temperature);
  void keepMinP(double share, double temperature);
  void excludeTopChoices(double threshold);
  double dynamicTemperature(double temperature, double range, double exponent);
  int64_t mirostatCount(double mu, double temperature, int32_t vocabSize);

  // Keeps the tokens whose logits lie nearest to `center` below the reference, up to the one with which their weights, as weigh()
  // left them, pass `mass`, or reach it if `isReaching`.
  void keepNearest(double center, double mass, bool isReaching);
  // Writes the places of a bucket to members_, and returns their number.
  size_t gatherMembers(int32_t bucket);
  // Orders members_ so far that those which keepNearest keeps stand first, and returns their number; `before` is the mass in
  // front of the bucket.
  size_t orderMembers(size_t members, double center, double before, double mass, bool isReaching);
  void keepFrom(double least);
  // Notes how many are kept, and moves them together where they are few.
  void takeCount(int32_t count);
  void findMaximum();
  size_t mostProbable();
  // Computes weights_ and sum_ of the kept tokens at this temperature; with `wantsEntropy` entropy_ in nats too.
  void weigh(double temperature, bool wantsEntropy = false);
  // Returns a place.
  size_t drawOne(double temperature, double uniform);
  double scaled(size_t place, double temperature) const {
    return (static_cast<double>(values_[place]) - reference_) / temperature;
  }
  int32_t idOf(size_t place) const { return placesAreIds_ ? static_cast<int32_t>(place) : ids_[place]; }

  const KernelTable& kernels_;
  Selection& selection_;
  std::vector<float> values_;  // padded with -infinity to whole groups
  int32_t size_ = 0;           // of values_, with the padding
  int32_t count_ = 0;          // of kept tokens
  bool placesAreIds_ = true;
  std::vector<int32_t> ids_;  // by place
  double maximum_ = 0;        // of the kept tokens
  bool maximumKnown_ = true;
  double reference_ = 0;                     // maximum that the weights are relative to
  double weighedAt_ = -1;                    // temperature of the weights; -1: they are of other places
  std::vector<double> weights_, blockSums_;  // by place, by block
  double sum_ = 0, entropy_ = 0;
  std::vector<int32_t> buckets_, members_;  // by place; places of one bucket
  std::vector<double> masses_;              // by quarter and bucket
};

}  // namespace skein

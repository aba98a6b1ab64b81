// Draws the token of a row that asks for more than temperature, top-k, top-p and min-p: engine/decoding/sampler-chain.ts says
// what each value means and in which order the filters come.
//
//   ids_    tokens that the filters so far keep, in ascending order
//
//   top-n-sigma -> top-k -> typical-p -> top-p -> min-p -> XTC -> (dynamic) temperature -> draw
//   mirostat in place of all of them
//
// Everything is computed in f64, and sums run in ascending id, so that a row's token depends on nothing but the row.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/batch.h"

namespace skein {

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
  // `logits` are free of NaN, and `maximum` is their finite maximum.
  int32_t draw(const SamplingView& sampling, int64_t row, const ChainView& chain, const float* logits,
               int32_t vocabSize, float maximum);

 private:
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
  void findMaximum();
  int32_t mostProbable() const;
  // Computes weights_ of the kept tokens at this temperature, and returns their sum.
  double weigh(double temperature);
  // Entropy in nats of the distribution that weigh(1) made.
  double entropy(double sum) const;
  int32_t drawOne(double temperature, double uniform);
  double scaled(int32_t id, double temperature) const {
    return (static_cast<double>(logits_[id]) - maximum_) / temperature;
  }
  bool isBefore(int32_t a, int32_t b) const { return logits_[a] > logits_[b] || (logits_[a] == logits_[b] && a < b); }

  // Visits the kept tokens in an order until `visit` returns false; the last one visited is kept too. Orders no more of
  // them than needed.
  template <class Before, class Visit>
  void keepWhile(const Before& before, const Visit& visit);
  template <class Keeps>
  void keepIf(const Keeps& keeps);

  const float* logits_ = nullptr;
  double maximum_ = 0;  // of the kept tokens
  std::vector<int32_t> ids_;
  std::vector<double> weights_;  // by id
  std::vector<double> keys_;     // by id
};

}  // namespace skein

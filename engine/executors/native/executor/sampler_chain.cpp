#include "executor/sampler_chain.h"

#include <algorithm>
#include <cmath>

#include "executor/philox.h"

namespace skein {
namespace {

// Temperatures below this take the most probable token, as in sampling.h.
constexpr double kLeastTemperature = static_cast<double>(1e-5f);
// Number of the draw that decides whether XTC applies: one that no row's own draws ever reach.
constexpr uint32_t kXtcDraw = 0xffffffffu;
// Tokens that are ordered at first.
constexpr size_t kFirstBlock = 64;
// Number of most probable tokens from which mirostat estimates the exponent of Zipf's law.
constexpr size_t kZipfTokens = 100;

double uniformOf(const SamplingView& sampling, int64_t row, uint32_t draw) {
  return philoxUniform(sampling.seed[row], sampling.sequenceIndex[row], sampling.position[row], draw);
}

}  // namespace

template <class Before, class Visit>
void SamplerChain::keepWhile(const Before& before, const Visit& visit) {
  size_t kept = 0;
  size_t ordered = 0;
  for (bool goesOn = true; goesOn && kept < ids_.size(); ++kept) {
    if (kept == ordered) {
      ordered = std::min(ids_.size(), std::max(kFirstBlock, 2 * ordered));
      const auto begin = ids_.begin() + static_cast<int64_t>(kept);
      const auto end = ids_.begin() + static_cast<int64_t>(ordered);
      if (end != ids_.end()) std::nth_element(begin, end, ids_.end(), before);
      std::sort(begin, end, before);
    }
    goesOn = visit(ids_[kept]);
  }
  ids_.resize(kept);
  std::sort(ids_.begin(), ids_.end());
}

template <class Keeps>
void SamplerChain::keepIf(const Keeps& keeps) {
  ids_.erase(std::remove_if(ids_.begin(), ids_.end(), [&](int32_t id) { return !keeps(id); }), ids_.end());
}

int32_t SamplerChain::draw(const SamplingView& sampling, int64_t row, const ChainView& chain, const float* logits,
                           int32_t vocabSize, float maximum) {
  logits_ = logits;
  maximum_ = static_cast<double>(maximum);
  weights_.resize(static_cast<size_t>(vocabSize));
  keys_.resize(static_cast<size_t>(vocabSize));
  ids_.clear();
  ids_.reserve(static_cast<size_t>(vocabSize));
  for (int32_t id = 0; id < vocabSize; ++id) {
    if (logits[id] > -INFINITY) ids_.push_back(id);
  }
  return chain.values[kChainMirostat] != 0 ? drawMirostat(sampling, row, chain.values, vocabSize)
                                           : drawFiltered(sampling, row, chain.values);
}

int32_t SamplerChain::drawFiltered(const SamplingView& sampling, int64_t row, const ArrayView<double>& values) {
  const double temperature = static_cast<double>(sampling.temperature[row]);
  const double range = values[kChainDynamicRange];
  const bool isLast = values[kChainTemperatureLast] != 0 || range > 0;
  const double filterTemperature = isLast ? 1 : temperature;
  const int64_t topK = sampling.topK[row];
  if (values[kChainTopNSigma] > 0) keepTopNSigma(values[kChainTopNSigma]);
  if (topK > 0) keepTopK(topK);
  if (values[kChainTypicalP] < 1) keepTypical(values[kChainTypicalP]);
  if (sampling.topP[row] < 1) keepTopP(static_cast<double>(sampling.topP[row]), filterTemperature);
  if (sampling.minP[row] > 0) keepMinP(static_cast<double>(sampling.minP[row]), filterTemperature);
  if (values[kChainXtcProbability] > 0 && uniformOf(sampling, row, kXtcDraw) < values[kChainXtcProbability])
    excludeTopChoices(values[kChainXtcThreshold]);
  const double last = range > 0 ? dynamicTemperature(temperature, range, values[kChainDynamicExponent]) : temperature;
  return drawOne(last, uniformOf(sampling, row, 0));
}

void SamplerChain::keepTopNSigma(double count) {
  double sum = 0, squares = 0;
  for (const int32_t id : ids_) sum += static_cast<double>(logits_[id]);
  const double mean = sum / static_cast<double>(ids_.size());
  for (const int32_t id : ids_) {
    const double distance = static_cast<double>(logits_[id]) - mean;
    squares += distance * distance;
  }
  const double least = maximum_ - count * std::sqrt(squares / static_cast<double>(ids_.size()));
  keepIf([&](int32_t id) { return static_cast<double>(logits_[id]) >= least; });
}

void SamplerChain::keepTopK(int64_t count) {
  if (count >= static_cast<int64_t>(ids_.size())) return;
  keepWhile([this](int32_t a, int32_t b) { return isBefore(a, b); }, [&](int32_t) { return --count > 0; });
}

void SamplerChain::keepTypical(double mass) {
  const double sum = weigh(1);
  const double expected = entropy(sum), logSum = std::log(sum);
  for (const int32_t id : ids_) keys_[static_cast<size_t>(id)] = std::fabs(logSum - scaled(id, 1) - expected);
  const auto before = [this](int32_t a, int32_t b) {
    const double left = keys_[static_cast<size_t>(a)], right = keys_[static_cast<size_t>(b)];
    return left < right || (left == right && isBefore(a, b));
  };
  double total = 0;
  keepWhile(before, [&](int32_t id) {
    total += weights_[static_cast<size_t>(id)];
    return total <= mass * sum;
  });
}

void SamplerChain::keepTopP(double mass, double temperature) {
  const double sum = weigh(temperature);
  double total = 0;
  keepWhile([this](int32_t a, int32_t b) { return isBefore(a, b); },
            [&](int32_t id) {
              total += weights_[static_cast<size_t>(id)];
              return total < mass * sum;
            });
}

void SamplerChain::keepMinP(double share, double temperature) {
  findMaximum();
  const float least = static_cast<float>(maximum_ + std::log(share) * temperature);
  keepIf([&](int32_t id) { return logits_[id] >= least; });
}

void SamplerChain::excludeTopChoices(double threshold) {
  const double sum = weigh(1);
  const auto reaches = [&](int32_t id) { return weights_[static_cast<size_t>(id)] / sum >= threshold; };
  int32_t last = -1;
  for (const int32_t id : ids_) {
    if (reaches(id) && (last < 0 || isBefore(last, id))) last = id;
  }
  if (last >= 0) keepIf([&](int32_t id) { return id == last || !reaches(id); });
}

double SamplerChain::dynamicTemperature(double temperature, double range, double exponent) {
  const double least = std::max(0.0, temperature - range), most = temperature + range;
  if (ids_.size() < 2) return temperature;
  const double share = entropy(weigh(1)) / std::log(static_cast<double>(ids_.size()));
  return least + (most - least) * std::pow(share, exponent);
}

int32_t SamplerChain::drawMirostat(const SamplingView& sampling, int64_t row, const ArrayView<double>& values,
                                   int32_t vocabSize) {
  const double temperature = static_cast<double>(sampling.temperature[row]);
  const double mu = values[kChainMirostatMu];
  if (values[kChainMirostat] == 1) {
    keepTopK(mirostatCount(mu, temperature, vocabSize));
  } else {
    const double least = std::log(weigh(temperature)) - mu * std::log(2.0);
    const int32_t best = mostProbable();
    keepIf([&](int32_t id) { return id == best || scaled(id, temperature) >= least; });
  }
  const int32_t token = drawOne(temperature, uniformOf(sampling, row, 0));
  const double surprise = (std::log(weigh(temperature)) - scaled(token, temperature)) / std::log(2.0);
  values[kChainMirostatMuAfter] = mu - values[kChainMirostatEta] * (surprise - values[kChainMirostatTau]);
  return token;
}

int64_t SamplerChain::mirostatCount(double mu, double temperature, int32_t vocabSize) {
  const std::vector<int32_t> all = ids_;
  keepTopK(kZipfTokens);
  std::vector<int32_t> most = ids_;
  ids_ = all;
  std::sort(most.begin(), most.end(), [this](int32_t a, int32_t b) { return isBefore(a, b); });
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < most.size(); ++i) {
    const double step = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += step * (scaled(most[i], temperature) - scaled(most[i + 1], temperature));
    squares += step * step;
  }
  const double exponent = products / squares, excess = exponent - 1;
  const double count =
      std::pow(excess * std::exp2(mu) / (1 - std::pow(static_cast<double>(vocabSize), -excess)), 1 / exponent);
  const double least = static_cast<double>(ids_.size());
  return std::max<int64_t>(1, static_cast<int64_t>(count < least ? count : least));
}

void SamplerChain::findMaximum() {
  float greatest = -INFINITY;
  for (const int32_t id : ids_) greatest = std::max(greatest, logits_[id]);
  maximum_ = static_cast<double>(greatest);
}

double SamplerChain::weigh(double temperature) {
  findMaximum();
  double sum = 0;
  for (const int32_t id : ids_) sum += weights_[static_cast<size_t>(id)] = std::exp(scaled(id, temperature));
  return sum;
}

double SamplerChain::entropy(double sum) const {
  const double logSum = std::log(sum);
  double total = 0;
  for (const int32_t id : ids_) total += weights_[static_cast<size_t>(id)] * (logSum - scaled(id, 1));
  return total / sum;
}

int32_t SamplerChain::mostProbable() const {
  return *std::min_element(ids_.begin(), ids_.end(), [this](int32_t a, int32_t b) { return isBefore(a, b); });
}

int32_t SamplerChain::drawOne(double temperature, double uniform) {
  if (temperature < kLeastTemperature) return mostProbable();
  const double target = uniform * weigh(temperature);
  double sum = 0;
  int32_t last = ids_.front();
  for (const int32_t id : ids_) {
    const double weight = weights_[static_cast<size_t>(id)];
    if (weight <= 0) continue;
    last = id;
    sum += weight;
    if (sum > target) break;
  }
  return last;
}

}  // namespace skein

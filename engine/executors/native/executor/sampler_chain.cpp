#include "executor/sampler_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/philox.h"

namespace skein {
namespace {

// Number of the draw that decides whether XTC applies: one that no row's own draws ever reach.
constexpr uint32_t kXtcDraw = 0xffffffffu;
// Number of most probable tokens from which mirostat estimates the exponent of Zipf's law.
constexpr int32_t kZipfTokens = 100;

// Kept tokens are moved together where they are fewer than this part of the places.
constexpr int32_t kSparse = 4;
// Members of a bucket that are sorted; of more of them the half in which the bound lies is looked for first.
constexpr size_t kFewMembers = 32;
// Masses are added up in as many parts, by place, so that an addition need not wait for the one before.
constexpr size_t kMassParts = 4;
constexpr size_t kBuckets = static_cast<size_t>(kDistanceBuckets) + 1;  // the last one of what is left out
// Weights are used again, relative to a maximum that is no longer kept, while that is no more than this power of 2 away.
constexpr double kReach = 512;
constexpr double kLn2 = 0.693147180559945309417;

double uniformOf(const SamplingView& sampling, int64_t row, uint32_t draw) {
  return philoxUniform(sampling.seed[row], sampling.sequenceIndex[row], sampling.position[row], draw);
}

// The least f32 that is not below `bound`.
float ceilToFloat(double bound) {
  const float near = static_cast<float>(bound);
  return static_cast<double>(near) < bound ? std::nextafterf(near, INFINITY) : near;
}

}  // namespace

int32_t SamplerChain::draw(const SamplingView& sampling, int64_t row, const ChainView& chain, const float* logits,
                           int32_t vocabSize, float maximum) {
  begin(logits, vocabSize, maximum);
  return chain.values[kChainMirostat] != 0 ? drawMirostat(sampling, row, chain.values, vocabSize)
                                           : drawFiltered(sampling, row, chain.values);
}

void SamplerChain::begin(const float* logits, int32_t vocabSize, float maximum) {
  size_ = (vocabSize + kWideLanes - 1) / kWideLanes * kWideLanes;
  const size_t places = static_cast<size_t>(size_);
  if (values_.size() != places) {
    values_.resize(places);
    ids_.resize(places);
    weights_.resize(places);
    buckets_.resize(places);
    members_.resize(places);
    blockSums_.resize((places + kWideBlock - 1) / kWideBlock);
    masses_.resize(kMassParts * kBuckets);
  }
  std::copy_n(logits, vocabSize, values_.begin());
  std::fill(values_.begin() + vocabSize, values_.end(), -INFINITY);
  maximum_ = reference_ = static_cast<double>(maximum);
  maximumKnown_ = true;
  weighedAt_ = -1;
  placesAreIds_ = true;
  keepFrom(-INFINITY);
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
  return idOf(drawOne(last, uniformOf(sampling, row, 0)));
}

void SamplerChain::keepTopNSigma(double count) {
  const double mean = kernels_.wideRow.sumPresent(values_.data(), size_) / count_;
  const double squares = kernels_.wideRow.sumSquares(values_.data(), size_, mean);
  keepFrom(maximum_ - count * std::sqrt(squares / count_));
}

void SamplerChain::keepTopK(int64_t count) {
  if (count >= count_) return;
  const float bound = selection_.boundOfGreatest(values_.data(), size_, static_cast<int32_t>(count), nullptr).logit;
  int64_t kept = kernels_.wideRow.keepBetween(values_.data(), size_, bound, INFINITY);
  // Of the tokens with this logit those with the highest ids are too many.
  for (size_t place = static_cast<size_t>(size_); kept > count && place-- > 0;) {
    if (values_[place] != bound) continue;
    values_[place] = -INFINITY;
    --kept;
  }
  takeCount(static_cast<int32_t>(kept));
}

void SamplerChain::keepTypical(double mass) {
  weigh(1, true);
  // A token's surprise is log(sum) less its logit's distance to the maximum.
  keepNearest(std::log(sum_) - entropy_, mass * sum_, false);
}

void SamplerChain::keepTopP(double mass, double temperature) {
  weigh(temperature);
  keepNearest(0, mass * sum_, true);
}

void SamplerChain::keepNearest(double center, double mass, bool isReaching) {
  kernels_.wideRow.bucketByDistance(values_.data(), size_, reference_, center, buckets_.data());
  std::fill(masses_.begin(), masses_.end(), 0.0);
  for (size_t place = 0; place < static_cast<size_t>(size_); place += kMassParts) {
    for (size_t part = 0; part < kMassParts; ++part)
      masses_[part * kBuckets + static_cast<size_t>(buckets_[place + part])] += weights_[place + part];
  }
  double before = 0;
  for (int32_t bucket = 0; bucket < kDistanceBuckets; ++bucket) {
    const double* part = masses_.data() + bucket;
    const double own = (part[0] + part[kBuckets]) + (part[2 * kBuckets] + part[3 * kBuckets]);
    const double after = before + own;
    if (own > 0 && (isReaching ? after >= mass : after > mass)) {
      const size_t members = gatherMembers(bucket);
      const size_t kept = orderMembers(members, center, before, mass, isReaching);
      const int32_t count = kernels_.wideRow.keepBuckets(values_.data(), buckets_.data(), size_, bucket);
      for (size_t i = kept; i < members; ++i) values_[static_cast<size_t>(members_[i])] = -INFINITY;
      maximumKnown_ = false;
      return takeCount(count - static_cast<int32_t>(members - kept));
    }
    before = after;
  }
}

size_t SamplerChain::gatherMembers(int32_t bucket) {
  size_t found = 0;
  for (int32_t group = 0; group < size_; group += kWideLanes) {
    const int32_t* buckets = buckets_.data() + group;
    int32_t hits = 0;
    for (int32_t lane = 0; lane < kWideLanes; ++lane) hits |= buckets[lane] == bucket;
    if (hits == 0) continue;
    for (int32_t lane = 0; lane < kWideLanes; ++lane) {
      if (buckets[lane] == bucket) members_[found++] = group + lane;
    }
  }
  return found;
}

// The half in which the bound lies is halved until few are left, whose order decides:
//
//   members_   | kept |  low ... bound ... high  | left out |
size_t SamplerChain::orderMembers(size_t members, double center, double before, double mass, bool isReaching) {
  const auto isBefore = [&](int32_t a, int32_t b) {
    const float left = values_[static_cast<size_t>(a)], right = values_[static_cast<size_t>(b)];
    const double nearLeft = std::fabs(center - (static_cast<double>(left) - reference_));
    const double nearRight = std::fabs(center - (static_cast<double>(right) - reference_));
    if (nearLeft != nearRight) return nearLeft < nearRight;
    return left > right || (left == right && a < b);
  };
  const auto passes = [&](double total) { return isReaching ? total >= mass : total > mass; };
  const auto at = [&](size_t i) { return members_.begin() + static_cast<int64_t>(i); };
  size_t low = 0, high = members;
  while (high - low > kFewMembers) {
    const size_t middle = low + (high - low) / 2;
    std::nth_element(at(low), at(middle), at(high), isBefore);
    double after = before;
    for (size_t i = low; i < middle; ++i) after += weights_[static_cast<size_t>(members_[i])];
    if (passes(after)) {
      high = middle;
    } else {
      low = middle;
      before = after;
    }
  }
  std::sort(at(low), at(high), isBefore);
  while (low < high) {
    before += weights_[static_cast<size_t>(members_[low++])];
    if (passes(before)) break;
  }
  return low;
}

void SamplerChain::keepMinP(double share, double temperature) {
  findMaximum();
  keepFrom(static_cast<double>(static_cast<float>(maximum_ + std::log(share) * temperature)));
}

void SamplerChain::excludeTopChoices(double threshold) {
  weigh(1);
  const float bound = kernels_.wideRow.leastOfWeight(values_.data(), weights_.data(), size_, threshold * sum_);
  if (bound == INFINITY) return;
  // The last token of the order that reaches the threshold stays: the one of this logit with the highest id.
  bool found = false;
  for (size_t place = static_cast<size_t>(size_); place-- > 0;) {
    if (values_[place] != bound) continue;
    if (found) values_[place] = -INFINITY;
    found = true;
  }
  maximum_ = static_cast<double>(bound);
  takeCount(kernels_.wideRow.keepBetween(values_.data(), size_, std::numeric_limits<float>::lowest(), bound));
}

double SamplerChain::dynamicTemperature(double temperature, double range, double exponent) {
  const double least = std::max(0.0, temperature - range), most = temperature + range;
  if (count_ < 2) return temperature;
  weigh(1, true);
  return least + (most - least) * std::pow(entropy_ / std::log(static_cast<double>(count_)), exponent);
}

int32_t SamplerChain::drawMirostat(const SamplingView& sampling, int64_t row, const ArrayView<double>& values,
                                   int32_t vocabSize) {
  const double temperature = static_cast<double>(sampling.temperature[row]);
  const double mu = values[kChainMirostatMu];
  if (values[kChainMirostat] == 1) {
    keepTopK(mirostatCount(mu, temperature, vocabSize));
  } else {
    weigh(temperature);
    const double least = std::log(sum_) - mu * kLn2;
    if (least > 0) {
      keepTopK(1);
    } else {
      keepFrom(maximum_ + least * temperature);
    }
  }
  const size_t place = drawOne(temperature, uniformOf(sampling, row, 0));
  const double surprise = (std::log(sum_) - scaled(place, temperature)) / kLn2;
  values[kChainMirostatMuAfter] = mu - values[kChainMirostatEta] * (surprise - values[kChainMirostatTau]);
  return idOf(place);
}

int64_t SamplerChain::mirostatCount(double mu, double temperature, int32_t vocabSize) {
  int32_t most[kZipfTokens];
  const int32_t length = std::min(kZipfTokens, count_);
  selection_.greatestTokens(values_.data(), size_, length, most);
  double products = 0, squares = 0;
  for (int32_t i = 0; i + 1 < length; ++i) {
    const double step = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double own = scaled(static_cast<size_t>(most[i]), temperature);
    products += step * (own - scaled(static_cast<size_t>(most[i + 1]), temperature));
    squares += step * step;
  }
  const double exponent = products / squares, excess = exponent - 1;
  const double count =
      std::pow(excess * std::exp2(mu) / (1 - std::pow(static_cast<double>(vocabSize), -excess)), 1 / exponent);
  const double all = static_cast<double>(count_);
  return std::max<int64_t>(1, static_cast<int64_t>(count < all ? count : all));
}

void SamplerChain::keepFrom(double least) {
  const float bound = std::max(ceilToFloat(least), std::numeric_limits<float>::lowest());
  takeCount(kernels_.wideRow.keepBetween(values_.data(), size_, bound, INFINITY));
}

void SamplerChain::takeCount(int32_t count) {
  count_ = count;
  if (count > size_ / kSparse) return;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  kernels_.indicesFrom(values_.data(), size_, kLowest, members_.data());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const size_t place = static_cast<size_t>(members_[i]);
    ids_[i] = idOf(place);
    values_[i] = values_[place];
  }
  placesAreIds_ = false;
  weighedAt_ = -1;
  size_ = (count + kWideLanes - 1) / kWideLanes * kWideLanes;
  std::fill(values_.begin() + count, values_.begin() + size_, -INFINITY);
}

void SamplerChain::findMaximum() {
  if (!maximumKnown_) maximum_ = static_cast<double>(values_[mostProbable()]);
  maximumKnown_ = true;
}

size_t SamplerChain::mostProbable() {
  float maximum = -INFINITY;
  return static_cast<size_t>(kernels_.argmax(values_.data(), size_, &maximum, nullptr));
}

void SamplerChain::weigh(double temperature, bool wantsEntropy) {
  findMaximum();
  const double scale = 1 / (temperature * kLn2);
  if (weighedAt_ == temperature && !wantsEntropy && (reference_ - maximum_) * scale < kReach) {
    sum_ = kernels_.wideRow.sumKept(values_.data(), size_, weights_.data(), blockSums_.data());
    return;
  }
  reference_ = maximum_;
  weighedAt_ = temperature;
  double moment = 0;
  sum_ = kernels_.wideRow.weigh(values_.data(), size_, reference_, scale, weights_.data(), blockSums_.data(),
                                wantsEntropy ? &moment : nullptr);
  entropy_ = std::log(sum_) - moment * kLn2 / sum_;
}

size_t SamplerChain::drawOne(double temperature, double uniform) {
  if (temperature < kLeastTemperature) return mostProbable();
  weigh(temperature);
  const double target = uniform * sum_;
  // The block whose end lies beyond the target, or the last one that has any weight.
  double sum = 0, before = 0;
  int32_t block = 0;
  for (int32_t next = 0; next * kWideBlock < size_; ++next) {
    const double own = blockSums_[static_cast<size_t>(next)];
    if (own <= 0) continue;
    block = next;
    before = sum;
    sum += own;
    if (sum > target) break;
  }
  const size_t first = static_cast<size_t>(block * kWideBlock);
  const size_t end = std::min(first + kWideBlock, static_cast<size_t>(size_));
  size_t last = first;
  for (size_t place = first; place < end; ++place) {
    if (weights_[place] <= 0) continue;
    last = place;
    before += weights_[place];
    if (before > target) break;
  }
  return last;
}

}  // namespace skein

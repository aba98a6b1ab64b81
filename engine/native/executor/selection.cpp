#include "executor/selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

namespace skein {
namespace {

constexpr int32_t kDigits = 3;
constexpr int32_t kShift[kDigits] = {21, 10, 0};
constexpr int32_t kBuckets[kDigits] = {1 << 11, 1 << 11, 1 << 10};
constexpr int32_t kStride = 16;
constexpr int32_t kGroup = 64;

// Calls visit(i, hit) in ascending order for each i with values[i] >= floor, and for others near them with hit = 0.
// Most strides hold none; within one, hits are too irregular to branch on.
template <typename Visit>
void forEachAtLeast(const float* values, int32_t n, float floor, const Visit& visit) {
  for (int32_t i = 0; i < n; i += kStride) {
    const int32_t end = std::min(i + kStride, n);
    int32_t hits = 0;
    for (int32_t j = i; j < end; ++j) hits |= values[j] >= floor;
    if (hits == 0) continue;
    for (int32_t j = i; j < end; ++j) visit(j, static_cast<int32_t>(values[j] >= floor));
  }
}

}  // namespace

uint32_t orderedKey(float logit) {
  const float value = logit + 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

Selection::Selection(int32_t n)
    : candidates_(static_cast<size_t>(n) + 1),
      histogram_(static_cast<size_t>(kBuckets[0])),
      maxima_(static_cast<size_t>(n / kGroup)),
      members_(static_cast<size_t>(n)) {}

void Selection::gather(const float* logits, const float* probabilities, int32_t n, float floor) {
  size_ = 0;
  const float least = std::max(floor, 1e-37f);  // denormals are flushed: below this lies only zero
  forEachAtLeast(probabilities, n, least, [&](int32_t i, int32_t hit) {
    candidates_[static_cast<size_t>(size_)] = {i, orderedKey(logits[i]), probabilities[i]};
    size_ += hit;
  });
}

// The k-th greatest of the groups' maxima bounds the k-th greatest of all values from below.
float Selection::boundOfGreatest(const float* logits, int32_t n, int32_t k) {
  const int32_t groups = n / kGroup;
  if (k > groups) return -INFINITY;
  for (int32_t group = 0; group < groups; ++group) {
    const float* values = logits + int64_t(group) * kGroup;
    float lanes[kStride];
    std::copy_n(values, kStride, lanes);
    for (int32_t i = kStride; i < kGroup; i += kStride) {
      for (int32_t j = 0; j < kStride; ++j) lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
    }
    maxima_[static_cast<size_t>(group)] = *std::max_element(lanes, lanes + kStride);
  }
  std::nth_element(maxima_.begin(), maxima_.begin() + (k - 1), maxima_.begin() + groups, std::greater<>());
  return maxima_[static_cast<size_t>(k - 1)];
}

void Selection::gatherGreatest(const float* logits, const float* probabilities, int32_t n, int32_t k) {
  size_ = 0;
  forEachAtLeast(logits, n, boundOfGreatest(logits, n, k), [&](int32_t i, int32_t hit) {
    candidates_[static_cast<size_t>(size_)] = {i, orderedKey(logits[i]), probabilities[i]};
    size_ += hit;
  });
  if (k < size_) keepPrefix(k, [](const Candidate&) { return 1.0; });
}

void Selection::keepMass(double mass) {
  constexpr double kLeast = 1e-300;  // a mass of 0 still keeps the most probable token
  keepPrefix(std::max(mass, kLeast), [](const Candidate& candidate) { return static_cast<double>(candidate.probability); });
}

void Selection::keepProbability(float floor) {
  filter([&](const Candidate& candidate) { return candidate.probability >= floor; });
}

template <typename Keep>
void Selection::filter(const Keep& keep) {
  int32_t kept = 0;
  for (int32_t i = 0; i < size_; ++i) {
    const Candidate candidate = candidates_[static_cast<size_t>(i)];
    candidates_[static_cast<size_t>(kept)] = candidate;
    kept += static_cast<int32_t>(keep(candidate));
  }
  size_ = kept;
}

// Shortest prefix of the order (key descending, token ascending) whose weights reach `wanted`. Each digit's histogram
// covers only the candidates that share the digits before it; after the first that is a small part of them.
template <typename Weigh>
void Selection::keepPrefix(double wanted, const Weigh& weigh) {
  std::iota(members_.begin(), members_.begin() + size_, 0);
  int32_t count = size_;
  uint32_t prefix = 0;
  double above = 0;  // weight of all keys above the prefix
  for (int32_t digit = 0; digit < kDigits; ++digit) {
    const uint32_t shift = static_cast<uint32_t>(kShift[digit]), last = static_cast<uint32_t>(kBuckets[digit] - 1);
    const auto bucketOf = [&](int32_t member) { return (candidates_[static_cast<size_t>(member)].key >> shift) & last; };
    std::fill(histogram_.begin(), histogram_.begin() + kBuckets[digit], 0.0);
    for (int32_t i = 0; i < count; ++i) {
      const int32_t member = members_[static_cast<size_t>(i)];
      histogram_[bucketOf(member)] += weigh(candidates_[static_cast<size_t>(member)]);
    }
    int64_t bucket = last;
    while (bucket >= 0 && above + histogram_[static_cast<size_t>(bucket)] < wanted) above += histogram_[static_cast<size_t>(bucket--)];
    if (bucket < 0) return;  // the sum never reaches it: all stay
    prefix |= static_cast<uint32_t>(bucket) << shift;
    int32_t kept = 0;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t member = members_[static_cast<size_t>(i)];
      members_[static_cast<size_t>(kept)] = member;
      kept += static_cast<int32_t>(bucketOf(member) == static_cast<uint32_t>(bucket));
    }
    count = kept;
  }
  filter([&](const Candidate& candidate) {
    if (candidate.key != prefix) return candidate.key > prefix;
    if (above >= wanted) return false;
    above += weigh(candidate);
    return true;
  });
}

double Selection::sum() const {
  double sum = 0;
  for (int32_t i = 0; i < size_; ++i) sum += static_cast<double>(candidates_[static_cast<size_t>(i)].probability);
  return sum;
}

int32_t Selection::draw(double target) const {
  double sum = 0;
  int32_t last = 0;
  for (int32_t i = 0; i < size_; ++i) {
    const Candidate& candidate = candidates_[static_cast<size_t>(i)];
    if (candidate.probability <= 0) continue;  // among the k greatest, but cannot be drawn
    sum += static_cast<double>(candidate.probability);
    last = candidate.token;
    if (sum > target) break;
  }
  return last;
}

// A sorted list of the best so far; few values of a row ever enter it.
void greatestTokens(const float* logits, int32_t n, int32_t count, int32_t* tokens) {
  int32_t kept = 0;
  const auto better = [&](int32_t a, int32_t b) { return logits[a] > logits[b]; };  // the earlier stays before its equal
  const auto insert = [&](int32_t token) {
    if (kept == count && !better(token, tokens[count - 1])) return;
    int32_t at = kept < count ? kept++ : count - 1;
    for (; at > 0 && better(token, tokens[at - 1]); --at) tokens[at] = tokens[at - 1];
    tokens[at] = token;
  };
  const int32_t first = std::min(n, std::max(count, kStride));
  for (int32_t i = 0; i < first; ++i) insert(i);
  for (int32_t i = first; i < n; i += kStride) {
    const int32_t end = std::min(i + kStride, n);
    const float floor = logits[tokens[kept - 1]];
    int32_t hits = 0;
    for (int32_t j = i; j < end; ++j) hits |= logits[j] > floor;
    if (hits == 0) continue;
    for (int32_t j = i; j < end; ++j) insert(j);
  }
}

}  // namespace skein

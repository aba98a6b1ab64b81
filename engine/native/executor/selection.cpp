#include "executor/selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/kernels.h"

namespace skein {
namespace {

constexpr int32_t kStride = 16;
constexpr int32_t kBucketBits = 11;
constexpr int32_t kFewTokens = 64;

// Monotone: a < b as floats gives a smaller bucket or the same. -0 counts as 0.
uint32_t bucketOf(float logit) {
  const float value = logit + 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits & 0x80000000u ? ~bits : bits | 0x80000000u) >> (32 - kBucketBits);
}

// A sorted list of the best so far; few values of a row ever enter it.
void insertGreatest(const float* logits, int32_t n, int32_t count, int32_t* tokens) {
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

}  // namespace

Selection::Selection(int32_t n)
    : candidates_(static_cast<size_t>(n)),
      histogram_(size_t{1} << kBucketBits),
      maxima_(static_cast<size_t>((n + kVocabGroup - 1) / kVocabGroup)) {}

OrderBound Selection::boundOfGreatest(const float* logits, int32_t n, int32_t k, const float* groupMaxima) {
  const int32_t groups = static_cast<int32_t>(maxima_.size());
  int32_t rank = k;
  if (groupMaxima != nullptr && k <= groups / 2) gatherGroups(logits, n, k, groupMaxima);
  else rank = gatherBucket(logits, n, k);
  if (size_ < rank) return kNoBound;
  const auto first = candidates_.begin(), wanted = first + (rank - 1);
  std::nth_element(first, wanted, first + size_, [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  });
  return {wanted->logit, wanted->token + 1};
}

// Candidates: what is at least the k-th greatest of the groups' maxima. That is k tokens or more, in few groups.
void Selection::gatherGroups(const float* logits, int32_t n, int32_t k, const float* groupMaxima) {
  const auto end = std::copy_n(groupMaxima, maxima_.size(), maxima_.begin());
  std::nth_element(maxima_.begin(), maxima_.begin() + (k - 1), end, std::greater<>());
  const float least = maxima_[static_cast<size_t>(k - 1)];
  size_ = 0;
  for (size_t group = 0; group < maxima_.size(); ++group) {
    if (groupMaxima[group] < least) continue;
    const int32_t begin = static_cast<int32_t>(group) * kVocabGroup;
    for (int32_t i = begin; i < std::min(begin + kVocabGroup, n); ++i) {
      if (logits[i] >= least && logits[i] > -INFINITY) candidates_[static_cast<size_t>(size_++)] = {logits[i], i};
    }
  }
}

// Candidates: the bucket of the logits' first bits in which the k-th greatest lies. Returns how many of it are wanted.
int32_t Selection::gatherBucket(const float* logits, int32_t n, int32_t k) {
  std::fill(histogram_.begin(), histogram_.end(), 0);
  for (int32_t i = 0; i < n; ++i) ++histogram_[bucketOf(logits[i])];
  int32_t bucket = static_cast<int32_t>(histogram_.size()) - 1, rank = k;
  while (bucket > 0 && histogram_[static_cast<size_t>(bucket)] < rank) rank -= histogram_[static_cast<size_t>(bucket--)];
  size_ = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (static_cast<int32_t>(bucketOf(logits[i])) != bucket || logits[i] == -INFINITY) continue;
    candidates_[static_cast<size_t>(size_++)] = {logits[i], i};
  }
  return rank;
}

void Selection::greatestTokens(const float* logits, int32_t n, int32_t count, int32_t* tokens) {
  if (count <= kFewTokens) return insertGreatest(logits, n, count, tokens);
  const OrderBound bound = count < n ? boundOfGreatest(logits, n, count, nullptr) : kNoBound;
  size_ = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (bound.holds(logits[i], i)) candidates_[static_cast<size_t>(size_++)] = {logits[i], i};
  }
  // What is -infinity comes last, by id.
  for (int32_t i = 0; i < n && size_ < count; ++i) {
    if (logits[i] == -INFINITY) candidates_[static_cast<size_t>(size_++)] = {logits[i], i};
  }
  std::sort(candidates_.begin(), candidates_.begin() + size_, [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  });
  for (int32_t i = 0; i < count; ++i) tokens[i] = candidates_[static_cast<size_t>(i)].token;
}

}  // namespace skein

#include "executor/selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/kernels.h"

namespace skein {
namespace {

constexpr int32_t kStride = 16;
constexpr int32_t kSampleStride = 32;
constexpr int32_t kBucketBits = 11;
constexpr int32_t kFewTokens = 64;

// Maps floats to integers of the same order. -0 counts as 0.
uint32_t orderedBits(float logit) {
  const float value = logit + 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}

uint32_t bucketOf(float logit) { return orderedBits(logit) >> (32 - kBucketBits); }

// Key by which tokens are ordered: the greater key comes first, so a greater logit, and of equal ones the lower id.
uint64_t keyOf(float logit, int32_t token) {
  return uint64_t(orderedBits(logit)) << 32 | (0xffffffffu - static_cast<uint32_t>(token));
}

int32_t tokenOf(uint64_t key) { return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key)); }

// Keeps a sorted list of the best tokens so far; few values of a row ever enter it.
void insertGreatest(const float* logits, int32_t n, int32_t count, int32_t* tokens) {
  int32_t kept = 0;
  const auto better = [&](int32_t a, int32_t b) {
    return logits[a] > logits[b];
  };  // the earlier of two equals comes first
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

Selection::Selection(const KernelTable& kernels, int32_t n)
    : kernels_(kernels),
      candidates_(static_cast<size_t>(n) + 1),
      histogram_(size_t{1} << kBucketBits),
      sample_(
          static_cast<size_t>(std::max((n + kVocabGroup - 1) / kVocabGroup, (n + kSampleStride - 1) / kSampleStride))),
      indices_(static_cast<size_t>(n)) {}

OrderBound Selection::boundOfGreatest(const float* logits, int32_t n, int32_t k, const float* groupMaxima) {
  const int32_t groups = (n + kVocabGroup - 1) / kVocabGroup;
  int32_t rank = k;
  if (groupMaxima != nullptr && k <= groups / 2) gatherGroups(logits, n, k, groupMaxima);
  else if (!gatherSampled(logits, n, k)) rank = gatherBucket(logits, n, k);
  if (size_ < rank) return kNoBound;
  const auto first = candidates_.begin(), wanted = first + (rank - 1);
  std::nth_element(first, wanted, first + size_, std::greater<>());
  const int32_t token = tokenOf(*wanted);
  return {logits[token], token + 1};
}

// Appends the tokens whose logit is at least `least`, which is above -infinity.
void Selection::gatherFrom(const float* logits, int32_t begin, int32_t end, float least) {
  const int32_t count = kernels_.indicesFrom(logits + begin, end - begin, least, indices_.data());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = begin + indices_[static_cast<size_t>(i)];
    candidates_[static_cast<size_t>(size_++)] = keyOf(logits[token], token);
  }
}

// Gathers as candidates the tokens whose logit is at least the k-th greatest of the groups' maxima. These are k tokens
// or more, in few groups.
void Selection::gatherGroups(const float* logits, int32_t n, int32_t k, const float* groupMaxima) {
  const int32_t groups = (n + kVocabGroup - 1) / kVocabGroup;
  std::copy_n(groupMaxima, groups, sample_.begin());
  std::nth_element(sample_.begin(), sample_.begin() + (k - 1), sample_.begin() + groups, std::greater<>());
  const float least = std::max(sample_[static_cast<size_t>(k - 1)], std::numeric_limits<float>::lowest());
  size_ = 0;
  for (int32_t group = 0; group < groups; ++group) {
    if (groupMaxima[group] < least) continue;
    gatherFrom(logits, group * kVocabGroup, std::min((group + 1) * kVocabGroup, n), least);
  }
}

// Gathers as candidates the tokens whose logit is at least a sampled value that probably has k greater ones, and not many
// more. False if it has fewer.
//
//   sample, greatest first    s s s s s s|s s . . .      k / stride of them expected in front, then four standard deviations
bool Selection::gatherSampled(const float* logits, int32_t n, int32_t k) {
  const int32_t size = (n + kSampleStride - 1) / kSampleStride;
  const float expected = static_cast<float>(k) / kSampleStride;
  const int32_t rank = static_cast<int32_t>(expected + 4 * std::sqrt(expected)) + 4;
  if (rank >= size) return false;
  for (int32_t i = 0; i < size; ++i) {
    const int32_t at = i * kSampleStride + i * 11 % kSampleStride;  // avoids the columns of any pattern in the row
    sample_[static_cast<size_t>(i)] = logits[std::min(at, n - 1)];
  }
  std::nth_element(sample_.begin(), sample_.begin() + rank, sample_.begin() + size, std::greater<>());
  const float least = sample_[static_cast<size_t>(rank)];
  if (!(least > -INFINITY)) return false;
  size_ = 0;
  gatherFrom(logits, 0, n, least);
  return size_ >= k;
}

// Gathers as candidates the bucket, by the logits' first bits, in which the k-th greatest lies. Returns how many of its
// tokens are wanted.
int32_t Selection::gatherBucket(const float* logits, int32_t n, int32_t k) {
  std::fill(histogram_.begin(), histogram_.end(), 0);
  for (int32_t i = 0; i < n; ++i) ++histogram_[bucketOf(logits[i])];
  int32_t bucket = static_cast<int32_t>(histogram_.size()) - 1, rank = k;
  while (bucket > 0 && histogram_[static_cast<size_t>(bucket)] < rank)
    rank -= histogram_[static_cast<size_t>(bucket--)];
  size_ = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (static_cast<int32_t>(bucketOf(logits[i])) != bucket || logits[i] == -INFINITY) continue;
    candidates_[static_cast<size_t>(size_++)] = keyOf(logits[i], i);
  }
  return rank;
}

void Selection::greatestTokens(const float* logits, int32_t n, int32_t count, int32_t* tokens) {
  if (count <= kFewTokens) return insertGreatest(logits, n, count, tokens);
  const OrderBound bound = count < n ? boundOfGreatest(logits, n, count, nullptr) : kNoBound;
  size_ = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (bound.holds(logits[i], i)) candidates_[static_cast<size_t>(size_++)] = keyOf(logits[i], i);
  }
  // Tokens of -infinity come last, by id.
  for (int32_t i = 0; i < n && size_ < count; ++i) {
    if (logits[i] == -INFINITY) candidates_[static_cast<size_t>(size_++)] = keyOf(logits[i], i);
  }
  std::sort(candidates_.begin(), candidates_.begin() + size_, std::greater<>());
  for (int32_t i = 0; i < count; ++i) tokens[i] = tokenOf(candidates_[static_cast<size_t>(i)]);
}

}  // namespace skein

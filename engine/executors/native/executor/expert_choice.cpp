#include "executor/expert_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace skein {
namespace {

// True if number a comes before number b: the higher value, the lower number among equals, what is not a number last.
template <typename Value>
bool isBetter(const Value* values, int32_t a, int32_t b) {
  const Value first = values[a], second = values[b];
  if (std::isnan(first) != std::isnan(second)) return std::isnan(second);
  if (!std::isnan(first) && first != second) return first > second;
  return a < b;
}

// Up to this many are found by insertion.
constexpr int32_t kFew = 16;

// The `used` best of the numbers [0, count), best first.
template <typename Value>
void chooseFew(const Value* values, int32_t count, int32_t used, int32_t* chosen) {
  int32_t found = 0;
  for (int32_t number = 0; number < count; ++number) {
    if (found == used && !isBetter(values, number, chosen[found - 1])) continue;
    int32_t place = found < used ? found++ : found - 1;
    for (; place > 0 && isBetter(values, number, chosen[place - 1]); --place) chosen[place] = chosen[place - 1];
    chosen[place] = number;
  }
}

template <typename Value>
void chooseMany(const Value* values, int32_t count, int32_t used, int32_t* chosen) {
  std::array<int32_t, kMostExperts> all;
  for (int32_t number = 0; number < count; ++number) all[static_cast<size_t>(number)] = number;
  const auto better = [&](int32_t a, int32_t b) { return isBetter(values, a, b); };
  std::nth_element(all.begin(), all.begin() + (used - 1), all.begin() + count, better);
  std::copy(all.begin(), all.begin() + used, chosen);
}

// The `used` best of the numbers [0, count), in ascending order.
template <typename Value>
void choose(const Value* values, int32_t count, int32_t used, int32_t* chosen) {
  if (used <= kFew) chooseFew(values, count, used, chosen);
  else chooseMany(values, count, used, chosen);
  std::sort(chosen, chosen + used);
}

double sigmoid(double score) { return 1 / (1 + std::exp(-score)); }

bool hasNan(const float* scores, int32_t count) {
  return std::any_of(scores, scores + count, [](float score) { return std::isnan(score); });
}

void chancesOf(const ExpertRule& rule, int32_t experts, const float* scores, double* chances) {
  if (rule.isSigmoid()) {
    for (int32_t expert = 0; expert < experts; ++expert) chances[expert] = sigmoid(scores[expert]);
    return;
  }
  const double highest = *std::max_element(scores, scores + experts);
  double sum = hasNan(scores, experts) ? std::numeric_limits<double>::quiet_NaN() : 0;
  for (int32_t expert = 0; expert < experts; ++expert) {
    chances[expert] = std::exp(double(scores[expert]) - highest);
    sum += chances[expert];
  }
  for (int32_t expert = 0; expert < experts; ++expert) chances[expert] /= sum;
}

// Leaves the values of the experts of the highest groups alone, one group after the other. groups: their numbers, in
// ascending order.
void keepGroups(const ExpertRule& rule, int32_t experts, double* values, int32_t* groups) {
  const int32_t size = experts / rule.groups;
  std::array<double, kMostExpertGroups> sums;
  for (int32_t group = 0; group < rule.groups; ++group) {
    std::array<int32_t, 2> highest;
    const double* own = values + group * size;
    choose(own, size, rule.groupTop, highest.data());
    sums[static_cast<size_t>(group)] = rule.groupTop == 1 ? own[highest[0]] : own[highest[0]] + own[highest[1]];
  }
  choose(sums.data(), rule.groups, rule.usedGroups, groups);
  for (int32_t i = 0; i < rule.usedGroups; ++i) std::copy_n(values + groups[i] * size, size, values + i * size);
}

// The softmax of an expert among the scores near its own. without: the expert that was chosen before, -1 for none.
double shareOfNear(const float* scores, int32_t experts, int32_t expert, int32_t without, double most) {
  const double highest = scores[expert];
  double sum = 0;
  for (int32_t other = 0; other < experts; ++other) {
    if (other == without) continue;
    const double score = scores[other];
    // What is no number is not far.
    const bool isFar = (highest - score) / std::max(std::abs(score), highest) > most;
    if (!isFar) sum += std::exp(score - highest);
  }
  return 1 / sum;
}

// Shares of two experts, one chosen after the other.
void shareAmongNear(const ExpertRule& rule, int32_t experts, const float* scores, const int32_t* chosen,
                    float* shares) {
  const int32_t first = isBetter(scores, chosen[0], chosen[1]) ? chosen[0] : chosen[1];
  for (int32_t i = 0; i < kSparseUsed; ++i) {
    const int32_t without = chosen[i] == first ? -1 : first;
    shares[i] = static_cast<float>(shareOfNear(scores, experts, chosen[i], without, 2 * rule.jitter) * rule.factor);
  }
}

}  // namespace

void chooseExperts(const ExpertRule& rule, int32_t experts, const float* scores, const float* bias, int32_t* chosen) {
  if (bias == nullptr && rule.groups == 1) return choose(scores, experts, rule.used, chosen);
  std::array<double, kMostExperts> values;
  chancesOf(rule, experts, scores, values.data());
  if (bias != nullptr)
    for (int32_t expert = 0; expert < experts; ++expert) values[static_cast<size_t>(expert)] += double(bias[expert]);
  if (rule.groups == 1) return choose(values.data(), experts, rule.used, chosen);
  std::array<int32_t, kMostExpertGroups> groups;
  keepGroups(rule, experts, values.data(), groups.data());
  const int32_t size = experts / rule.groups;
  choose(values.data(), rule.usedGroups * size, rule.used, chosen);
  for (int32_t i = 0; i < rule.used; ++i)
    chosen[i] = groups[static_cast<size_t>(chosen[i] / size)] * size + chosen[i] % size;
}

void shareOut(const ExpertRule& rule, int32_t experts, const float* scores, const int32_t* chosen, float* shares) {
  if (rule.scoring == ExpertScoring::kSparseMixer) return shareAmongNear(rule, experts, scores, chosen, shares);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const int32_t count = rule.normalize ? rule.used : experts;
  const auto expertAt = [&](int32_t i) { return rule.normalize ? chosen[i] : i; };
  double highest = scores[expertAt(0)];
  for (int32_t i = 1; i < count; ++i) highest = std::max(highest, double(scores[expertAt(i)]));
  const auto weight = [&](int32_t expert) {
    return rule.isSigmoid() ? sigmoid(scores[expert]) : std::exp(double(scores[expert]) - highest);
  };
  double sum = hasNan(scores, experts) ? nothing : 0;
  if (rule.isSigmoid() && !rule.normalize) sum += 1;
  else
    for (int32_t i = 0; i < count; ++i) sum += weight(expertAt(i));
  sum += rule.sumEpsilon;
  for (int32_t i = 0; i < rule.used; ++i) shares[i] = static_cast<float>(weight(chosen[i]) / sum * rule.factor);
}

}  // namespace skein

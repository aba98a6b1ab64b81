// How a row chooses its experts, and what it shares out among them: ExpertRule of network/expert-rule.ts.
//
//   scores -> chances -> + bias -> groups -> the highest `used`     and chances -> / their sum -> * factor
//
// A row depends on its own scores alone, and on no instruction set.
#pragma once
#include <cstdint>

#include "executor/plan.h"

namespace skein {

// The numbers of a row's experts, in ascending order: `used` of them. bias: that of the choice, null without one.
void chooseExperts(const ExpertRule& rule, int32_t experts, const float* scores, const float* bias, int32_t* chosen);

// The shares of these experts. A row with a score that is no number has no numbers for shares, as a softmax over all experts has none.
void shareOut(const ExpertRule& rule, int32_t experts, const float* scores, const int32_t* chosen, float* shares);

}  // namespace skein

// Which tokens top-k and top-p keep, exactly, without sorting the vocabulary.
//
// Candidates are ordered by logit, greatest first, equal logits by ascending id. Both filters keep a prefix of that
// order: all tokens above one logit, and the first few that equal it. The prefix is found by radix selection over the
// logits' bits (11 + 11 + 10), adding up counts or probabilities per digit.
#pragma once
#include <cstdint>
#include <vector>

namespace skein {

struct Candidate {
  int32_t token;
  uint32_t key;       // orders as the logit does
  float probability;  // not normalised
};

// Monotone: a < b as floats gives orderedKey(a) < orderedKey(b). -0 counts as 0.
uint32_t orderedKey(float logit);

// Memory of one thread, for rows of up to n tokens.
class Selection {
 public:
  explicit Selection(int32_t n);

  // Begins with the tokens whose probability is above 0 and at least `floor`, in ascending id.
  void gather(const float* logits, const float* probabilities, int32_t n, float floor);
  // Begins with the k greatest of n, in ascending id. 1 <= k.
  void gatherGreatest(const float* logits, const float* probabilities, int32_t n, int32_t k);

  // Keeps the shortest prefix whose probabilities reach `mass`, all where they never do. At least one stays.
  void keepMass(double mass);
  void keepProbability(float floor);

  double sum() const;
  // The candidate at which the running sum in ascending id passes `target`.
  int32_t draw(double target) const;
  const Candidate* begin() const { return candidates_.data(); }
  int32_t size() const { return size_; }


 private:
  float boundOfGreatest(const float* logits, int32_t n, int32_t k);
  template <typename Weigh>
  void keepPrefix(double wanted, const Weigh& weigh);
  template <typename Keep>
  void filter(const Keep& keep);

  std::vector<Candidate> candidates_;  // one more than a row has: where the last one that is not kept is written
  std::vector<double> histogram_;
  std::vector<float> maxima_;
  std::vector<int32_t> members_;
  int32_t size_ = 0;
};

// The tokens of the `count` greatest logits of n, sorted: greatest first, equal ones by ascending id.
void greatestTokens(const float* logits, int32_t n, int32_t count, int32_t* tokens);

}  // namespace skein

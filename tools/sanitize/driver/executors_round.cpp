#include "executor/executor.h"

#include <functional>
#include <future>
#include <vector>

#include "executor/step_thread.h"
#include "files.h"
#include "scenarios.h"
#include "tiny_plan.h"

namespace skein {
namespace {

constexpr int32_t kTokensPerBlock = 16, kBlocksPerSequence = 4, kMaxSequences = 4, kMaxTokens = 64;

template <typename T>
ArrayView<const T> viewOf(const std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

// Prompts of random lengths as one batch, each in blocks of its own, and what is drawn after them.
class Step {
 public:
  explicit Step(Random& random) {
    const int32_t sequences = random.integer(1, kMaxSequences);
    for (int32_t sequence = 0; sequence < sequences; ++sequence) {
      const int32_t length = random.integer(1, kMaxTokens / kMaxSequences);
      for (int32_t i = 0; i < kBlocksPerSequence; ++i) tables_.push_back(sequence * kBlocksPerSequence + i);
      for (int32_t position = 0; position < length; ++position) {
        tokens_.push_back(random.integer(0, kTinyVocabulary - 1));
        positions_.push_back(position);
        slots_.push_back(sequence * kBlocksPerSequence * kTokensPerBlock + position);
      }
      lengths_.push_back(length);
      queries_.push_back(static_cast<int32_t>(tokens_.size()));
      logitRows_.push_back(queries_.back() - 1);
      temperatures_.push_back(random.chance(50) ? 0.0f : 0.8f);
      seeds_.push_back(random.next());
    }
  }

  BatchView batch() const {
    BatchView view{};
    view.numTokens = static_cast<int64_t>(tokens_.size());
    view.numSequences = rows();
    view.numLogitRows = rows();
    view.numNewBlocks = static_cast<int64_t>(tables_.size());
    view.maxBlocks = kBlocksPerSequence;
    view.tokenIds = viewOf(tokens_), view.positions = viewOf(positions_), view.slots = viewOf(slots_);
    view.queryStart = viewOf(queries_), view.contextLength = viewOf(lengths_);
    view.blockTables = viewOf(tables_), view.newBlocks = viewOf(tables_);
    view.logitRows = viewOf(logitRows_);
    view.ropeRows = viewOf(zeros_), view.ropeFrequencies = viewOf(frequencies_), view.ropeScales = viewOf(ones_);
    return view;
  }

  SamplingView sampling() const {
    SamplingView view{};
    view.numRows = rows();
    view.temperature = viewOf(temperatures_);
    view.topK = viewOf(zeros_);
    view.topP = view.repetitionPenalty = viewOf(ones_);
    view.minP = view.presencePenalty = view.frequencyPenalty = viewOf(noughts_);
    view.seed = viewOf(seeds_);
    view.sequenceIndex = view.noRepeatNgramSize = view.historyPromptLength = viewOf(zeros_);
    view.position = viewOf(lengths_);
    view.numTopLogProbs = viewOf(threes_);
    view.bannedStart = view.historyStart = viewOf(zeros_);
    return view;
  }

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }

 private:
  std::vector<int32_t> tokens_, positions_, slots_, lengths_, tables_, logitRows_, queries_{0};
  std::vector<float> temperatures_;
  std::vector<uint64_t> seeds_;
  const std::vector<int32_t> zeros_ = std::vector<int32_t>(kMaxSequences + 1),
                             threes_ = std::vector<int32_t>(kMaxSequences, 3);
  const std::vector<float> ones_ = std::vector<float>(kMaxSequences, 1.0f),
                           noughts_ = std::vector<float>(kMaxSequences);
  const std::vector<float> frequencies_ = tinyFrequencies();
};

// Output of a step, to be compared bit for bit.
struct Answer {
  explicit Answer(int64_t rows)
      : tokens(rows), topStart(rows + 1), topTokens(3 * rows), status(rows), logProbs(rows), topLogProbs(3 * rows) {}
  SamplingOutputView view() {
    const auto of = [](auto& values) {
      return ArrayView<std::remove_reference_t<decltype(values[0])>>{values.data(),
                                                                     static_cast<int64_t>(values.size())};
    };
    return {of(tokens), of(logProbs), of(topStart), of(topTokens), of(topLogProbs), of(status)};
  }
  bool operator==(const Answer&) const = default;
  std::vector<int32_t> tokens, topStart, topTokens, status;
  std::vector<float> logProbs, topLogProbs;
};

// Checked as the addon checks them.
void compute(Executor& executor, const Step& step, Answer& answer) {
  const BatchView batch = step.batch();
  const SamplingView sampling = step.sampling();
  checkBatch(batch, executor.config());
  checkSampling(sampling, answer.view(), batch.numLogitRows, executor.config().plan.vocabSize);
  const ComputeTurns::Hold turn(executor.turns());
  executor.forward(batch);
  executor.sample(sampling, answer.view());
}

ExecutorConfig configOf(const TemporaryFolder& folder, DType weights, DType kv) {
  ExecutorConfig config = tinyConfig(weights, folder);
  config.packedFile = folder.at("packed.bin");
  config.maxNumTokens = kMaxTokens, config.maxNumSequences = config.maxLogitRows = kMaxSequences;
  config.maxSeqLen = kBlocksPerSequence * kTokensPerBlock;
  config.numBlocks = kMaxSequences * kBlocksPerSequence, config.tokensPerBlock = kTokensPerBlock;
  config.kvDtype = kv;
  return config;
}

ExecutorConfig withThreads(ExecutorConfig config, int32_t threads) {
  config.threads = threads;
  return config;
}

// Steps of one model, begun or at once. Whether all gave what is expected.
bool runModel(const ExecutorConfig& config, const std::vector<Step>& steps, const std::vector<Answer>& expected,
              uint32_t seed) {
  bool same = true;
  Random random(seed);
  Executor executor(config);
  StepThread thread;
  for (size_t i = 0; i < steps.size(); ++i) {
    Answer answer(steps[i].rows());
    if (random.chance(50)) {
      compute(executor, steps[i], answer);
    } else {
      thread.begin([&] { compute(executor, steps[i], answer); });
      random.pause();
      thread.finish();
    }
    same = same && answer == expected[i];
    const std::vector<int32_t> first{0}, second{1};
    executor.copyBlocks(viewOf(first), viewOf(second));
    same = same && executor.areFinite(viewOf(second));
  }
  return same;
}

}  // namespace

void executorRound(Random& random) {
  const TemporaryFolder folder;
  constexpr DType kWeights[] = {DType::kF32, DType::kBf16}, kCaches[] = {DType::kF32, DType::kBf16, DType::kInt8};
  const DType weights = kWeights[random.integer(0, 1)], kv = kCaches[random.integer(0, 2)];
  std::vector<Step> steps;
  for (int32_t i = random.integer(1, 4); i > 0; --i) steps.emplace_back(random);
  const ExecutorConfig config = configOf(folder, weights, kv);
  std::vector<Answer> expected;
  {
    Executor alone(withThreads(config, 1));
    for (const Step& step : steps) compute(alone, step, expected.emplace_back(step.rows()));
  }
  // Each model in a thread of its own, as in its worker. They make and map the same packed file.
  std::vector<std::future<bool>> models;
  for (int32_t i = random.integer(0, 2); i >= 0; --i) {
    models.push_back(std::async(std::launch::async, runModel, withThreads(config, random.integer(2, 5)),
                                std::cref(steps), std::cref(expected), random.next()));
  }
  for (std::future<bool>& model : models) {
    expect(model.get(), "A step's answer on several threads is not the one that a single thread gave.");
  }
}

}  // namespace skein

#include "tiny_plan.h"

#include <cmath>
#include <cstring>

#include "convert/tensor-types.h"
#include "random.h"

namespace skein {
namespace {

constexpr int32_t kHidden = 48, kInner = 80, kLayers = 2, kHeads = 4, kKvHeads = 2, kHeadDim = 16, kExperts = 5;

// Values take slots in turn as network/slot-assignment.ts would: x, what is made from it, and what is made from that.
class PlanWriter {
 public:
  explicit PlanWriter(DType dtype) : dtype_(dtype) {
    plan_.vocabSize = plan_.outputWidth = kTinyVocabulary;
    plan_.layers.assign(kLayers, {kHeads, kKvHeads, kHeadDim});
    plan_.rotaryDim = kHeadDim;
  }

  ExecutorConfig write(const TemporaryFolder& folder) {
    const int32_t embedding = weight("embedding", true, kTinyVocabulary, kHidden);
    const int32_t x = value(RowKind::kTokens, kHidden);
    plan_.ops.push_back({.kind = OpKind::kEmbedding, .output = x, .weight = embedding, .scale = 1});
    for (int32_t layer = 0; layer < kLayers; ++layer) writeLayer(x, layer);
    const int32_t selected = value(RowKind::kLogits, kHidden);
    plan_.ops.push_back({.kind = OpKind::kSelectRows, .input = x, .output = selected});
    const int32_t normed = norm(selected, RowKind::kLogits);
    plan_.logits = value(RowKind::kLogits, kTinyVocabulary);
    plan_.ops.push_back({.kind = OpKind::kLinear, .input = normed, .output = plan_.logits, .weight = embedding});
    ExecutorConfig config;
    config.plan = plan_;
    config.tensors = tensors_;
    config.weightsFile = folder.write("weights.bin", bytes_.data(), bytes_.size());
    return config;
  }

 private:
  void writeLayer(int32_t x, int32_t layer) {
    const int32_t h = norm(x, RowKind::kTokens);
    const int32_t qkv = linear(h, plan_.layers.front().qkvWidth(), -1);
    plan_.ops.push_back({.kind = OpKind::kRopeAndCache, .input = qkv, .layer = layer});
    const int32_t attended = value(RowKind::kTokens, kHeads * kHeadDim);
    plan_.ops.push_back({.kind = OpKind::kAttention, .input = qkv, .output = attended, .layer = layer, .scale = 0.25f});
    add(x, attended);
    const int32_t again = norm(x, RowKind::kTokens);
    if (layer == kLayers - 1) return addExperts(x, again);
    const int32_t gated = value(RowKind::kTokens, kInner);
    const int32_t gateUp = weight("", true, 2 * kInner, kHidden);
    plan_.ops.push_back({.kind = OpKind::kGatedLinear,
                         .input = again,
                         .output = gated,
                         .weight = gateUp,
                         .activation = Activation::kSilu});
    add(x, gated);
  }

  // x += the mixture of the experts of h.
  void addExperts(int32_t x, int32_t h) {
    PlanOp op{.kind = OpKind::kExperts, .input = h, .output = x, .residual = x};
    op.rule = {.used = 2, .normalize = true};
    op.activation = Activation::kSilu;
    op.scores = linear(h, kExperts, -1);
    for (int32_t expert = 0; expert < kExperts; ++expert) {
      op.gateUps.push_back(weight("", true, 2 * kInner, kHidden));
      op.downs.push_back(weight("", true, kHidden, kInner));
    }
    plan_.ops.push_back(op);
  }

  int32_t value(RowKind rows, int32_t width) {
    plan_.slots.push_back({rows, width});
    plan_.values.push_back({rows, width, static_cast<int32_t>(plan_.slots.size()) - 1});
    return static_cast<int32_t>(plan_.values.size()) - 1;
  }
  int32_t width(int32_t value) const { return plan_.values[static_cast<size_t>(value)].width; }

  int32_t norm(int32_t input, RowKind rows) {
    const int32_t output = value(rows, width(input));
    plan_.ops.push_back({.kind = OpKind::kRmsNorm,
                         .input = input,
                         .output = output,
                         .weight = weight("", false, 1, width(input)),
                         .epsilon = 1e-5f});
    return output;
  }

  int32_t linear(int32_t input, int32_t outputs, int32_t into) {
    const int32_t output = into < 0 ? value(RowKind::kTokens, outputs) : into;
    plan_.ops.push_back({.kind = OpKind::kLinear,
                         .input = input,
                         .output = output,
                         .residual = into,
                         .weight = weight("", true, outputs, width(input))});
    return output;
  }
  void add(int32_t x, int32_t input) { linear(input, width(x), x); }

  // Vectors are f32, around 1.
  int32_t weight(std::string name, bool matrix, int32_t rows, int32_t columns) {
    if (name.empty()) name = "weight" + std::to_string(plan_.weights.size());
    const DType dtype = matrix ? dtype_ : DType::kF32;
    const int64_t offset = static_cast<int64_t>((bytes_.size() + 63) / 64 * 64),
                  length = int64_t(rows) * static_cast<int64_t>(rowBytes(dtype, columns));
    bytes_.resize(static_cast<size_t>(offset + length));
    uint8_t* to = bytes_.data() + offset;
    for (int64_t i = 0; i < int64_t(rows) * columns; ++i) {
      const float random = static_cast<float>(random_.integer(-1000, 1000)) / 1000,
                  value = matrix ? random / std::sqrt(static_cast<float>(columns)) : 1 + random / 5;
      if (dtype == DType::kF32) {
        std::memcpy(to + 4 * i, &value, 4);
      } else {
        const uint16_t rounded = floatToBf16(value);
        std::memcpy(to + 2 * i, &rounded, 2);
      }
    }
    PlanWeight weight{name, matrix, rows, columns};
    weight.tensor = name;
    weight.tensorRows = rows;
    weight.tensorColumns = columns;
    plan_.weights.push_back(weight);
    tensors_.push_back({name, dtype, rows, columns, offset, length});
    return static_cast<int32_t>(plan_.weights.size()) - 1;
  }

  const DType dtype_;
  Random random_{1};
  NetworkPlan plan_;
  std::vector<WeightTensor> tensors_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<float> tinyFrequencies() {
  std::vector<float> frequencies;
  for (int32_t i = 0; i < kHeadDim / 2; ++i)
    frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / (kHeadDim / 2)));
  return frequencies;
}

ExecutorConfig tinyConfig(DType weights, const TemporaryFolder& folder) { return PlanWriter(weights).write(folder); }

}  // namespace skein

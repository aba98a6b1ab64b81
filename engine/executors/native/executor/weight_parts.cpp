// The tensors that each weight of a plan is made of, and the rows of them that a rank has.
//
//   weight         | q q q q q q | k k | v v |      tensors of one name, each from its first row on
//   tensors        | q4_k: q and k     | q6_k: v
//   a rank's rows      --                 -          slices of the weight, cut at the tensors' borders
#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "executor/plan.h"

namespace skein {
namespace {

std::string shape(int64_t rows, int64_t columns) {
  return "[" + std::to_string(rows) + " x " + std::to_string(columns) + "]";
}

// The rows of [first, first + count) that lie in the tensor, counted from its own first row.
WeightPart partOf(const PlanWeight& weight, size_t index, const WeightTensor& tensor) {
  if (weight.slices.empty() || !weight.matrix) return {index, static_cast<int32_t>(tensor.rows)};
  WeightPart part{index, 0};
  for (const WeightSlice& slice : weight.slices) {
    const int64_t begin = std::max<int64_t>(slice.first, tensor.firstRow);
    const int64_t end = std::min<int64_t>(int64_t(slice.first) + slice.count, tensor.firstRow + tensor.rows);
    if (begin >= end) continue;
    part.slices.push_back({static_cast<int32_t>(begin - tensor.firstRow), static_cast<int32_t>(end - begin)});
    part.rows += static_cast<int32_t>(end - begin);
  }
  return part;
}

bool isIn(const std::vector<int32_t>& list, int32_t index) {
  return std::find(list.begin(), list.end(), index) != list.end();
}

// True if an op cannot take the weight in its parts: a plain product takes any, a gated one takes gate and up, and so does an expert's that is
// clamped; other products of experts take none.
bool needsOnePiece(const NetworkPlan& plan, int32_t index) {
  const std::vector<WeightPart>& parts = plan.weights[static_cast<size_t>(index)].parts;
  const bool areHalves = parts.size() == 2 && parts[0].rows == parts[1].rows;
  return std::any_of(plan.ops.begin(), plan.ops.end(), [&](const PlanOp& op) {
    if (op.bias == index || op.sinkLogits == index || isIn(op.gateUpBiases, index) || isIn(op.downBiases, index))
      return true;
    const std::vector<OpProduct> products = productsOf(op);
    if (products.empty()) return op.weight == index;
    return std::any_of(products.begin(), products.end(), [&](const OpProduct& product) {
      if (product.weight != index) return false;
      if (product.gated || (op.clampLimit > 0 && isIn(op.gateUps, index))) return !areHalves;
      return op.kind == OpKind::kExperts;
    });
  });
}

}  // namespace

std::vector<OpProduct> productsOf(const PlanOp& op) {
  if (op.kind == OpKind::kLinear || op.kind == OpKind::kGatedLinear)
    return {{op.weight, op.kind == OpKind::kGatedLinear}};
  std::vector<OpProduct> products;
  if (op.kind != OpKind::kExperts) return products;
  for (size_t expert = 0; expert < op.gateUps.size(); ++expert) {
    products.push_back({op.gateUps[expert], !op.ungated && op.clampLimit == 0, true});
    products.push_back({op.downs[expert], false, true});
  }
  return products;
}

void findParts(ExecutorConfig& config) {
  std::unordered_map<std::string, std::vector<size_t>> byName;
  for (size_t i = 0; i < config.tensors.size(); ++i) byName[config.tensors[i].name].push_back(i);
  for (size_t i = 0; i < config.plan.weights.size(); ++i) {
    PlanWeight& weight = config.plan.weights[i];
    const auto found = byName.find(weight.tensor);
    if (found == byName.end()) {
      throw std::runtime_error(config.weightsFile + " has no tensor " + weight.tensor + ", which the plan needs.");
    }
    const std::string name = config.weightsFile + ": tensor " + weight.tensor;
    int64_t rows = 0;
    weight.parts.clear();
    for (const size_t index : found->second) {
      const WeightTensor& tensor = config.tensors[index];
      const int64_t left = weight.tensorRows - rows;
      const bool isAlone = found->second.size() == 1;
      const bool fits = tensor.columns == weight.tensorColumns && tensor.firstRow == rows && tensor.rows > 0 &&
                        (isAlone ? tensor.rows == left : tensor.rows <= left);
      if (!fits) {
        const auto from = [&](int64_t row) { return isAlone ? "" : " from row " + std::to_string(row) + " on"; };
        throw std::runtime_error(name + " is " + shape(tensor.rows, tensor.columns) + from(tensor.firstRow) +
                                 ", but the plan expects " + shape(left, weight.tensorColumns) + from(rows) + ".");
      }
      rows += tensor.rows;
      weight.parts.push_back(partOf(weight, index, tensor));
    }
    if (rows != weight.tensorRows) {
      throw std::runtime_error(name + " has " + std::to_string(rows) + " rows, but the plan expects " +
                               std::to_string(weight.tensorRows) + ".");
    }
    if (weight.parts.size() > 1 && needsOnePiece(config.plan, static_cast<int32_t>(i))) {
      throw std::runtime_error(name + " is stored in " + std::to_string(weight.parts.size()) +
                               " formats, but an op needs it in one.");
    }
  }
}

}  // namespace skein

#include "executor/stored_weights.h"

#include <algorithm>
#include <stdexcept>

#include "convert/converted-rows.h"
#include "convert/quantize.h"

namespace skein {
namespace {

// True where blocks of the file are those of the format.
bool isAsStored(const StoredFormat& format) {
  return format.type != StoredType::kF16 && size_t(format.blockBytes) == blockBytes(format.dtype);
}

const StoredFormat* formatNamed(std::string_view name) {
  const auto found = std::find_if(std::begin(kStoredFormats), std::end(kStoredFormats),
                                  [&](const StoredFormat& format) { return format.name == name; });
  return found == std::end(kStoredFormats) ? nullptr : found;
}

// The type whose rows are those of the format.
StoredType typeOf(const WeightTensor& tensor) {
  for (const StoredFormat& format : kStoredFormats)
    if (format.dtype == tensor.dtype && isAsStored(format)) return format.type;
  throw std::runtime_error("Tensor " + tensor.name + " has a format whose rows no product reads.");
}

StoredType typeOf(const WeightTensor& tensor, const ConvertJob& job) {
  const std::string what = job.source + ": tensor " + tensor.name + " is of type " + std::string(job.type->name);
  const StoredFormat* format = formatNamed(job.type->name);
  if (format == nullptr || format->dtype != tensor.dtype || !job.isCopied())
    throw std::runtime_error(what + ", whose rows no product reads as " + formatOf(tensor.dtype).name + ".");
  if (job.type != tensor.jobs.front().type)
    throw std::runtime_error(what + ", and its first rows are " + std::string(tensor.jobs.front().type->name) + ".");
  return format->type;
}

}  // namespace

StoredWeights::StoredWeights(const ExecutorConfig& config, const uint8_t* held)
    : pieces_(config.tensors.size()), matrices_(config.tensors.size()) {
  for (const PlanWeight& weight : config.plan.weights) {
    if (config.plan.ranks > 1)
      throw std::runtime_error("Weights that stay in their file are read by one process, and not by several ranks.");
    if (!weight.matrix) continue;
    for (const WeightPart& part : weight.parts) addMatrix(part.tensor, config.tensors[part.tensor], held);
  }
  if (!config.expertsFromDisk) return;
  staysOnDisk_.resize(config.tensors.size());
  for (const PlanOp& op : config.plan.ops)
    for (const OpProduct& product : productsOf(op))
      for (const WeightPart& part : config.plan.weights[static_cast<size_t>(product.weight)].parts)
        if (product.isExpert) staysOnDisk_[part.tensor] = true;
}

void StoredWeights::addMatrix(size_t index, const WeightTensor& tensor, const uint8_t* held) {
  std::vector<StoredPiece>& pieces = pieces_[index];
  if (!pieces.empty()) return;
  StoredType type{};
  for (const ConvertJob& job : tensor.jobs) {
    type = typeOf(tensor, job);
    pieces.push_back(pieceOf(tensor, job));
  }
  if (tensor.jobs.empty()) {
    type = typeOf(tensor);
    pieces.push_back({held + tensor.offset, static_cast<int32_t>(tensor.rows), 0});
  }
  matrices_[index] = {type, static_cast<int32_t>(tensor.columns), static_cast<int32_t>(pieces.size()), pieces.data()};
}

StoredPiece StoredWeights::pieceOf(const WeightTensor& tensor, const ConvertJob& job) {
  checkSource(job, PositionedFile(job.source, PositionedFile::Role::kSource));
  const auto found = files_.find(job.source);
  const Mapping& file = found != files_.end()
                            ? found->second
                            : files_.emplace(job.source, Mapping::readOnlyFile(job.source)).first->second;
  if (job.sourceOffset + job.sourceByteLength > int64_t(file.size()))
    throw std::runtime_error(job.source + " became shorter while it was opened: tensor " + tensor.name +
                             " is cut off.");
  bytes_ += static_cast<size_t>(job.sourceByteLength);
  const int64_t headRows = job.interleavedHeads == 0 ? 0 : job.rows / job.interleavedHeads;
  return {file.data() + job.sourceOffset, static_cast<int32_t>(job.rows), static_cast<int32_t>(headRows)};
}

const uint8_t* StoredWeights::row(size_t tensor, int32_t row, std::vector<uint8_t>& converted) const {
  const StoredMatrix& matrix = matrices_[tensor];
  const StoredFormat& format = formatOf(matrix.type);
  const uint8_t* from = matrix.row(row);
  if (isAsStored(format)) return from;
  const TensorType& type = *tensorTypeOf(format.name);
  const int64_t columns = matrix.columns, blocks = columns / format.blockElements;
  converted.resize(rowBytes(format.dtype, columns));
  if (const ExactConversion exact = exactConversion(type, format.dtype)) {
    exact(from, blocks, converted.data());
    return converted.data();
  }
  std::vector<float> floats(static_cast<size_t>(columns));
  type.toF32(from, blocks, floats.data());
  uint16_t* rounded = reinterpret_cast<uint16_t*>(converted.data());
  for (int64_t i = 0; i < columns; ++i) rounded[i] = floatToBf16(floats[static_cast<size_t>(i)]);
  return converted.data();
}

std::vector<MappedBytes> StoredWeights::placesOf(size_t tensor) const {
  const size_t rowBytes = static_cast<size_t>(matrices_[tensor].rowBytes());
  std::vector<MappedBytes> places;
  for (const StoredPiece& piece : pieces_[tensor])
    places.push_back({piece.data, static_cast<size_t>(piece.rows) * rowBytes});
  return places;
}

bool StoredWeights::tellsResidency() const {
  return std::all_of(files_.begin(), files_.end(), [](const auto& one) { return skein::tellsResidency(one.first); });
}

// Calls fn(file, offset, bytes) for whatever lies in files and is read by every step.
template <typename Fn>
void StoredWeights::eachCommonPiece(const Fn& fn) const {
  for (size_t tensor = 0; tensor < pieces_.size(); ++tensor) {
    if (pieces_[tensor].empty() || staysOnDisk_[tensor]) continue;
    for (const MappedBytes& place : placesOf(tensor)) {
      for (const auto& [path, file] : files_) {
        if (place.data >= file.data() && place.data < file.data() + file.size())
          fn(file, static_cast<size_t>(place.data - file.data()), place.bytes);
      }
    }
  }
}

void StoredWeights::willNeed() const {
  if (staysOnDisk_.empty()) {
    for (const auto& [path, file] : files_) file.willNeed();
  } else {
    for (const auto& [path, file] : files_) adviseRandom(wholePages({file.data(), file.size()}));
    eachCommonPiece([](const Mapping& file, size_t offset, size_t bytes) {
      readAhead(wholePages({file.data() + offset, bytes}));
    });
  }
}

void StoredWeights::provide() const {
  if (staysOnDisk_.empty()) {
    for (const auto& [path, file] : files_) file.provide(0, file.size(), false);
  } else {
    eachCommonPiece([](const Mapping& file, size_t offset, size_t bytes) {
      file.provide(offset, bytes, false);
      adviseNormal(wholePages({file.data() + offset, bytes}));
    });
  }
}

}  // namespace skein

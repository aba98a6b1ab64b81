// What of packed weights is of experts: where they lie in the file, and their checksums.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "coded_error.h"
#include "executor/checksums.h"
#include "executor/packed_weights.h"

namespace skein {

std::vector<const PackedWeights::Entry*> PackedWeights::entriesOf(const OpProduct& product) const {
  std::vector<const Entry*> found;
  const size_t weight = static_cast<size_t>(product.weight);
  for (size_t i = static_cast<size_t>(firstEntry_[weight][isGated(product)]); i < entries_.size(); ++i) {
    if (entries_[i].weight != product.weight || entries_[i].gated != isGated(product)) break;
    found.push_back(&entries_[i]);
  }
  return found;
}

size_t PackedWeights::bytesOf(const OpProduct& product) const {
  size_t bytes = 0;
  if (stored_ == nullptr) {
    for (const Entry* entry : entriesOf(product)) bytes += entry->pageBytes();
    return bytes;
  }
  for (const WeightPart& part : parts_[static_cast<size_t>(product.weight)])
    for (const MappedBytes& piece : stored_->placesOf(part.tensor)) bytes += piece.bytes;
  return bytes;
}

std::vector<MappedBytes> PackedWeights::placesOf(const OpProduct& product) const {
  std::vector<MappedBytes> places;
  if (stored_ == nullptr) {
    for (const Entry* entry : entriesOf(product)) places.push_back({packed_.data() + entry->offset, entry->pageBytes()});
    return places;
  }
  for (const WeightPart& part : parts_[static_cast<size_t>(product.weight)]) {
    const std::vector<MappedBytes> pieces = stored_->placesOf(part.tensor);
    places.insert(places.end(), pieces.begin(), pieces.end());
  }
  return places;
}

bool PackedWeights::tellsResidency() const {
  return stored_ != nullptr ? stored_->tellsResidency() : skein::tellsResidency(fileOfExperts_);
}

void PackedWeights::checkExpert(const OpProduct& product, ThreadPool& pool) const {
  if (stored_ != nullptr) return;
  for (const Entry* entry : entriesOf(product)) {
    if (expertChecksum(packed_, *entry, pool) == keptSum(packed_, *entry)) continue;
    unlink(fileOfExperts_.c_str());
    throw CodedError(kWeightsChanged,
                     fileOfExperts_ + ": the bytes of " + tensor(entry->weight, entry->part).name +
                         " are not those that were packed, the disk or a program has changed them; the file is "
                         "removed, and the next start packs it again.");
  }
}

std::vector<MappedBytes> PackedWeights::commonParts(const Mapping& file) const {
  std::vector<MappedBytes> parts;
  size_t begin = kPage;
  const auto endAt = [&](size_t end) {
    if (end > begin) parts.push_back({file.data() + begin, end - begin});
  };
  for (const Entry& entry : entries_) {
    if (!entry.isExpert) continue;
    endAt(entry.offset);
    begin = entry.offset + entry.pageBytes();
  }
  endAt(packedBytes_);
  return parts;
}

void PackedWeights::askForCommonParts(const Mapping& file) const {
  for (const MappedBytes& part : commonParts(file)) readAhead(part);
}

uint64_t PackedWeights::commonChecksum(const Mapping& file, ThreadPool& pool) const {
  const std::vector<MappedBytes> parts = commonParts(file);
  if (parts.size() == 1) return pagesChecksum(parts[0].data, parts[0].bytes, pool);
  Fingerprint print;
  for (const MappedBytes& part : parts) print.add(static_cast<int64_t>(pagesChecksum(part.data, part.bytes, pool)));
  return print.value();
}

uint64_t PackedWeights::expertChecksum(const Mapping& file, const Entry& entry, ThreadPool& pool) const {
  return pagesChecksum(file.data() + entry.offset, entry.pageBytes(), pool);
}

uint64_t PackedWeights::keptSum(const Mapping& file, const Entry& entry) const {
  uint64_t sum = 0;
  std::memcpy(&sum, file.data() + kPage + entry.sum * sizeof sum, sizeof sum);
  return sum;
}

bool PackedWeights::areExpertsWhole(const Mapping& file, ThreadPool& pool) const {
  return std::all_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return !entry.isExpert || expertChecksum(file, entry, pool) == keptSum(file, entry);
  });
}

std::vector<uint64_t> PackedWeights::expertSums(const Mapping& file, ThreadPool& pool) const {
  std::vector<uint64_t> sums;
  for (const Entry& entry : entries_)
    if (entry.isExpert) sums.push_back(expertChecksum(file, entry, pool));
  return sums;
}

}  // namespace skein

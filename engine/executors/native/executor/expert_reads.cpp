#include "executor/expert_reads.h"

#include <algorithm>
#include <chrono>

namespace skein {
namespace {

// What is read at the start to learn how fast the disk is: so much, or a share of all experts if that is less, in steps, of which none follows
// after a time.
constexpr size_t kMeasuredBytes = 64 << 20, kMeasuredShare = 32;
constexpr size_t kStepBytes = 16 << 20;
constexpr std::chrono::milliseconds kMeasuringTime{250};
// Fewer bytes tell nothing of a disk.
constexpr size_t kLeastMeasuredBytes = 4 << 20;

using Clock = std::chrono::steady_clock;

// Waits until the pages are in memory.
void touch(const MappedBytes& pages) {
  for (size_t at = 0; at < pages.bytes; at += kPage) *static_cast<const volatile uint8_t*>(pages.data + at);
}

}  // namespace

ExpertBytes expertBytesOf(const ExecutorConfig& config, const PackedWeights& weights) {
  ExpertBytes sum;
  for (const PlanOp& op : config.plan.ops) {
    if (op.kind != OpKind::kExperts) continue;
    const std::vector<OpProduct> products = productsOf(op);
    size_t ofLayer = 0, most = 0;
    for (size_t expert = 0; expert < op.gateUps.size(); ++expert) {
      const size_t bytes = weights.bytesOf(products[2 * expert]) + weights.bytesOf(products[2 * expert + 1]);
      ofLayer += bytes;
      most = std::max(most, bytes);
    }
    sum.all += ofLayer;
    sum.ofLayer = std::max(sum.ofLayer, ofLayer);
    sum.perToken += std::min(ofLayer, most * static_cast<size_t>(op.rule.used));
  }
  return sum;
}

ExpertReads::ExpertReads(const ExecutorConfig& config, const PackedWeights& weights)
    : weights_(weights), bytes_(expertBytesOf(config, weights)) {
  if (!config.expertsFromDisk) return;
  for (const PlanOp& op : config.plan.ops) {
    Op& own = ops_.emplace_back();
    if (op.kind != OpKind::kExperts) continue;
    own.products = productsOf(op);
    own.isChecked.resize(op.gateUps.size());
    for (size_t i = 0; i < own.products.size(); ++i)
      for (const MappedBytes& bytes : weights.placesOf(own.products[i]))
        own.places.push_back({wholePages(bytes), static_cast<int32_t>(i / 2)});
    std::sort(own.places.begin(), own.places.end(),
              [](const Place& a, const Place& b) { return a.pages.data < b.pages.data; });
  }
  tellsResidency_ = weights.tellsResidency();
  measure();
}

// Reads experts of several layers, as a step would.
void ExpertReads::measure() {
  const size_t most = std::min(kMeasuredBytes, bytes_.all / kMeasuredShare);
  if (most < kLeastMeasuredBytes) return;
  size_t read = 0;
  const Clock::time_point start = Clock::now();
  for (size_t turn = 0; read < most && Clock::now() - start < kMeasuringTime; ++turn) {
    std::vector<MappedBytes> asked;
    size_t step = 0;
    bool hasMore = false;
    for (const Op& op : ops_) {
      if (turn >= op.places.size()) continue;
      hasMore = true;
      if (step >= std::min(kStepBytes, most)) break;
      const MappedBytes& pages = op.places[turn].pages;
      const size_t bytes = ask(pages);
      if (bytes > 0) asked.push_back(pages);
      step += bytes;
    }
    if (!hasMore) break;
    for (const MappedBytes& pages : asked) touch(pages);
    read += step;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (read >= kLeastMeasuredBytes) bytesPerSecond_ = static_cast<double>(read) / seconds;
}

size_t ExpertReads::ask(const MappedBytes& pages) {
  if (tellsResidency_) {
    size_t absent = 0;
    const MappedBytes missing = absentPages(pages, pages_, absent);
    if (absent > 0) skein::readAhead(missing);
    return absent;
  }
  const uint64_t before = bytesReadByThread();
  skein::readAhead(pages);
  return static_cast<size_t>(bytesReadByThread() - before);
}

void ExpertReads::readAhead(size_t op, const ExpertRows& rows, ThreadPool& pool) {
  if (ops_.empty()) return;
  Op& own = ops_[op];
  size_t bytes = 0;
  for (size_t i = 0; i < own.places.size();) {
    const Place& place = own.places[i++];
    if (rows.rowsOf(place.expert) == 0) continue;
    MappedBytes range = place.pages;
    for (; i < own.places.size() && own.places[i].pages.data <= range.end(); ++i) {
      if (rows.rowsOf(own.places[i].expert) == 0) break;
      range.bytes = static_cast<size_t>(std::max(range.end(), own.places[i].pages.end()) - range.data);
    }
    bytes += ask(range);
  }
  if (bytes > 0) bytesRead_.fetch_add(bytes, std::memory_order_relaxed);
  for (size_t expert = 0; expert < own.isChecked.size(); ++expert) {
    if (own.isChecked[expert] || rows.rowsOf(static_cast<int32_t>(expert)) == 0) continue;
    for (size_t i = 0; i < 2; ++i) weights_.checkExpert(own.products[2 * expert + i], pool);
    own.isChecked[expert] = true;
  }
}

}  // namespace skein

#include "executor/turn_queue.h"

#include <algorithm>

namespace skein {

void TurnQueue::ask(Entry& entry) {
  Account& account = *entry.account;
  account.virtualSeconds = std::max(account.virtualSeconds, virtualSeconds_ - kCreditSeconds);
  if (waiting_.empty() && fits(entry)) begin(entry);
  else wait(entry);
}

void TurnQueue::wait(Entry& entry) {
  entry.waits = true;
  waiting_.push_back(&entry);
}

void TurnQueue::leave(Entry& entry) {
  entry.waits = false;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &entry));
}

void TurnQueue::charge(Entry& entry, double seconds) {
  entry.account->heldSeconds += seconds;
  entry.account->virtualSeconds += seconds * entry.threads / entry.account->weight;
}

bool TurnQueue::mustPart(const Entry& entry) const {
  const Entry* best = next();
  return best != nullptr && best->account->virtualSeconds + kMarginSeconds < entry.account->virtualSeconds;
}

void TurnQueue::giveUp(Entry& entry) {
  entry.holds = false;
  inUse_ -= entry.threads;
}

TurnQueue::Entry* TurnQueue::call() {
  Entry* entry = next();
  if (entry == nullptr || !fits(*entry)) return nullptr;
  leave(*entry);
  begin(*entry);
  return entry;
}

// The entry that came first among those that are furthest behind.
TurnQueue::Entry* TurnQueue::next() const {
  const auto behind = [](const Entry* a, const Entry* b) {
    return a->account->virtualSeconds < b->account->virtualSeconds;
  };
  const auto best = std::min_element(waiting_.begin(), waiting_.end(), behind);
  return best == waiting_.end() ? nullptr : *best;
}

void TurnQueue::begin(Entry& entry) {
  entry.holds = true;
  inUse_ += entry.threads;
  turns_++;
  virtualSeconds_ = std::max(virtualSeconds_, entry.account->virtualSeconds);
}

}  // namespace skein

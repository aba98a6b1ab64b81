#include "executor/compute_turns.h"

#include <algorithm>

namespace skein {

ComputeTurns& ComputeTurns::of() {
  // Never destroyed: threads of workers may outlive the end of main.
  static ComputeTurns* turns = new ComputeTurns();
  return *turns;
}

void ComputeTurns::provide(int32_t processors) {
  ComputeTurns& turns = of();
  const std::lock_guard<std::mutex> lock(turns.mutex_);
  turns.processors_ = std::max(1, processors);
}

void ComputeTurns::Client::join(std::shared_ptr<Account> account, double weight) {
  const std::lock_guard<std::mutex> lock(of().mutex_);
  account_ = std::move(account);
  account_->weight = weight;
}

ComputeTurns::Account ComputeTurns::Client::account() const {
  const std::lock_guard<std::mutex> lock(of().mutex_);
  return *account_;
}

void ComputeTurns::acquire(Client& client) {
  if (client.depth_++ > 0) return;
  std::unique_lock<std::mutex> lock(mutex_);
  Account& account = *client.account_;
  account.virtualSeconds = std::max(account.virtualSeconds, virtualSeconds_ - kCreditSeconds);
  if (queue_.empty() && fits(client)) take(client);
  else wait(lock, client);
}

void ComputeTurns::release(Client& client) {
  if (--client.depth_ > 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  client.isBeside_ = false;
  if (!client.holds_) return;
  charge(client);
  giveUp(client);
  callNext();
}

void ComputeTurns::part(Client& client) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!client.holds_) return;
  charge(client);
  const Client* best = next();
  if (best == nullptr || best->account_->virtualSeconds + kMarginSeconds >= client.account_->virtualSeconds) return;
  client.account_->partings++;
  giveUp(client);
  callNext();
  wait(lock, client);
}

void ComputeTurns::take(Client& client) {
  client.holds_ = true;
  client.since_ = Clock::now();
  inUse_ += client.threads_;
  turn_++;
  virtualSeconds_ = std::max(virtualSeconds_, client.account_->virtualSeconds);
}

void ComputeTurns::giveUp(Client& client) {
  client.holds_ = false;
  inUse_ -= client.threads_;
}

void ComputeTurns::charge(Client& client) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - client.since_).count();
  client.since_ = now;
  client.account_->heldSeconds += seconds;
  client.account_->virtualSeconds += seconds * client.threads_ / client.account_->weight;
}

// The first to come of those that are furthest behind.
ComputeTurns::Client* ComputeTurns::next() const {
  const auto behind = [](const Client* a, const Client* b) { return a->account_->virtualSeconds < b->account_->virtualSeconds; };
  const auto best = std::min_element(queue_.begin(), queue_.end(), behind);
  return best == queue_.end() ? nullptr : *best;
}

void ComputeTurns::enqueue(Client& client) {
  client.waits_ = true;
  queue_.push_back(&client);
  waiting_.store(static_cast<int32_t>(queue_.size()), std::memory_order_relaxed);
}

void ComputeTurns::dequeue(Client& client) {
  client.waits_ = false;
  queue_.erase(std::find(queue_.begin(), queue_.end(), &client));
  waiting_.store(static_cast<int32_t>(queue_.size()), std::memory_order_relaxed);
}

// Nobody is passed by one that is less behind and would fit: with more than one turn at a time it would wait for ever.
void ComputeTurns::callNext() {
  for (Client* client = next(); client != nullptr && fits(*client); client = next()) {
    dequeue(*client);
    take(*client);
    client->called_.notify_one();
  }
}

void ComputeTurns::wait(std::unique_lock<std::mutex>& lock, Client& client) {
  const Clock::time_point start = Clock::now();
  Clock::time_point patience = start + kPatience;
  uint64_t turn = turn_;
  enqueue(client);
  while (client.waits_) {
    client.called_.wait_for(lock, kBeat);
    if (!client.waits_) break;
    if (client.beats_ != nullptr) __atomic_fetch_add(client.beats_, 1, __ATOMIC_SEQ_CST);
    if (turn != turn_) {
      turn = turn_;
      patience = Clock::now() + kPatience;
    } else if (Clock::now() >= patience) {
      dequeue(client);
      client.isBeside_ = true;
    }
  }
  client.account_->waitedSeconds += std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace skein

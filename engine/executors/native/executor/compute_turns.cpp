#include "executor/compute_turns.h"

#include <algorithm>
#include <thread>

namespace skein {

ComputeTurns::ComputeTurns() : queue_(static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()))) {}

ComputeTurns& ComputeTurns::of() {
  // Never destroyed: threads of workers may outlive the end of main.
  static ComputeTurns* turns = new ComputeTurns();
  return *turns;
}

void ComputeTurns::provide(int32_t processors) {
  ComputeTurns& turns = of();
  const std::lock_guard<std::mutex> lock(turns.mutex_);
  turns.queue_.provide(std::max(1, processors));
}

void ComputeTurns::Client::join(std::shared_ptr<Account> shared, double weight) {
  const std::lock_guard<std::mutex> lock(of().mutex_);
  account = std::move(shared);
  account->weight = weight;
}

ComputeTurns::Account ComputeTurns::Client::used() const {
  const std::lock_guard<std::mutex> lock(of().mutex_);
  return *account;
}

void ComputeTurns::acquire(Client& client) {
  if (client.depth_++ > 0) return;
  std::unique_lock<std::mutex> lock(mutex_);
  queue_.ask(client);
  if (client.holds) client.since_ = Clock::now();
  else awaitTurn(lock, client);
}

void ComputeTurns::release(Client& client) {
  if (--client.depth_ > 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!client.holds) return;  // it went on without a turn
  charge(client);
  queue_.giveUp(client);
  callNext();
}

void ComputeTurns::part(Client& client) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!client.holds) return;
  charge(client);
  if (!queue_.mustPart(client)) return;
  client.account->partings++;
  queue_.giveUp(client);
  callNext();
  queue_.wait(client);
  awaitTurn(lock, client);
}

void ComputeTurns::charge(Client& client) {
  const Clock::time_point now = Clock::now();
  TurnQueue::charge(client, std::chrono::duration<double>(now - client.since_).count());
  client.since_ = now;
}

void ComputeTurns::callNext() {
  while (TurnQueue::Entry* entry = queue_.call()) {
    Client* client = static_cast<Client*>(entry);
    client->since_ = Clock::now();
    client->called_.notify_one();
  }
  noteQueue();
}

void ComputeTurns::awaitTurn(std::unique_lock<std::mutex>& lock, Client& client) {
  noteQueue();
  const Clock::time_point start = Clock::now();
  Clock::time_point patience = start + kPatience;
  uint64_t turns = queue_.turns();
  while (client.waits) {
    client.called_.wait_for(lock, kBeat);
    if (!client.waits) break;
    if (client.beats_ != nullptr) __atomic_fetch_add(client.beats_, 1, __ATOMIC_SEQ_CST);
    if (turns != queue_.turns()) {
      turns = queue_.turns();
      patience = Clock::now() + kPatience;
    } else if (Clock::now() >= patience) {
      queue_.leave(client);
      noteQueue();
    }
  }
  client.account->waitedSeconds += std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace skein

#include "executor/step_thread.h"

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "executor/float_control.h"

namespace skein {

void StepThread::end() {
  if (!thread_.joinable()) return;
  state_.wait(kBegun);
  set(kStopping);
  thread_.join();
}

void StepThread::begin(std::function<void()> job) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { loop(); });
    } catch (const std::system_error& error) {
      throw std::runtime_error(std::string("The system gives no thread for steps that are begun (") + error.what() +
                               ").");
    }
  }
  job_ = std::move(job);
  error_ = nullptr;
  set(kBegun);
}

void StepThread::finish() {
  state_.wait(kBegun);
  set(kIdle);
  job_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void StepThread::loop() {
  const FloatControlScope floatControl;
  for (;;) {
    const int32_t state = state_.load();
    if (state == kStopping) return;
    if (state != kBegun) {
      state_.wait(state);
      continue;
    }
    try {
      job_();
    } catch (...) {
      error_ = std::current_exception();
    }
    set(kDone);
  }
}

// Notifies all, since both sides may wait on the one word.
void StepThread::set(int32_t state) {
  state_.store(state);
  state_.notify_all();
}

}  // namespace skein

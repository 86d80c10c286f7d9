#ifndef LOCKSTEP_COMMON_BASE_TESTING_LIMITED_THREADS_H_
#define LOCKSTEP_COMMON_BASE_TESTING_LIMITED_THREADS_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// Starts `limit` threads of the operating system whose names contain `part`, and then none, like a system that has no
// more left. Does not limit other threads. For tests. Thread-safe.
class LimitedThreads : public Executor {
 public:
  explicit LimitedThreads(int limit, std::string part = "") : left_(limit), part_(std::move(part)) {}

  // The number of threads that were refused.
  int refused() const { return std::max(0, -left_.load()); }

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    if (name.find(part_) != std::string::npos && left_.fetch_sub(1) <= 0) return nullptr;
    return Executor::Threads()->TryStart(std::move(name), std::move(body), priority);
  }

  std::atomic<int> left_;
  const std::string part_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_TESTING_LIMITED_THREADS_H_

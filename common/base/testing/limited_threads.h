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

// An executor that starts `limit` threads whose names contain `part` and then no more, like a system that cannot create
// another thread. Does not limit other threads. For tests. Thread-safe.
class LimitedThreads : public Executor {
 public:
  explicit LimitedThreads(int limit, std::string part = "") : left_(limit), part_(std::move(part)) {}

  // Returns the number of threads that it refused to start.
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

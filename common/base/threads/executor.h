#ifndef LOCKSTEP_COMMON_BASE_THREADS_EXECUTOR_H_
#define LOCKSTEP_COMMON_BASE_THREADS_EXECUTOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace lockstep {

// A thread that an Executor started. The destructor joins it. Not thread-safe.
class Thread {
 public:
  virtual ~Thread() = default;
  // Blocks until the body has returned. Idempotent. Must not be called by the thread itself.
  virtual void Join() = 0;
  // Lets the thread outlive this object. Neither Join nor the destructor waits for it afterwards.
  virtual void Detach() = 0;
};

// The source of all threads, as Clock is the source of time. Production code creates threads only through an injected
// Executor, and blocks only in Clock, CondVar and Thread::Join, so that a simulation can run all of them in one thread,
// in any order that it chooses. Thread-safe.
class Executor {
 public:
  enum class Priority {
    kNormal,
    // Takes the processor time that normal threads leave unused, but does not starve while they are busy: next to three
    // busy threads it gets a tenth of a processor.
    kBackground,
  };

  // Returns the executor for threads of the operating system. It is never destroyed.
  static Executor* Threads();

  virtual ~Executor() = default;

  // Runs `body` in a new thread. `name` is for debuggers and profilers, which show its first 15 bytes. Ends the process
  // if the system cannot create another thread.
  std::unique_ptr<Thread> Start(std::string name, absl::AnyInvocable<void()> body,
                                Priority priority = Priority::kNormal);
  // Like Start, for callers that can continue without the thread: if the system cannot create another thread, returns
  // null and destroys `body` without running it.
  std::unique_ptr<Thread> TryStart(std::string name, absl::AnyInvocable<void()> body,
                                   Priority priority = Priority::kNormal) {
    return StartThread(std::move(name), priority, std::move(body));
  }

 private:
  // Returns null if the system cannot create another thread.
  virtual std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_THREADS_EXECUTOR_H_

#include "lockstep/common/base/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace lockstep {
namespace {

// The weights of the scheduler are 335 at this niceness and 1024 at 0.
constexpr int kBackgroundNiceness = 5;
constexpr size_t kMaxNameSize = 15;  // of pthread_setname_np

void LowerPriority() {
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kBackgroundNiceness);
}

class SystemThread : public Thread {
 public:
  explicit SystemThread(std::thread thread) : thread_(std::move(thread)) {}
  ~SystemThread() override { SystemThread::Join(); }

  void Join() override {
    if (thread_.joinable()) thread_.join();
  }
  void Detach() override {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  std::thread thread_;
};

class SystemThreads : public Executor {
 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    return std::make_unique<SystemThread>(
        std::thread([name = name.substr(0, kMaxNameSize), priority, body = std::move(body)]() mutable {
          pthread_setname_np(pthread_self(), name.c_str());
          if (priority == Priority::kBackground) LowerPriority();
          body();
        }));
  }
};

}  // namespace

Executor* Executor::Threads() {
  static auto* const threads = new SystemThreads;
  return threads;
}

}  // namespace lockstep

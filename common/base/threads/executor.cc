#include "lockstep/common/base/threads/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "glog/logging.h"

namespace lockstep {
namespace {

// The scheduler gives this niceness a weight of 335, and niceness 0 a weight of 1024.
constexpr int kBackgroundNiceness = 5;
constexpr size_t kMaxNameSize = 15;  // the limit of pthread_setname_np

void LowerPriority() {
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kBackgroundNiceness);
}

// The arguments of a new thread.
struct Task {
  std::string name;
  Executor::Priority priority;
  absl::AnyInvocable<void()> body;
};

void* Run(void* argument) {
  const std::unique_ptr<Task> task(static_cast<Task*>(argument));
  pthread_setname_np(pthread_self(), task->name.c_str());
  if (task->priority == Executor::Priority::kBackground) LowerPriority();
  task->body();
  return nullptr;
}

class SystemThread : public Thread {
 public:
  explicit SystemThread(pthread_t thread) : thread_(thread) {}
  ~SystemThread() override { SystemThread::Join(); }

  void Join() override {
    if (std::exchange(joinable_, false)) CHECK_EQ(pthread_join(thread_, nullptr), 0);
  }
  void Detach() override {
    if (std::exchange(joinable_, false)) CHECK_EQ(pthread_detach(thread_), 0);
  }

 private:
  const pthread_t thread_;
  bool joinable_ = true;
};

// Does not use std::thread, whose constructor throws if the system cannot create another thread.
class SystemThreads : public Executor {
 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    auto task = std::make_unique<Task>(Task{name.substr(0, kMaxNameSize), priority, std::move(body)});
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, Run, task.get());
    if (error != 0) {
      LOG(WARNING) << "no thread for \"" << name << "\": " << std::strerror(error);
      return nullptr;
    }
    (void)task.release();  // The thread owns it.
    return std::make_unique<SystemThread>(thread);
  }
};

}  // namespace

Executor* Executor::Threads() {
  static auto* const threads = new SystemThreads;
  return threads;
}

std::unique_ptr<Thread> Executor::Start(std::string name, absl::AnyInvocable<void()> body, Priority priority) {
  auto thread = StartThread(name, priority, std::move(body));
  CHECK(thread != nullptr) << "there is no thread for \"" << name << "\"";
  return thread;
}

}  // namespace lockstep

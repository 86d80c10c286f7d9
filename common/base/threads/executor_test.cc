#include "lockstep/common/base/threads/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {
namespace {

std::string NameOfThisThread() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

int NicenessOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(ExecutorTest, RunsTheBodyInAThreadOfItsOwn) {
  pthread_t id = pthread_self();
  Executor::Threads()->Start("test", [&id] { id = pthread_self(); })->Join();
  EXPECT_FALSE(pthread_equal(id, pthread_self()));
}

TEST(ExecutorTest, DestroyingAThreadJoinsIt) {
  bool done = false;
  {
    const auto thread = Executor::Threads()->Start("test", [&done] { done = true; });
  }
  EXPECT_TRUE(done);
}

TEST(ExecutorTest, AThreadMayBeJoinedAgain) {
  const auto thread = Executor::Threads()->Start("test", [] {});
  thread->Join();
  thread->Join();
}

TEST(ExecutorTest, ADetachedThreadOutlivesItsObject) {
  // Leaked, because the thread may still unlock the mutex after the test has ended.
  struct Gate {
    Mutex mutex;
    CondVar changed;
    bool open ABSL_GUARDED_BY(mutex) = false;
    bool passed ABSL_GUARDED_BY(mutex) = false;
  };
  static auto* const gate = new Gate;
  {
    const auto thread = Executor::Threads()->Start("test", [] {
      MutexLock lock(&gate->mutex);
      while (!gate->open) gate->changed.Wait(&gate->mutex);
      gate->passed = true;
      gate->changed.SignalAll();
    });
    thread->Detach();
    thread->Join();
  }
  MutexLock lock(&gate->mutex);
  gate->open = true;
  gate->changed.SignalAll();
  while (!gate->passed) gate->changed.Wait(&gate->mutex);
}

TEST(ExecutorTest, SaysThatTheSystemHasNoThread) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);  // larger than any address space
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  bool ran = false;
  EXPECT_EQ(Executor::Threads()->TryStart("test", [&ran] { ran = true; }), nullptr);
  EXPECT_FALSE(ran);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  const auto thread = Executor::Threads()->TryStart("test", [&ran] { ran = true; });
  ASSERT_NE(thread, nullptr);
  thread->Join();
  EXPECT_TRUE(ran);
}

TEST(ExecutorTest, TheThreadBearsTheBeginningOfItsName) {
  std::string name;
  Executor::Threads()->Start("event_queue", [&name] { name = NameOfThisThread(); })->Join();
  EXPECT_EQ(name, "event_queue");
  Executor::Threads()->Start("a name of twenty bytes", [&name] { name = NameOfThisThread(); })->Join();
  EXPECT_EQ(name, "a name of twent");
}

TEST(ExecutorTest, ABackgroundThreadYieldsToTheOthers) {
  int normal = 0;
  int background = 0;
  Executor::Threads()->Start("normal", [&] { normal = NicenessOfThisThread(); })->Join();
  Executor::Threads()
      ->Start(
          "background", [&] { background = NicenessOfThisThread(); }, Executor::Priority::kBackground)
      ->Join();
  EXPECT_EQ(normal, NicenessOfThisThread());
  EXPECT_GT(background, normal);
}

}  // namespace
}  // namespace lockstep

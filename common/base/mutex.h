#ifndef LOCKSTEP_COMMON_BASE_MUTEX_H_
#define LOCKSTEP_COMMON_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace lockstep {

class CondVar;

// Runs other work instead of waiting, for a simulation that runs the bodies of many threads in one thread. Ordinary
// programs have no scheduler and wait in the operating system.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Called before a mutex is acquired. May run the bodies of other threads first.
  virtual void OnLock() = 0;
  // Called when a mutex is held by another thread's body. Runs other bodies.
  virtual void OnContention() = 0;
  // Runs other bodies until `cv` is notified or `timeout` of simulated time has passed. May return spuriously. Returns
  // true if the timeout has passed.
  virtual bool Wait(const CondVar* cv, absl::Duration timeout) = 0;
  virtual void Notify(const CondVar* cv, bool all) = 0;

  // The process's scheduler, or null. Must be set before any mutex is used, and never while one is held.
  static Scheduler* Get() { return scheduler_; }
  static void Set(Scheduler* scheduler) { scheduler_ = scheduler; }

 private:
  static inline Scheduler* scheduler_ = nullptr;
};

// std::mutex with clang's thread-safety annotations. Not absl::Mutex: it lives in
// an uninstrumented library, so ThreadSanitizer reports false races on what it guards.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (ABSL_PREDICT_TRUE(Scheduler::Get() == nullptr)) {
      mutex_.lock();
      return;
    }
    Scheduler::Get()->OnLock();
    while (!mutex_.try_lock()) Scheduler::Get()->OnContention();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Tells the thread-safety analysis that the lock is held. Does nothing at run time.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex until the end of a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A condition variable for Mutex. Waits may end spuriously, so test the condition in a loop.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (ABSL_PREDICT_FALSE(Scheduler::Get() != nullptr)) {
      WaitInScheduler(mutex, absl::InfiniteDuration());
      return;
    }
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Waits in real time, for at most a day, or in the scheduler's simulated time. Returns true if the time passed
  // without a notification.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (ABSL_PREDICT_FALSE(Scheduler::Get() != nullptr)) return WaitInScheduler(mutex, timeout);
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    // Waits for at most a day, because adding a longer timeout to now() could overflow.
    const auto limit = absl::ToChronoNanoseconds(timeout < absl::Hours(24) ? timeout : absl::Hours(24));
    const bool timed_out = cv_.wait_for(lock, limit) == std::cv_status::timeout;
    lock.release();
    return timed_out;
  }
  void Signal() {
    if (ABSL_PREDICT_FALSE(Scheduler::Get() != nullptr)) return Scheduler::Get()->Notify(this, /*all=*/false);
    cv_.notify_one();
  }
  void SignalAll() {
    if (ABSL_PREDICT_FALSE(Scheduler::Get() != nullptr)) return Scheduler::Get()->Notify(this, /*all=*/true);
    cv_.notify_all();
  }

 private:
  bool WaitInScheduler(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex->Unlock();
    const bool timed_out = Scheduler::Get()->Wait(this, timeout);
    mutex->Lock();
    return timed_out;
  }

  std::condition_variable cv_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_MUTEX_H_

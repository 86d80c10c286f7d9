#include "server/rpc/queue_threads.h"

#include <algorithm>

#include "server/rpc/queue_event.h"

namespace lockstep {

QueueThreads::QueueThreads(grpc::CompletionQueue* queue, int threads) : queue_(queue) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Loop(); });
}

QueueThreads::~QueueThreads() {
  for (std::thread& thread : threads_) thread.join();
}

void QueueThreads::BeginWaiting() {
  MutexLock lock(&mutex_);
  while (somebody_waits_) nobody_waits_.Wait(&mutex_);
  somebody_waits_ = true;
}

void QueueThreads::EndWaiting() {
  MutexLock lock(&mutex_);
  somebody_waits_ = false;
  nobody_waits_.Signal();
}

void QueueThreads::Loop() {
  void* tag;
  bool ok;
  BeginWaiting();
  while (queue_->Next(&tag, &ok)) {
    QueueEvent* const event = static_cast<QueueEvent*>(tag);
    const bool is_long = event->IsLong();
    if (is_long) EndWaiting();
    event->OnEvent(ok);
    if (is_long) BeginWaiting();
  }
  EndWaiting();
}

}  // namespace lockstep

#include "lockstep/server/ps/versions/prefault.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep {
namespace {

// Pre-faulting less memory than this takes less time than one disk access.
constexpr size_t kLittle = 16 << 20;
// Number of bytes that one call to Populate pre-faults. During a call, threads that map memory and threads that start
// have to wait.
constexpr size_t kPiece = kHugePage;
constexpr size_t kPage = 4096;

// Pre-faults buffers by writing to them, for kernels that do not support Populate.
void Touch(const BufferPool::Buffers& buffers) {
  for (const auto& buffer : buffers) {
    for (size_t i = 0; i < buffer->size(); i += kPage) buffer->data()[i] = 0;
  }
}

}  // namespace

Prefault::Prefault(Executor* executor, BufferPool::Buffers buffers) : buffers_(std::move(buffers)) {
  size_t bytes = 0;
  for (const auto& buffer : buffers_) bytes += buffer->size();
  if (bytes == 0) return;
  if (!buffers_.front()->Populate(0, std::min(kPage, buffers_.front()->size()))) {
    Touch(buffers_);
    buffers_.clear();
  } else if (bytes < kLittle) {
    Run();
  } else {
    thread_ = executor->TryStart("prefault", [this] { Run(); });
    if (thread_ == nullptr) buffers_.clear();
  }
}

Prefault::~Prefault() {
  ending_.store(true, std::memory_order_relaxed);
  Await();
}

void Prefault::Await() {
  if (thread_ != nullptr) thread_->Join();
}

void Prefault::Run() {
  for (const auto& buffer : buffers_) {
    for (size_t at = 0; at < buffer->size() && !ending_.load(std::memory_order_relaxed); at += kPiece) {
      // A failure does not matter: a page that is not populated here is provided when it is first written to.
      buffer->Populate(at, std::min(kPiece, buffer->size() - at));
    }
  }
  buffers_.clear();
}

}  // namespace lockstep

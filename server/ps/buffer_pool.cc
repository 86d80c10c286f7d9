#include "server/ps/buffer_pool.h"

#include <utility>

namespace lockstep {

std::shared_ptr<AlignedBuffer> BufferPool::Get() {
  std::unique_ptr<AlignedBuffer> buffer;
  {
    MutexLock lock(&shelf_->mutex);
    if (!shelf_->spare.empty()) {
      buffer = std::move(shelf_->spare.back());
      shelf_->spare.pop_back();
    }
  }
  if (buffer == nullptr) {
    buffer = std::make_unique<AlignedBuffer>(shelf_->shared ? AlignedBuffer::Shared(shelf_->bytes)
                                                            : AlignedBuffer(shelf_->bytes));
  }
  return std::shared_ptr<AlignedBuffer>(buffer.release(), [shelf = shelf_](AlignedBuffer* returned) {
    std::unique_ptr<AlignedBuffer> owned(returned);
    MutexLock lock(&shelf->mutex);
    if (shelf->spare.size() < shelf->max_spare) shelf->spare.push_back(std::move(owned));
  });
}

size_t BufferPool::num_spare() const {
  MutexLock lock(&shelf_->mutex);
  return shelf_->spare.size();
}

}  // namespace lockstep

#include "lockstep/common/memory/buffer_pool.h"

#include <utility>

namespace lockstep {

std::shared_ptr<AlignedBuffer> BufferPool::Shelf::NewBuffer() const {
  return std::make_shared<AlignedBuffer>(shared ? AlignedBuffer::Shared(bytes) : AlignedBuffer(bytes));
}

std::shared_ptr<AlignedBuffer> BufferPool::Get() {
  std::shared_ptr<AlignedBuffer> buffer;
  {
    MutexLock lock(&shelf_->mutex);
    if (!shelf_->spare.empty()) {
      buffer = std::move(shelf_->spare.back());
      shelf_->spare.pop_back();
    }
  }
  if (buffer == nullptr) buffer = shelf_->NewBuffer();
  AlignedBuffer* const lent = buffer.get();
  return std::shared_ptr<AlignedBuffer>(lent, [shelf = shelf_, owner = std::move(buffer)](AlignedBuffer*) mutable {
    // If the pool is full, the buffer is freed after the unlock.
    const std::shared_ptr<AlignedBuffer> returned = std::move(owner);
    MutexLock lock(&shelf->mutex);
    if (shelf->spare.size() < shelf->max_spare) shelf->spare.push_back(returned);
  });
}

void BufferPool::Fill(Buffers* taken) {
  MutexLock lock(&shelf_->mutex);
  // Insert them below the existing ones, which Get returns first.
  Buffers fresh;
  while (fresh.size() + shelf_->spare.size() < shelf_->max_spare) fresh.push_back(shelf_->NewBuffer());
  taken->insert(taken->end(), fresh.rbegin(), fresh.rend());
  shelf_->spare.insert(shelf_->spare.begin(), fresh.begin(), fresh.end());
}

size_t BufferPool::num_spare() const {
  MutexLock lock(&shelf_->mutex);
  return shelf_->spare.size();
}

}  // namespace lockstep

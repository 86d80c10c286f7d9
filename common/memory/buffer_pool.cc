#include "lockstep/common/memory/buffer_pool.h"

#include <utility>

namespace lockstep {

std::shared_ptr<AlignedBuffer> BufferPool::FreeList::NewBuffer() const {
  return std::make_shared<AlignedBuffer>(shared ? AlignedBuffer::Shared(bytes) : AlignedBuffer(bytes));
}

std::shared_ptr<AlignedBuffer> BufferPool::Get() {
  std::shared_ptr<AlignedBuffer> buffer;
  {
    MutexLock lock(&free_list_->mutex);
    if (!free_list_->spare.empty()) {
      buffer = std::move(free_list_->spare.back());
      free_list_->spare.pop_back();
    }
  }
  if (buffer == nullptr) buffer = free_list_->NewBuffer();
  AlignedBuffer* const lent = buffer.get();
  return std::shared_ptr<AlignedBuffer>(lent, [list = free_list_, owner = std::move(buffer)](AlignedBuffer*) mutable {
    // If the pool is full, the buffer is freed after the unlock.
    const std::shared_ptr<AlignedBuffer> returned = std::move(owner);
    MutexLock lock(&list->mutex);
    if (list->spare.size() < list->max_spare) list->spare.push_back(returned);
  });
}

void BufferPool::Fill(Buffers* taken) {
  MutexLock lock(&free_list_->mutex);
  // Insert the new buffers below the existing ones, which Get returns first.
  Buffers fresh;
  while (fresh.size() + free_list_->spare.size() < free_list_->max_spare) fresh.push_back(free_list_->NewBuffer());
  taken->insert(taken->end(), fresh.rbegin(), fresh.rend());
  free_list_->spare.insert(free_list_->spare.begin(), fresh.begin(), fresh.end());
}

size_t BufferPool::num_spare() const {
  MutexLock lock(&free_list_->mutex);
  return free_list_->spare.size();
}

}  // namespace lockstep

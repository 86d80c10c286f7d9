#include "lockstep/common/memory/buffer_pool.h"

#include <utility>

namespace lockstep {
namespace {

// The smallest there is.
constexpr size_t kPage = 4096;

}  // namespace

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

void BufferPool::Fill() {
  // Every buffer taken here returns to the shelf at the end, also if it came from there.
  std::vector<std::shared_ptr<AlignedBuffer>> buffers(shelf_->max_spare);
  for (auto& buffer : buffers) {
    buffer = Get();
    for (size_t i = 0; i < buffer->size(); i += kPage) buffer->data()[i] = 0;
  }
}

size_t BufferPool::num_spare() const {
  MutexLock lock(&shelf_->mutex);
  return shelf_->spare.size();
}

}  // namespace lockstep

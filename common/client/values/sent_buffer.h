#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_SENT_BUFFER_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_SENT_BUFFER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// Elements, parts of which a sender may still read: gradients that are on their way, whose memory may be written again
// part by part. Movable. For one thread; the owners of parts may be dropped by any.
class SentBuffer {
 public:
  // No memory.
  SentBuffer() = default;
  explicit SentBuffer(std::shared_ptr<AlignedBuffer> memory) : memory_(std::move(memory)) {}
  SentBuffer(SentBuffer&&) = default;
  SentBuffer& operator=(SentBuffer&&) = default;

  bool has_memory() const { return memory_ != nullptr; }
  // Null when no other process may map it.
  const v1::SharedMemoryHandle* handle() const { return has_memory() ? memory_->handle() : nullptr; }
  template <typename T>
  T* as() {
    return memory_->as<T>();
  }

  // The elements from `offset` on are to be sent: what the sender holds until it has read them. Keeps the memory alive,
  // too.
  std::shared_ptr<const void> Hold(int64_t offset, int64_t elements);
  // Whether nobody holds any of these elements, which may then be written.
  bool IsFree(int64_t offset, int64_t elements);
  // The same of all elements.
  bool IsFree();

 private:
  using Owner = std::shared_ptr<const std::shared_ptr<AlignedBuffer>>;
  struct Part {
    int64_t begin = 0;
    int64_t end = 0;
    Owner owner;
  };

  std::shared_ptr<AlignedBuffer> memory_;
  std::vector<Part> held_;  // when this was last looked at
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_SENT_BUFFER_H_

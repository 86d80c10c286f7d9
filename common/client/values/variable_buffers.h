#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// Elements that a sender may still read in parts: a gradient in transit whose memory can be overwritten part by part.
// Movable. For one thread; any thread may drop the owners of parts.
class SentBuffer {
 public:
  // Creates a buffer without memory.
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

  // Returns an owner of the elements, which the sender holds until it has read them. The owner also keeps the memory
  // alive.
  std::shared_ptr<const void> Hold(int64_t offset, int64_t elements);
  // Returns true if no sender holds any of these elements, so that they may be overwritten.
  bool IsFree(int64_t offset, int64_t elements);
  // Returns true if no sender holds any element.
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

// The memory of a worker's values and gradients, by variable. A value is stored where its gradient was, even while
// parts of the gradient are still being sent, and the next gradient where an older value was. This needs two buffers
// per variable, and more only while a sender holds a gradient that the step did without. Buffers may outlive this. For
// one thread.
class VariableBuffers {
 public:
  // Each element takes `element_bytes`.
  VariableBuffers(const ParameterLayout& layout, size_t element_bytes);

  // Returns a buffer to overwrite as a whole. Not initialized.
  SentBuffer Get(int64_t variable);
  // Returns a buffer to overwrite part by part, each once SentBuffer::IsFree. Not initialized.
  SentBuffer GetForParts(int64_t variable);

  // Takes back a gradient after all its parts have been handed to the sender.
  void PutSent(int64_t variable, SentBuffer gradient);
  // Takes back a buffer whose content is no longer needed.
  void Put(int64_t variable, SentBuffer buffer);

 private:
  struct Variable {
    size_t bytes = 0;
    SentBuffer sent;
    SentBuffer spare;
  };
  std::vector<Variable> variables_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_

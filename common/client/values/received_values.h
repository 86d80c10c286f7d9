#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// A gradient that is being sent, whose memory can be overwritten part by part once the sender has read each part.
// Movable. Use it from one thread; any thread may release the owners of parts.
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
  std::vector<Part> held_;  // as of the last check
};

// The memory of a worker's values and gradients, by variable. A new value is received into the memory of the variable's
// gradient, even while other parts of the gradient are still being sent. The next gradient is written into the memory
// of an older value. Two buffers per variable are enough unless a sender still holds a gradient that the step did not
// need. Buffers may outlive this object. Use it from one thread.
class VariableBuffers {
 public:
  // Each element of a trainable variable takes `element_bytes`.
  VariableBuffers(const ParameterLayout& layout, size_t element_bytes);

  // Returns a buffer that may be overwritten as a whole. Not initialized.
  SentBuffer Get(int64_t variable);
  // Returns a buffer whose parts may each be overwritten once SentBuffer::IsFree returns true for them. Not
  // initialized.
  SentBuffer GetForParts(int64_t variable);

  // Accepts a gradient's buffer for reuse after all parts of the gradient have been handed to the sender.
  void PutSent(int64_t variable, SentBuffer gradient);
  // Accepts a buffer for reuse whose content is no longer needed.
  void Put(int64_t variable, SentBuffer buffer);

 private:
  struct Variable {
    size_t bytes = 0;
    SentBuffer sent;
    SentBuffer spare;
  };
  std::vector<Variable> variables_;
};

// The variables' values as a worker receives them, in pieces: the newest complete version and the one that is arriving
// (proto/lockstep/v1/chief.proto, StepReply.value). Allocates memory for a variable when its first piece arrives, and
// holds none for a replaced version. All versions share the constant variables, which are received once, and again
// after they were set. Not thread-safe.
class ReceivedValues {
 public:
  // `layout` and `buffers`, whose elements are floats, must outlive this object. Values of trainable variables are sent
  // as `type`, all others in the variable's type.
  ReceivedValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers);

  // Stores a piece of the version of `step`, or of a constant variable. Returns InvalidArgument if the piece does not
  // fit the model, or if it belongs to a constant variable while values are in use.
  absl::Status Receive(int64_t step, const StepPiece& piece);

  // Returns the address of each variable in the version of `step`. The values stay unchanged until Release or the next
  // Take. InvalidArgument if the version or a constant variable is incomplete, or if a newer version has replaced it.
  absl::StatusOr<const std::vector<const float*>*> Take(int64_t step);
  // Releases the values that Take returned.
  void Release() { taken_ = false; }

 private:
  struct Version {
    // Indexed by variable; empty before the first piece.
    std::vector<SentBuffer> memory;
    std::vector<const float*> variables;
    int64_t step = -1;
    int64_t received_elements = 0;
  };

  // A constant variable, which all versions share.
  struct Constant {
    AlignedBuffer memory;  // empty before the first piece
    int64_t received_elements = 0;
  };

  absl::Status ReceiveConstant(const StepPiece& piece);
  bool HoldsConstants();
  absl::Status CheckPiece(const StepPiece& piece) const;
  // The total may be exceeded, because a piece arrives again if its variable is set after the piece was sent.
  bool complete(const Version& version) const { return version.received_elements >= total_elements_; }
  Version& back() { return versions_[1 - front_]; }
  // Makes memory for these elements of the arriving version, and returns the variable's address.
  float* Place(int64_t variable, int64_t offset, int64_t elements);
  // Copies a piece to its place in the memory of its variable.
  void CopyPiece(const StepPiece& piece, float* memory) const;
  // Replaces the front version, which is no longer read, with the version that has arrived.
  void Flip();

  const ParameterLayout& layout_;
  const v1::DataType type_;
  VariableBuffers& buffers_;
  // Number of elements in a version, without the constant variables.
  int64_t total_elements_ = 0;
  std::vector<Constant> constants_;  // by variable
  // True once every element of every constant variable has been received.
  bool holds_constants_ = false;
  Version versions_[2];
  // Index of the complete version; the other one is arriving.
  int front_ = 0;
  // True while the worker computes with the front version.
  bool taken_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_

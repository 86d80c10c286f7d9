#ifndef LOCKSTEP_SERVER_RPC_STEP_WORKER_MEMORY_H_
#define LOCKSTEP_SERVER_RPC_STEP_WORKER_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The memory that a worker of the same machine shares with the chief, in which its gradients lie; none at first. The
// worker's statements about it are checked, as all of a peer's. Thread-compatible.
class WorkerMemory {
 public:
  // Errors: as SharedMemory::Map; there is no memory then.
  absl::Status Map(const v1::SharedMemoryHandle& handle);

  // Points the gradients of `frame` that lie in the memory to it. Errors: InvalidArgument when they lie outside.
  absl::Status FindGradients(StepFrame* frame) const;

  bool exists() const { return memory_ != nullptr; }
  // Size in bytes; 0 if there is no memory.
  size_t size() const { return exists() ? memory_->size() : 0; }

 private:
  std::unique_ptr<const SharedMemory> memory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_WORKER_MEMORY_H_

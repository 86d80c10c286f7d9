#ifndef LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// From this size on little is wasted by huge pages, and their first touch costs a quarter of that of small ones or
// less.
inline constexpr size_t kHugePage = 2 << 20;
inline constexpr size_t kHugeBuffer = 4 * kHugePage;

// Memory that one process creates and writes, and others of the same user on the same machine map and read: an
// anonymous file (memfd) that cannot be shrunk, so that a reader never meets its end, and that nobody else can write,
// where the kernel (Linux 5.1) sees to it. It is gone with the last process that has it, however they end. At a
// multiple of a page, from kHugeBuffer on of a huge one. Thread-compatible; the two ends agree on when it may be read.
class SharedMemory {
 public:
  // Zeros. Errors: Unavailable when the system gives no such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(size_t bytes);
  // Maps for reading what a process, this one or another, has created and still has. Errors: NotFound when the handle
  // names nothing that this process can reach (another machine, container or user); InvalidArgument when what it
  // names is no such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Map(const v1::SharedMemoryHandle& handle);
  ~SharedMemory();

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Only the creator may write: a mapping is read-only.
  char* data() { return data_; }
  const char* data() const { return data_; }
  // Bytes.
  size_t size() const { return handle_.bytes(); }
  const v1::SharedMemoryHandle& handle() const { return handle_; }

 private:
  // Takes `descriptor`, or -1.
  SharedMemory(char* data, v1::SharedMemoryHandle handle, int descriptor);

  char* const data_;
  const v1::SharedMemoryHandle handle_;
  const int descriptor_;
};

// The handles name the same memory.
bool IsSameMemory(const v1::SharedMemoryHandle& a, const v1::SharedMemoryHandle& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_

#ifndef LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_
#define LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Buffers of at least kHugeBuffer bytes use huge pages, which waste little memory at that size. Touching huge pages for
// the first time takes at most a quarter of the time that small pages take.
inline constexpr size_t kHugePage = 2 << 20;
inline constexpr size_t kHugeBuffer = 4 * kHugePage;

// Memory that one process creates and writes, and that others of the same user on the same machine map and read. It is
// an anonymous file (memfd) that cannot be shrunk, so that a reader never runs past its end. Where the kernel supports
// this (Linux 5.1), only the creator can write to it. It is freed when the last process that has it ends or releases
// it, even if that process is killed. It is aligned to a page, or to a huge page from kHugeBuffer bytes on.
// Thread-compatible; both ends must agree on when it may be read.
class SharedMemory {
 public:
  // Creates memory filled with zeros. Errors: Unavailable if the system does not provide such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(size_t bytes);
  // Maps, for reading, memory that this or another process has created and still holds. Errors: NotFound if this
  // process cannot reach the handle's target (another machine, container or user); InvalidArgument if the target is not
  // such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Map(const v1::SharedMemoryHandle& handle);
  ~SharedMemory();

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Only the creator may write; a mapping is read-only.
  char* data() { return data_; }
  const char* data() const { return data_; }
  // Size in bytes.
  size_t size() const { return handle_.bytes(); }
  const v1::SharedMemoryHandle& handle() const { return handle_; }

 private:
  // Takes ownership of `descriptor`, which may be -1.
  SharedMemory(char* data, v1::SharedMemoryHandle handle, int descriptor);

  char* const data_;
  const v1::SharedMemoryHandle handle_;
  const int descriptor_;
};

// Returns true if the handles name the same memory.
bool IsSameMemory(const v1::SharedMemoryHandle& a, const v1::SharedMemoryHandle& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_SHARED_MEMORY_H_

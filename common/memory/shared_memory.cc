#include "lockstep/common/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// F_SEAL_FUTURE_WRITE, since Linux 5.1: writing is possible only through existing mappings.
constexpr int kFutureWriteSeal = 0x10;

// Returns the boot id, which the kernel chooses at random when the machine starts. All containers of a machine share
// it.
const std::string& Machine() {
  static const auto* const machine = [] {
    auto* const id = new std::string;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), *id);
    return id;
  }();
  return *machine;
}

absl::Status NotReachable(const v1::SharedMemoryHandle& handle) {
  return absl::NotFoundError(
      absl::StrCat("descriptor ", handle.file_descriptor(), " of process ", handle.process(), " is not within reach"));
}

// Returns true if the link of an open file names a memfd. Other files must be left alone: opening some has side
// effects, and even stat asks their file system, which may hang if its server is gone. Reading the link asks only the
// kernel.
bool IsMemoryFile(const std::string& path) {
  char target[64];
  const ssize_t length = readlink(path.c_str(), target, sizeof(target));
  return length > 0 && absl::StartsWith(absl::string_view(target, static_cast<size_t>(length)), "/memfd:");
}

// Seals the memory against resizing and, if the kernel supports it, against further writing mappings, so its creator
// must map it first. Returns false on failure.
bool Seal(int descriptor) {
  if (fcntl(descriptor, F_ADD_SEALS, kSeals | kFutureWriteSeal) == 0) return true;
  return errno == EINVAL && fcntl(descriptor, F_ADD_SEALS, kSeals) == 0;
}

// Maps a whole file, aligned to a huge page if the file is large enough to use huge pages.
void* MapFile(int descriptor, size_t bytes, int protection) {
  if (bytes < kHugeBuffer) return mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  const size_t reserved = bytes + kHugePage;
  void* const place = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return MAP_FAILED;
  char* const begin = static_cast<char*>(place);
  const size_t before = kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage;
  void* const data = mmap(begin + before, bytes, protection, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (data == MAP_FAILED) {
    munmap(begin, reserved);
    return MAP_FAILED;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t end = before + (bytes + page - 1) / page * page;
  munmap(begin, before);
  if (end < reserved) munmap(begin + end, reserved - end);
  return data;
}

}  // namespace

SharedMemory::SharedMemory(char* data, v1::SharedMemoryHandle handle, int descriptor)
    : data_(data), handle_(std::move(handle)), descriptor_(descriptor) {}

SharedMemory::~SharedMemory() {
  munmap(data_, size());
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(size_t bytes) {
  if (Machine().empty()) return absl::UnavailableError("the machine has no boot_id");
  const auto failed = [](absl::string_view call) {
    return absl::UnavailableError(
        absl::StrCat("no shared memory: ", call, ": ", absl::ErrnoToStatus(errno, "").message()));
  };
  bytes = std::max<size_t>(bytes, 1);
  const int descriptor = memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return failed("memfd_create");
  auto closer = absl::MakeCleanup([descriptor] { close(descriptor); });
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  struct stat file;
  if (fstat(descriptor, &file) != 0) return failed("fstat");
  void* const data = MapFile(descriptor, bytes, PROT_READ | PROT_WRITE);
  if (data == MAP_FAILED) return failed("mmap");
  auto unmapper = absl::MakeCleanup([data, bytes] { munmap(data, bytes); });
  if (!Seal(descriptor)) return failed("fcntl");
  std::move(unmapper).Cancel();
  std::move(closer).Cancel();
  v1::SharedMemoryHandle handle;
  handle.set_machine(Machine());
  handle.set_process(getpid());
  handle.set_file_descriptor(descriptor);
  handle.set_device(file.st_dev);
  handle.set_inode(file.st_ino);
  handle.set_bytes(bytes);
  return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<char*>(data), std::move(handle), descriptor));
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Map(const v1::SharedMemoryHandle& handle) {
  if (handle.machine() != Machine()) return NotReachable(handle);
  // For a process or descriptor that cannot exist, such as -1, the path is not a link.
  const std::string path = absl::StrCat("/proc/", handle.process(), "/fd/", handle.file_descriptor());
  if (!IsMemoryFile(path)) return NotReachable(handle);
  // Check the file before opening it: if the handle comes from another container, the path names another file here.
  const int found = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (found < 0) return NotReachable(handle);
  const auto close_found = absl::MakeCleanup([found] { close(found); });
  struct stat file;
  if (fstat(found, &file) != 0 || file.st_dev != handle.device() || file.st_ino != handle.inode() ||
      !S_ISREG(file.st_mode)) {
    return NotReachable(handle);
  }
  const int descriptor = open(absl::StrCat("/proc/self/fd/", found).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return NotReachable(handle);
  const auto close_descriptor = absl::MakeCleanup([descriptor] { close(descriptor); });
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not shared memory, or can be shrunk"));
  }
  if (handle.bytes() == 0 || static_cast<uint64_t>(file.st_size) != handle.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory of ", handle.bytes(), " bytes has ", file.st_size));
  }
  void* const data = MapFile(descriptor, handle.bytes(), PROT_READ);
  if (data == MAP_FAILED) return absl::UnavailableError("no address space for shared memory");
  return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<char*>(data), handle, /*descriptor=*/-1));
}

bool IsSameMemory(const v1::SharedMemoryHandle& a, const v1::SharedMemoryHandle& b) {
  return a.inode() == b.inode() && a.device() == b.device() && a.machine() == b.machine();
}

}  // namespace lockstep

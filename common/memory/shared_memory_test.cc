#include "lockstep/common/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {
namespace {

constexpr size_t kBytes = 10000;

std::unique_ptr<SharedMemory> NewMemory() {
  auto memory = SharedMemory::Create(kBytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *std::move(memory);
}

// Returns the handle that a file of this process would have as shared memory.
v1::SharedMemoryHandle HandleOf(int descriptor, const v1::SharedMemoryHandle& like) {
  struct stat file;
  EXPECT_EQ(fstat(descriptor, &file), 0);
  v1::SharedMemoryHandle handle = like;
  handle.set_file_descriptor(descriptor);
  handle.set_device(file.st_dev);
  handle.set_inode(file.st_ino);
  handle.set_bytes(static_cast<uint64_t>(file.st_size));
  return handle;
}

TEST(SharedMemoryTest, AMappingSeesTheCreatorsWrites) {
  const auto memory = NewMemory();
  EXPECT_EQ(memory->data()[kBytes - 1], 0);
  const auto mapping = SharedMemory::Map(memory->handle());
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ((*mapping)->size(), kBytes);
  EXPECT_TRUE(IsSameMemory((*mapping)->handle(), memory->handle()));
  memory->data()[kBytes - 1] = 7;
  EXPECT_EQ((*mapping)->data()[kBytes - 1], 7);
}

TEST(SharedMemoryTest, LargeMemoryIsHugePageAlignedInBoth) {
  const auto addresses = [] {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  };
  size_t before = 0;
  for (int i = 0; i < 20; ++i) {
    const size_t bytes = kHugeBuffer + static_cast<size_t>(i) * 1000;
    const auto memory = SharedMemory::Create(bytes).value();
    const auto mapping = SharedMemory::Map(memory->handle()).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kHugePage, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->data()) % kHugePage, 0u);
    memory->data()[bytes - 1] = 7;
    EXPECT_EQ(mapping->data()[bytes - 1], 7);
    if (i == 0) before = addresses();
    EXPECT_LT(addresses(), before + kHugePage);
  }
}

TEST(SharedMemoryTest, AMappingOutlivesItsCreator) {
  auto memory = NewMemory();
  memory->data()[0] = 5;
  const v1::SharedMemoryHandle handle = memory->handle();
  const auto mapping = SharedMemory::Map(handle);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  memory.reset();
  EXPECT_EQ((*mapping)->data()[0], 5);
  EXPECT_TRUE(absl::IsNotFound(SharedMemory::Map(handle).status())) << "its descriptor is closed";
}

TEST(SharedMemoryTest, AnotherProcessMapsIt) {
  const auto memory = NewMemory();
  std::memset(memory->data(), 3, kBytes);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Close the child's copy of the descriptor, which is not needed, because the handle names the parent's.
    close(static_cast<int>(memory->handle().file_descriptor()));
    const auto mapping = SharedMemory::Map(memory->handle());
    _exit(mapping.ok() && (*mapping)->data()[kBytes - 1] == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemoryTest, NothingIsReachedWithAForeignHandle) {
  const auto memory = NewMemory();
  const auto expect_not_found = [&](void (*change)(v1::SharedMemoryHandle*)) {
    v1::SharedMemoryHandle handle = memory->handle();
    change(&handle);
    EXPECT_TRUE(absl::IsNotFound(SharedMemory::Map(handle).status())) << handle.ShortDebugString();
  };
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_machine("another"); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->clear_machine(); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_process(0); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_process(-1); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_file_descriptor(1 << 20); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_file_descriptor(-1); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_inode(handle->inode() + 1); });
  expect_not_found([](v1::SharedMemoryHandle* handle) { handle->set_device(handle->device() + 1); });
}

TEST(SharedMemoryTest, DoesNotMapAFileThatCanShrink) {
  const auto memory = NewMemory();
  const int file = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  const auto unsealed = SharedMemory::Map(HandleOf(file, memory->handle()));
  EXPECT_TRUE(absl::IsInvalidArgument(unsealed.status())) << unsealed.status();
  close(file);
  EXPECT_NE(ftruncate(static_cast<int>(memory->handle().file_descriptor()), 1), 0) << "the seal holds";
}

TEST(SharedMemoryTest, OnlyTheCreatorWrites) {
  const auto memory = NewMemory();
  const int created = static_cast<int>(memory->handle().file_descriptor());
  constexpr int kFutureWriteSeal = 0x10;
  if ((fcntl(created, F_GET_SEALS) & kFutureWriteSeal) == 0) GTEST_SKIP() << "before Linux 5.1 the kernel cannot do it";
  const int file = open(absl::StrCat("/proc/self/fd/", created).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  EXPECT_LT(pwrite(file, "x", 1, 0), 0);
  void* const place = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(place, MAP_FAILED);
  EXPECT_NE(mprotect(place, kBytes, PROT_READ | PROT_WRITE), 0);
  munmap(place, kBytes);
  close(file);
  memory->data()[0] = 1;
  EXPECT_EQ(SharedMemory::Map(memory->handle()).value()->data()[0], 1);
}

TEST(SharedMemoryTest, OnlyFilesAreOpened) {
  const auto memory = NewMemory();
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_TRUE(absl::IsNotFound(SharedMemory::Map(HandleOf(pipes[0], memory->handle())).status()));
  close(pipes[0]);
  close(pipes[1]);
}

// Any other file may be on a file system that hangs.
TEST(SharedMemoryTest, AnotherFileIsNotEvenOpened) {
  const auto memory = NewMemory();
  char path[] = "/tmp/shared_memory_test.XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  const v1::SharedMemoryHandle handle = HandleOf(file, memory->handle());
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(watch, 0);
  ASSERT_GE(inotify_add_watch(watch, path, IN_ALL_EVENTS), 0);
  EXPECT_TRUE(absl::IsNotFound(SharedMemory::Map(handle).status()));
  char events[256];
  EXPECT_LT(read(watch, events, sizeof(events)), 0) << "the file was opened";
  close(watch);
  close(file);
  unlink(path);
}

TEST(SharedMemoryTest, ASizeThatIsNotItsOwnIsRefused) {
  const auto memory = NewMemory();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{kBytes + 1}, uint64_t{1} << 60}) {
    v1::SharedMemoryHandle handle = memory->handle();
    handle.set_bytes(bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(SharedMemory::Map(handle).status())) << bytes;
  }
}

TEST(SharedMemoryTest, ABufferMayLieInIt) {
  AlignedBuffer buffer = AlignedBuffer::Shared(kBytes);
  ASSERT_NE(buffer.handle(), nullptr);
  EXPECT_EQ(buffer.size(), kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kTensorAlignment, 0u);
  buffer.data()[9] = 1;
  AlignedBuffer moved = std::move(buffer);
  const auto mapping = SharedMemory::Map(*moved.handle());
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ((*mapping)->data()[9], 1);
  EXPECT_EQ(AlignedBuffer(kBytes).handle(), nullptr);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/common/io/file_system.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// Paths for which this process has called fsync(2).
std::vector<std::string>& Synced() {
  static auto* const synced = new std::vector<std::string>;
  return *synced;
}

}  // namespace

// Overrides the C library's function to record its calls.
extern "C" int fsync(int fd) {
  char path[4096];
  const ssize_t size = ::readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof(path));
  if (size > 0) Synced().emplace_back(path, size);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RealFileSystemTest : public ::testing::Test {
 protected:
  RealFileSystemTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/fsXXXXXX");
    directory_ = ::mkdtemp(&pattern[0]);
  }
  std::string Path(absl::string_view name) const { return JoinPath(directory_, name); }

  FileSystem* const fs_ = FileSystem::Real();
  std::string directory_;
};

TEST_F(RealFileSystemTest, RefusesAPipeOrADeviceWithoutWaiting) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const absl::Status pipe = fs_->NewRandomAccessFile(Path("pipe")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(pipe)) << pipe;
  EXPECT_EQ(pipe.message(), absl::StrCat("cannot open ", Path("pipe"),
                                         ": it is a pipe, not a regular file; write what it delivers to a file"));
  EXPECT_THAT(std::string(fs_->NewRandomAccessFile("/dev/zero").status().message()), HasSubstr("it is a device"));
}

TEST_F(RealFileSystemTest, DoesNotReplaceAPipeOrADevice) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/dev/null", Path("null").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/fd/1", Path("stdout").c_str()), 0);
  for (const char* const name : {"null", "pipe", "stdout"}) {
    const absl::Status status = WriteFileAtomically(fs_, Path(name), "x");
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    struct stat info;
    ASSERT_EQ(::lstat(Path(name).c_str(), &info), 0);
    EXPECT_FALSE(S_ISREG(info.st_mode)) << name;
  }
  EXPECT_THAT(fs_->ListDirectory(directory_).value(), ElementsAre("null", "pipe", "stdout"));
}

TEST_F(RealFileSystemTest, RoundTrips) {
  auto file = fs_->NewWritableFile(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string large(200000, 'x');
  ASSERT_TRUE((*file)->Append("small ").ok());
  ASSERT_TRUE((*file)->Append(large).ok());
  ASSERT_TRUE((*file)->Append(" end").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "small " + large + " end");

  auto reader = fs_->NewRandomAccessFile(Path("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->size(), 200010);
  char out[4];
  ASSERT_TRUE((*reader)->Read(200006, 4, out).ok());
  EXPECT_EQ(absl::string_view(out, 4), " end");
  const absl::Status past_end = (*reader)->Read(200007, 4, out);
  EXPECT_EQ(past_end.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(past_end.message()), HasSubstr("ends at byte 200010"));
}

TEST_F(RealFileSystemTest, DoesNotReadASparseFileWhole) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a"), "a").ok());
  ASSERT_EQ(::truncate(Path("a").c_str(), int64_t{1} << 40), 0);
  EXPECT_EQ(ReadFile(fs_, Path("a")).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RealFileSystemTest, ReturnsTheTimeOfTheLastChange) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a"), "a").ok());
  const struct timespec times[2] = {{1, 2}, {1500000000, 123456789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, Path("a").c_str(), times, 0), 0);
  EXPECT_EQ((*fs_->NewRandomAccessFile(Path("a")))->modification_time(), absl::FromUnixNanos(1500000000123456789));
}

TEST_F(RealFileSystemTest, DistinguishesFilesWithTheSameTime) {
  const auto write = [&](const std::string& path, const std::string& contents) {
    ASSERT_TRUE((*fs_->NewWritableFile(path))->Append(contents).ok());
    const struct timespec times[2] = {{1, 2}, {1, 2}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  write(Path("a"), "one");
  const auto first = *fs_->NewRandomAccessFile(Path("a"));
  // Write until the change time differs, because the kernel's timestamps advance only every few milliseconds.
  auto second = *fs_->NewRandomAccessFile(Path("a"));
  while (second->change_time() == first->change_time()) {
    write(Path("a"), "two");
    second = *fs_->NewRandomAccessFile(Path("a"));
  }
  EXPECT_EQ(second->modification_time(), first->modification_time());
  EXPECT_EQ(second->inode(), first->inode());
  EXPECT_GT(second->change_time(), first->change_time());
  write(Path("b"), "six");
  ASSERT_TRUE(fs_->Rename(Path("b"), Path("a")).ok());
  const auto third = *fs_->NewRandomAccessFile(Path("a"));
  EXPECT_EQ(third->modification_time(), first->modification_time());
  EXPECT_NE(third->inode(), first->inode());
}

TEST_F(RealFileSystemTest, KeepsAppendsInMemoryUntilFlush) {
  auto file = fs_->NewWritableFile(Path("a"));
  ASSERT_TRUE((*file)->Append("abc").ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "");
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "abc");
}

TEST_F(RealFileSystemTest, WritesOutWhenDestroyedWithoutClose) {
  {
    auto file = fs_->NewWritableFile(Path("a"));
    ASSERT_TRUE((*file)->Append("abc").ok());
  }
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "abc");
}

TEST_F(RealFileSystemTest, RefusesUseAfterClose) {
  auto file = fs_->NewWritableFile(Path("a"));
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ((*file)->Append("x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*file)->Flush().code(), absl::StatusCode::kFailedPrecondition);
}

// RLIMIT_FSIZE makes write(2) short and then fail, as a full disk does.
TEST_F(RealFileSystemTest, LeavesNothingOfAnAppendThatFails) {
  ::signal(SIGXFSZ, SIG_IGN);
  auto file = fs_->NewWritableFile(Path("a"));
  ASSERT_TRUE((*file)->Append("begin").ok());
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit limit = before;
  limit.rlim_cur = 100000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = (*file)->Append(std::string(200000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "begin");
  ASSERT_TRUE((*file)->Append("-end").ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "begin-end");
}

TEST_F(RealFileSystemTest, ReportsAFullDiskAsResourceExhausted) {
  if (!fs_->Exists("/dev/full").value()) GTEST_SKIP() << "no /dev/full";
  auto file = fs_->NewWritableFile("/dev/full");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("abc").ok());
  EXPECT_EQ((*file)->Flush().code(), absl::StatusCode::kResourceExhausted);
  // Unwritten data is kept, so Close fails with the same error.
  EXPECT_EQ((*file)->Close().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RealFileSystemTest, NamesThePathAndTheCauseInErrors) {
  const absl::Status missing = fs_->NewRandomAccessFile(Path("missing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), absl::StrCat("cannot open ", Path("missing"), ": No such file or directory"));
  EXPECT_EQ(fs_->NewWritableFile(Path("no/file")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_->NewRandomAccessFile(directory_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fs_->Remove(Path("missing")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_->Rename(Path("missing"), Path("b")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_->ListDirectory(Path("missing")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RealFileSystemTest, CreatesDirectoriesWithTheirParents) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("x/y/z")).ok());
  EXPECT_TRUE(fs_->CreateDirectory(Path("x/y/z")).ok());
  EXPECT_TRUE(fs_->CreateDirectory(Path("x/y/z/")).ok());
  EXPECT_TRUE(fs_->Exists(Path("x/y/z")).value());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("file"), "").ok());
  EXPECT_EQ(fs_->CreateDirectory(Path("file")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(fs_->CreateDirectory(Path("file/below")).code(), absl::StatusCode::kNotFound);
}

TEST_F(RealFileSystemTest, RemovesAnEmptyDirectory) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("new")).ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("new/file"), "").ok());
  EXPECT_EQ(fs_->Remove(Path("new")).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(fs_->Remove(Path("new/file")).ok());
  ASSERT_TRUE(fs_->Remove(Path("new")).ok());
  EXPECT_EQ(fs_->Remove(Path("new")).code(), absl::StatusCode::kNotFound);
}

TEST_F(RealFileSystemTest, MakesNewDirectoriesDurable) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("file"), "").ok());  // to learn the path that fsync sees
  ASSERT_FALSE(Synced().empty());
  const std::string directory = Synced().back();
  Synced().clear();
  ASSERT_TRUE(fs_->CreateDirectory(Path("x/y/z/")).ok());
  EXPECT_THAT(Synced(), ElementsAre(directory, directory + "/x", directory + "/x/y"));
  Synced().clear();
  ASSERT_TRUE(fs_->CreateDirectory(Path("x/y/w")).ok());
  EXPECT_THAT(Synced(), ElementsAre(directory + "/x/y"));
}

// access(2) fails for absent paths, and also for paths that may exist.
TEST_F(RealFileSystemTest, DistinguishesAbsentFromUnreadable) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("file"), "").ok());
  EXPECT_TRUE(fs_->Exists(directory_).value());
  EXPECT_FALSE(fs_->Exists(Path("missing")).value());
  EXPECT_FALSE(fs_->Exists(Path("missing/file")).value());
  EXPECT_FALSE(fs_->Exists(Path("file/below")).value());
  ASSERT_EQ(::symlink("loop", Path("loop").c_str()), 0);
  const absl::Status loop = fs_->Exists(Path("loop")).status();
  EXPECT_EQ(loop.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(loop.message()), HasSubstr(absl::StrCat("cannot look for ", Path("loop"), ": ")));
  EXPECT_EQ(fs_->Exists(Path(std::string(300, 'x'))).status().code(), absl::StatusCode::kInternal);
}

// Reads the first page of this process's memory, for which read(2) returns EIO.
TEST_F(RealFileSystemTest, UnreadableBytesAreDataLoss) {
  const auto memory = fs_->NewRandomAccessFile("/proc/self/mem");
  if (!memory.ok()) GTEST_SKIP() << memory.status();
  char byte;
  EXPECT_EQ((*memory)->Read(0, 1, &byte).code(), absl::StatusCode::kDataLoss);
}

TEST_F(RealFileSystemTest, ListsNamesInOrder) {
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(WriteFileAtomically(fs_, Path(name), name).ok());
  EXPECT_THAT(fs_->ListDirectory(directory_).value(), ElementsAre("a", "b", "c"));
}

TEST_F(RealFileSystemTest, ReplacesAFileAtomically) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a"), "old").ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a"), "new").ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), "new");
  EXPECT_THAT(fs_->ListDirectory(directory_).value(), ElementsAre("a"));
}

TEST_F(RealFileSystemTest, GivesALockToOneHolderAtATime) {
  auto lock = fs_->LockFile(Path("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  const absl::Status second = fs_->LockFile(Path("lock")).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(Path("lock")));
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("process ", getpid(), " on ", host, " holds it")));
  ASSERT_TRUE(lock->get()->Check().ok());
  lock->reset();
  EXPECT_TRUE(fs_->LockFile(Path("lock")).ok());
}

TEST_F(RealFileSystemTest, SaysWhetherALockIsHeld) {
  EXPECT_FALSE(*fs_->IsLocked(Path("lock")));
  EXPECT_FALSE(*fs_->Exists(Path("lock")));
  auto lock = fs_->LockFile(Path("lock")).value();
  EXPECT_TRUE(*fs_->IsLocked(Path("lock")));
  EXPECT_TRUE(*fs_->IsLocked(Path("lock"))) << "to look changes nothing";
  EXPECT_TRUE(absl::IsFailedPrecondition(fs_->LockFile(Path("lock")).status()));
  lock.reset();
  EXPECT_FALSE(*fs_->IsLocked(Path("lock")));
  EXPECT_FALSE(*fs_->IsLocked(Path("no directory/lock")));
}

TEST_F(RealFileSystemTest, QueryingALockDisturbsNoOwner) {
  std::atomic<bool> ending{false};
  std::thread other([&] {
    while (!ending.load()) EXPECT_TRUE(fs_->IsLocked(Path("lock")).ok());
  });
  for (int i = 0; i < 2000; ++i) {
    const auto lock = fs_->LockFile(Path("lock"));
    ASSERT_TRUE(lock.ok()) << i << ": " << lock.status();
  }
  ending.store(true);
  other.join();
}

TEST_F(RealFileSystemTest, NoticesThatALockWasReplaced) {
  const auto lock = fs_->LockFile(Path("lock")).value();
  EXPECT_TRUE(lock->Check().ok());
  ASSERT_TRUE(fs_->Remove(Path("lock")).ok());
  EXPECT_TRUE(lock->Check().ok()) << "nobody else has it";
  const auto other = fs_->LockFile(Path("lock")).value();
  EXPECT_EQ(lock->Check().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(other->Check().ok());
}

TEST_F(RealFileSystemTest, EndsTheLockOfAProcessThatIsKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = fs_->LockFile(Path("lock"));
    const char byte = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  EXPECT_EQ(fs_->LockFile(Path("lock")).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(*fs_->IsLocked(Path("lock")));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs_->LockFile(Path("lock")).ok());
}

TEST(PathTest, JoinsAndSplits) {
  EXPECT_EQ(JoinPath("a/b", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("a/b/", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("a", "/c"), "/c");
  EXPECT_EQ(JoinPath("", "c"), "c");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(JoinPath("/", "c"), "/c");
  EXPECT_EQ(Basename("a/b/c"), "c");
  EXPECT_EQ(Basename("c"), "c");
  EXPECT_EQ(Basename("a/"), "");
  EXPECT_EQ(Dirname("a/b/c"), "a/b");
  EXPECT_EQ(Dirname("c"), ".");
  EXPECT_EQ(Dirname("/c"), "/");
}

}  // namespace
}  // namespace lockstep

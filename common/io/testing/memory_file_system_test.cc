#include "lockstep/common/io/testing/memory_file_system.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using UnsyncedNames = MemoryFileSystem::UnsyncedNames;

class MemoryFileSystemTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, absl::string_view data) {
    auto file = fs_.NewWritableFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(data).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  std::string Read(const std::string& path) { return ReadFile(&fs_, path).value(); }

  MemoryFileSystem fs_;
};

TEST_F(MemoryFileSystemTest, BehavesAsTheRealOne) {
  EXPECT_EQ(fs_.NewWritableFile("d/a").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(fs_.CreateDirectory("d/sub").ok());
  Write("d/b", "bb");
  Write("./d//a", "a");
  EXPECT_THAT(fs_.ListDirectory("d").value(), ElementsAre("a", "b", "sub"));
  EXPECT_THAT(fs_.ListDirectory(".").value(), ElementsAre("d"));
  EXPECT_EQ(Read("d/a"), "a");
  ASSERT_TRUE(fs_.Rename("d/a", "d/b").ok());
  EXPECT_EQ(Read("d/b"), "a");
  EXPECT_FALSE(fs_.Exists("d/a").value());
  EXPECT_EQ(fs_.Remove("d/a").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(fs_.Remove("d/b").ok());
  EXPECT_EQ(fs_.NewRandomAccessFile("d/b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_.ListDirectory("e").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_.NewWritableFile("d").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MemoryFileSystemTest, RemovesAnEmptyDirectory) {
  ASSERT_TRUE(fs_.CreateDirectory("d").ok());
  Write("d/a", "a");
  ASSERT_TRUE(fs_.SyncDirectory("d").ok());
  EXPECT_EQ(fs_.Remove("d").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(fs_.Rename("d/a", "a").ok());
  ASSERT_TRUE(fs_.Remove("d").ok());
  EXPECT_EQ(fs_.Remove("d").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fs_.NewWritableFile("d/b").status().code(), absl::StatusCode::kNotFound);
  fs_.DropUnsyncedData();
  EXPECT_FALSE(fs_.Exists("d/a").value());
}

TEST_F(MemoryFileSystemTest, ShowsAppendsAfterFlush) {
  auto file = fs_.NewWritableFile("a");
  ASSERT_TRUE((*file)->Append("abc").ok());
  EXPECT_EQ(Read("a"), "");
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(Read("a"), "abc");
}

TEST_F(MemoryFileSystemTest, LosesUnsyncedContentsInAPowerCut) {
  auto file = fs_.NewWritableFile("a");
  ASSERT_TRUE((*file)->Append("synced").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(fs_.SyncDirectory(".").ok());
  ASSERT_TRUE((*file)->Append(" flushed").ok());
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(Read("a"), "synced flushed");
  fs_.DropUnsyncedData();
  EXPECT_EQ(Read("a"), "synced");
  // Simulates a write by a process that has died.
  ASSERT_TRUE((*file)->Append(" late").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(Read("a"), "synced");
}

TEST_F(MemoryFileSystemTest, LosesUnsyncedNamesInAPowerCut) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "old", "1").ok());
  ASSERT_TRUE(fs_.Rename("old", "new").ok());
  fs_.DropUnsyncedData(UnsyncedNames::kLost);
  EXPECT_TRUE(fs_.Exists("old").value());
  EXPECT_FALSE(fs_.Exists("new").value());
  ASSERT_TRUE(fs_.Remove("old").ok());
  fs_.DropUnsyncedData(UnsyncedNames::kLost);
  EXPECT_EQ(Read("old"), "1");
  ASSERT_TRUE(fs_.Rename("old", "new").ok());
  ASSERT_TRUE(fs_.SyncDirectory(".").ok());
  fs_.DropUnsyncedData(UnsyncedNames::kLost);
  EXPECT_EQ(Read("new"), "1");
  EXPECT_FALSE(fs_.Exists("old").value());
}

TEST_F(MemoryFileSystemTest, CanKeepANameWhoseContentsAreLost) {
  Write("a", "never synced");
  fs_.DropUnsyncedData(UnsyncedNames::kKept);
  EXPECT_EQ(Read("a"), "");
}

TEST_F(MemoryFileSystemTest, CanKeepOnlyTheLastChangeOfNames) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "a", "1").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "b", "2").ok());
  ASSERT_TRUE(fs_.Rename("a", "c").ok());
  ASSERT_TRUE(fs_.Rename("b", "d").ok());
  fs_.DropUnsyncedData(UnsyncedNames::kOnlyLastKept);
  EXPECT_THAT(fs_.ListDirectory(".").value(), ElementsAre("a", "d"));
  ASSERT_TRUE(fs_.Remove("a").ok());
  ASSERT_TRUE(fs_.SyncDirectory(".").ok());
  fs_.DropUnsyncedData(UnsyncedNames::kOnlyLastKept);
  EXPECT_THAT(fs_.ListDirectory(".").value(), ElementsAre("d"));
}

TEST_F(MemoryFileSystemTest, TheResultOfAPowerCutMayBeDrawn) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "a", "synced").ok());
  Write("b", "never synced");
  ASSERT_TRUE(fs_.Rename("a", "c").ok());
  // The draws keep the name b (0), lose the rename (1), and keep 5 bytes of b.
  std::vector<uint64_t> draws = {0, 1, 5};
  size_t drawn = 0;
  fs_.DropUnsyncedData([&](uint64_t n) {
    EXPECT_LT(draws[drawn], n);
    return draws[drawn++];
  });
  EXPECT_EQ(drawn, 3u);
  EXPECT_THAT(fs_.ListDirectory(".").value(), ElementsAre("a", "b"));
  EXPECT_EQ(Read("a"), "synced");
  EXPECT_EQ(Read("b"), "never");
}

TEST_F(MemoryFileSystemTest, EveryChangeGivesAFileALaterTime) {
  const auto time = [&] { return (*fs_.NewRandomAccessFile("a"))->modification_time(); };
  Write("a", "one");
  const absl::Time first = time();
  EXPECT_EQ(time(), first);
  Write("a", "two");
  const absl::Time second = time();
  EXPECT_GT(second, first);
  fs_.FlipBits("a", 0, 1);
  EXPECT_GT(time(), second);
}

TEST_F(MemoryFileSystemTest, DistinguishesFilesWithTheSameTime) {
  const auto open = [&] { return *fs_.NewRandomAccessFile("a"); };
  Write("a", "one");
  const auto first = open();
  // Change the file in place, then hide the change as touch -r does.
  fs_.FlipBits("a", 0, 1);
  fs_.SetModificationTime("a", first->modification_time());
  const auto second = open();
  EXPECT_EQ(second->modification_time(), first->modification_time());
  EXPECT_EQ(second->inode(), first->inode());
  EXPECT_GT(second->change_time(), first->change_time());
  Write("b", "two");
  ASSERT_TRUE(fs_.Rename("b", "a").ok());
  EXPECT_NE(open()->inode(), first->inode());
}

TEST_F(MemoryFileSystemTest, EndsLocksWithTheirHolder) {
  EXPECT_FALSE(*fs_.IsLocked("lock"));
  auto lock = fs_.LockFile("lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(*fs_.IsLocked("./lock"));
  EXPECT_EQ(fs_.LockFile("./lock").status().code(), absl::StatusCode::kFailedPrecondition);
  fs_.DropUnsyncedData();
  auto second = fs_.LockFile("lock");
  ASSERT_TRUE(second.ok()) << second.status();
  lock->reset();  // The dead process's lock must not release the new one.
  EXPECT_EQ(fs_.LockFile("lock").status().code(), absl::StatusCode::kFailedPrecondition);
  second->reset();
  EXPECT_TRUE(fs_.LockFile("lock").ok());
}

TEST_F(MemoryFileSystemTest, DamagesFilesOnRequest) {
  Write("a", "abc");
  fs_.FlipBits("a", 1, 3);
  EXPECT_EQ(Read("a"), "aac");
  fs_.Truncate("a", 2);
  EXPECT_EQ(Read("a"), "aa");
}

TEST_F(MemoryFileSystemTest, NoticesThatALockWasReplaced) {
  const auto lock = fs_.LockFile("lock").value();
  EXPECT_TRUE(lock->Check().ok());
  ASSERT_TRUE(fs_.Remove("lock").ok());
  EXPECT_TRUE(lock->Check().ok()) << "nobody else has it";
  const auto other = fs_.LockFile("lock").value();
  EXPECT_EQ(lock->Check().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(other->Check().ok());
}

}  // namespace
}  // namespace lockstep

#include "lockstep/common/io/testing/faulty_file_system.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Operation = FaultyFileSystem::Operation;

class FaultyFileSystemTest : public ::testing::Test {
 protected:
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
};

TEST_F(FaultyFileSystemTest, CountsOperations) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "a", "data").ok());  // create, append, sync, close, rename, sync
  EXPECT_EQ(fs_.operations(), 6);
  EXPECT_TRUE(fs_.Exists("a").value());
  EXPECT_EQ(fs_.operations(), 7);
}

TEST_F(FaultyFileSystemTest, FailsOneOperation) {
  fs_.FailOperation(3, absl::InternalError("injected"));
  const absl::Status status = WriteFileAtomically(&fs_, "a", "data");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("injected (operation 3, a.tmp)"));
  EXPECT_TRUE(WriteFileAtomically(&fs_, "a", "data").ok());
}

// Whatever fails, the file has the old or the new contents, and no temporary file is left.
TEST_F(FaultyFileSystemTest, AtomicWritesAreAtomic) {
  for (int64_t n = 1; n <= 6; ++n) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "a", "old").ok());
    fs_.FailOperation(n, absl::InternalError("injected"));
    bool replaced = n != 6;
    EXPECT_FALSE(WriteFileAtomically(&fs_, "a", "new", &replaced).ok());
    EXPECT_EQ(replaced, n == 6);
    EXPECT_EQ(ReadFile(&memory_, "a").value(), n == 6 ? "new" : "old") << n;
    EXPECT_FALSE(memory_.Exists("a.tmp").value()) << n;
  }
}

TEST_F(FaultyFileSystemTest, FailsAnOperationOnSomePaths) {
  for (const char* name : {"a", "b"}) ASSERT_TRUE(WriteFileAtomically(&fs_, name, "data").ok());
  auto file = fs_.NewRandomAccessFile("a").value();
  for (const auto operation : {Operation::kExists, Operation::kOpen, Operation::kRead, Operation::kRename}) {
    fs_.FailMatching(operation, "a", absl::InternalError("Input/output error"));
  }
  char byte;
  EXPECT_TRUE(absl::IsInternal(fs_.Exists("a").status()));
  EXPECT_TRUE(absl::IsInternal(fs_.NewRandomAccessFile("a").status()));
  EXPECT_TRUE(absl::IsInternal(file->Read(0, 1, &byte)));
  EXPECT_TRUE(absl::IsInternal(fs_.Rename("b", "a"))) << "its new name";
  EXPECT_TRUE(fs_.Exists("b").value());
  EXPECT_TRUE(fs_.ListDirectory(".").ok());
  EXPECT_TRUE(fs_.Rename("b", "c").ok());
  fs_.Heal();
  EXPECT_TRUE(fs_.Exists("a").value());
}

TEST_F(FaultyFileSystemTest, LetsNothingThroughAfterAKill) {
  auto file = fs_.NewWritableFile("a").value();
  fs_.KillAfter(1);
  ASSERT_TRUE(file->Append("whole").ok());
  EXPECT_FALSE(file->Append("half").ok());
  EXPECT_FALSE(file->Append("none").ok());
  EXPECT_FALSE(fs_.Rename("a", "b").ok());
  EXPECT_FALSE(fs_.NewRandomAccessFile("a").ok());
  file.reset();
  EXPECT_EQ(ReadFile(&memory_, "a").value(), "wholeha");
  fs_.Heal();
  EXPECT_TRUE(fs_.Rename("a", "b").ok());
}

TEST_F(FaultyFileSystemTest, FillsTheDisk) {
  fs_.FillDiskAfter(5);
  auto file = fs_.NewWritableFile("a").value();
  EXPECT_TRUE(file->Append("abc").ok());
  const absl::Status full = file->Append("def");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("3 bytes, room for 2"));
  EXPECT_TRUE(file->Append("gh").ok());
  fs_.Heal();
  EXPECT_TRUE(file->Append("ij").ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadFile(&memory_, "a").value(), "abcghij");
}

TEST_F(FaultyFileSystemTest, FailsReadsToo) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "a", "data").ok());
  auto file = fs_.NewRandomAccessFile("a").value();
  fs_.FailFrom(1, absl::InternalError("bad sector"));
  char out[4];
  EXPECT_EQ(file->Read(0, 4, out).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(file->Read(0, 4, out).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/server/chief/ownership/fenced_files.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FencedFilesTest : public ::testing::Test {
 protected:
  FencedFilesTest() { EXPECT_TRUE(fs_.CreateDirectory("d").ok()); }

  std::unique_ptr<FencedFiles> Enter() {
    auto files = FencedFiles::Create(&fs_, "d", 1);
    EXPECT_TRUE(files.ok()) << files.status();
    EXPECT_TRUE((*files)->FenceEarlier().ok());
    return *std::move(files);
  }
  std::vector<std::string> Files() { return fs_.ListDirectory("d").value(); }
  std::string Read(const std::string& path) { return ReadFile(&fs_, path).value_or("absent"); }

  MemoryFileSystem fs_;
};

TEST_F(FencedFilesTest, PublishesByRename) {
  const auto files = Enter();
  const auto file = files->NewWritableFile("d/a.tmp").value();
  ASSERT_TRUE(file->Append("a").ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_THAT(Files(), ElementsAre("generation.1"));
  ASSERT_TRUE(files->Rename("d/a.tmp", "d/a").ok());
  EXPECT_EQ(Read("d/a"), "a");
  ASSERT_TRUE(files->SyncDirectory("d").ok());
  fs_.DropUnsyncedData();
  EXPECT_THAT(Files(), ElementsAre("a", "generation.1"));
  ASSERT_TRUE(files->Remove("d/a").ok());
  EXPECT_THAT(Files(), ElementsAre("generation.1"));
  EXPECT_TRUE(absl::IsNotFound(files->Remove("d/a")));
  EXPECT_TRUE(absl::IsNotFound(files->Rename("d/a.tmp", "d/a")));
}

TEST_F(FencedFilesTest, RemovesItsFolderAtTheEnd) {
  auto files = Enter();
  ASSERT_TRUE(files->NewWritableFile("d/a.tmp").ok());
  files.reset();
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(FencedFilesTest, EveryGenerationIsNew) {
  const auto first = Enter();
  const auto second = Enter();
  EXPECT_EQ(first->generation(), 1);
  EXPECT_EQ(second->generation(), 2);
  EXPECT_EQ(FencedFiles::Create(&fs_, "d", 7).value()->generation(), 7);
  EXPECT_EQ(FencedFiles::Create(&fs_, "d", 2).value()->generation(), 3);
}

// A file system that calls `interruption` before one particular operation.
class InterruptedDisk : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  std::function<void()> interruption;
  // Number of operations until the interruption; negative if there is none.
  int64_t left = -1;

 private:
  absl::Status Before(Operation, const std::string&) override {
    if (--left == 0) interruption();
    return absl::OkStatus();
  }
};

// The old chief stops between any two operations of a write, a successor takes over, and the old chief continues.
TEST_F(FencedFilesTest, FencedWritesPublishNothing) {
  for (int64_t operation = 1;; ++operation) {
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    ASSERT_TRUE(WriteFileAtomically(&memory, "d/state", "before").ok());
    InterruptedDisk old_disk(&memory);
    const auto old = FencedFiles::Create(&old_disk, "d", 1).value();
    std::unique_ptr<FencedFiles> next;
    std::string seen;
    old_disk.interruption = [&] {
      next = FencedFiles::Create(&memory, "d", 1).value();
      ASSERT_TRUE(next->FenceEarlier().ok());
      seen = ReadFile(&memory, "d/state").value();
    };
    old_disk.left = operation;
    const absl::Status written = WriteFileAtomically(old.get(), "d/state", "old");
    old_disk.left = -1;  // the end of `old` is not part of the write
    if (next == nullptr) {
      EXPECT_GT(operation, 4) << "it creates, appends, syncs, closes, renames and syncs";
      break;
    }
    EXPECT_EQ(ReadFile(&memory, "d/state").value(), seen) << "operation " << operation;
    EXPECT_EQ(seen == "before", absl::IsFailedPrecondition(written)) << "operation " << operation << ": " << written;
  }
}

TEST_F(FencedFilesTest, AFencedBundleIsNotPublished) {
  const auto old = Enter();
  auto writer = BundleWriter::Create(old.get(), "d/model.ckpt-1").value();
  ASSERT_TRUE(writer->Add("w", v1::DT_FLOAT, Shape({1}), std::string(4, '\0')).ok());
  const auto next = Enter();
  const absl::Status finished = writer->Finish();
  EXPECT_TRUE(absl::IsFailedPrecondition(finished)) << finished;
  EXPECT_THAT(std::string(finished.message()), HasSubstr("another chief has taken over d"));
  writer.reset();
  EXPECT_THAT(Files(), ElementsAre("generation.2"));
}

TEST_F(FencedFilesTest, AFencedChiefRemovesNothing) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/a", "a").ok());
  const auto old = Enter();
  const auto next = Enter();
  EXPECT_TRUE(absl::IsFailedPrecondition(old->Remove("d/a")));
  EXPECT_TRUE(absl::IsFailedPrecondition(old->NewWritableFile("d/b.tmp").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(old->Check()));
  EXPECT_TRUE(next->Check().ok());
  EXPECT_EQ(Read("d/a"), "a");
}

TEST_F(FencedFilesTest, AppendsOfAFencedChiefAreLost) {
  const auto old = Enter();
  const auto file = old->NewWritableFile("d/events.new.tmp").value();
  ASSERT_TRUE(old->Rename("d/events.new.tmp", "d/events.tfevents").ok());
  ASSERT_TRUE(file->Append("before ").ok() && file->Flush().ok());
  EXPECT_EQ(Read("d/events.tfevents"), "before ");
  const std::vector<std::string> staged = fs_.ListDirectory("d/generation.1").value();
  for (const std::string& name : staged) {
    EXPECT_EQ(name.find("tfevents"), std::string::npos) << "TensorBoard would read " << name;
  }
  const auto next = Enter();
  ASSERT_TRUE(file->Append("after").ok() && file->Flush().ok());
  EXPECT_EQ(Read("d/events.tfevents"), "before ");
  EXPECT_THAT(fs_.ListDirectory("d/generation.2").value(), ElementsAre("owner"));
}

// The successor of the frozen chief ends between the fence and the copy.
TEST_F(FencedFilesTest, AnyLaterChiefReplacesOpenFiles) {
  const auto old = Enter();
  const auto file = old->NewWritableFile("d/events.tmp").value();
  ASSERT_TRUE(old->Rename("d/events.tmp", "d/events").ok());
  ASSERT_TRUE(file->Append("before ").ok() && file->Flush().ok());
  FaultyFileSystem faulty(&fs_);
  auto failed = FencedFiles::Create(&faulty, "d", 1).value();
  faulty.FailMatching(FaultyFileSystem::Operation::kCreate, "copy", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(failed->FenceEarlier()));
  failed.reset();
  ASSERT_TRUE(file->Append("between ").ok() && file->Flush().ok());
  const auto next = Enter();
  ASSERT_TRUE(file->Append("after").ok() && file->Flush().ok());
  EXPECT_EQ(Read("d/events"), "before between ");
}

TEST_F(FencedFilesTest, TheLaterOfTwoSuccessorsLeads) {
  const auto first = FencedFiles::Create(&fs_, "d", 1).value();
  const auto second = FencedFiles::Create(&fs_, "d", 1).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(first->FenceEarlier()));
  EXPECT_TRUE(second->FenceEarlier().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(first->Check()));
}

TEST_F(FencedFilesTest, OtherDirectoriesAreNotFenced) {
  ASSERT_TRUE(fs_.CreateDirectory("other").ok());
  const auto old = Enter();
  const auto next = Enter();
  EXPECT_TRUE(WriteFileAtomically(old.get(), "other/a", "a").ok());
  EXPECT_TRUE(old->Remove("other/a").ok());
}

}  // namespace
}  // namespace lockstep

#include "common/checkpoint/bundle_writer.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/io/faulty_file_system.h"
#include "common/io/memory_file_system.h"
#include "common/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using UnsyncedNames = MemoryFileSystem::UnsyncedNames;

absl::string_view Bytes(const float& value) {
  return absl::string_view(reinterpret_cast<const char*>(&value), sizeof(value));
}

absl::Status Save(FileSystem* fs, const std::string& prefix, float value) {
  auto writer = BundleWriter::Create(fs, prefix);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Add("v", DT_FLOAT, {1}, Bytes(value));
  if (status.ok()) status = (*writer)->Finish();
  return status;
}

float Restore(FileSystem* fs, const std::string& prefix) {
  const auto reader = BundleReader::Open(fs, prefix);
  if (!reader.ok()) {
    ADD_FAILURE() << reader.status();
    return 0;
  }
  const auto tensor = (*reader)->Read("v");
  if (!tensor.ok()) {
    ADD_FAILURE() << tensor.status();
    return 0;
  }
  return tensor->flat<float>()[0];
}

class BundleWriterTest : public ::testing::Test {
 protected:
  BundleWriterTest() { EXPECT_TRUE(memory_.CreateDirectory("d").ok()); }
  std::vector<std::string> Files() { return memory_.ListDirectory("d").value(); }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
};

TEST_F(BundleWriterTest, SaysWhereEachPieceBegins) {
  std::vector<uint64_t> offsets;
  const auto note = [&](uint64_t offset) {
    offsets.push_back(offset);
    return absl::OkStatus();
  };
  auto writer = BundleWriter::Create(&fs_, "d/ckpt", note).value();
  ASSERT_TRUE(writer->Add("a", DT_FLOAT, {1}, Bytes(1)).ok());
  ASSERT_TRUE(writer->Add("b", DT_UINT8, {(2 << 20) + 1}, std::string((2 << 20) + 1, 'x')).ok());
  ASSERT_TRUE(writer->Add("c", DT_UINT8, {0}, "").ok());
  EXPECT_THAT(offsets, ElementsAre(0, 4, 4 + (1 << 20), 4 + (2 << 20)));
}

TEST_F(BundleWriterTest, EndsBeforeAPieceThatIsRefused) {
  const auto refuse_second = [](uint64_t offset) {
    return offset < 4 ? absl::OkStatus() : absl::CancelledError("refused");
  };
  auto writer = BundleWriter::Create(&fs_, "d/ckpt", refuse_second).value();
  ASSERT_TRUE(writer->Add("a", DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_TRUE(absl::IsCancelled(writer->Add("b", DT_FLOAT, {1}, Bytes(1))));
  EXPECT_TRUE(absl::IsCancelled(writer->Finish()));
  writer.reset();
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(BundleWriterTest, WritesAnIndexAndADataFile) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  ASSERT_TRUE(writer->Add("b", DT_FLOAT, {1}, Bytes(2)).ok());
  ASSERT_TRUE(writer->Add("a", DT_UINT8, {2, 0}, "").ok());
  ASSERT_TRUE(writer->Add("c", DT_INT64, {}, "12345678").ok());
  EXPECT_EQ(writer->bytes_written(), 12u);
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001.tmp"));
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
  const auto reader = BundleReader::Open(&fs_, "d/ckpt").value();
  EXPECT_THAT(reader->names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(reader->Read("a")->shape(), (Shape{2, 0}));
  EXPECT_EQ(reader->Read("c")->bytes(), "12345678");
  EXPECT_EQ(reader->Read("c")->dtype(), DT_INT64);
  EXPECT_EQ(reader->Read("c")->shape(), Shape());
}

// SAVE-23
TEST_F(BundleWriterTest, RefusesARepeatedName) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  ASSERT_TRUE(writer->Add("v", DT_FLOAT, {1}, Bytes(1)).ok());
  const absl::Status twice = writer->Add("v", DT_FLOAT, {1}, Bytes(1));
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(twice.message(), "checkpoint d/ckpt: variable v is added twice");
}

TEST_F(BundleWriterTest, RefusesContentThatContradictsTypeAndShape) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  const absl::Status status = writer->Add("v", DT_FLOAT, {2, 3}, "12345");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("variable v of type float32 and shape [2,3] has 5 bytes where 24 are expected"));
  EXPECT_FALSE(writer->Add("s", DT_STRING, {}, "").ok());
  EXPECT_FALSE(writer->Add("", DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_FALSE(writer->Add(std::string(65537, 'x'), DT_FLOAT, {1}, Bytes(1)).ok());
  // None of it spoils the checkpoint.
  ASSERT_TRUE(writer->Add("v", DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Restore(&fs_, "d/ckpt"), 1);
}

// SAVE-19
TEST_F(BundleWriterTest, SaysThatTheDirectoryIsMissing) {
  const absl::Status status = BundleWriter::Create(&fs_, "missing/ckpt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
  EXPECT_EQ(BundleWriter::Create(&fs_, "d/").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BundleWriterTest, RemovesItsTemporaryFilesWhenAbandoned) {
  { const auto writer = BundleWriter::Create(&fs_, "d/ckpt").value(); }
  EXPECT_TRUE(Files().empty());
}

TEST_F(BundleWriterTest, ReportsAFullDiskAndCleansUp) {
  for (const uint64_t room : {0, 3, 4, 10}) {  // The data file needs 4 bytes, the index more than 100.
    fs_.FillDiskAfter(room);
    EXPECT_EQ(Save(&fs_, "d/ckpt", 1).code(), absl::StatusCode::kResourceExhausted) << room;
    EXPECT_TRUE(Files().empty()) << room;
  }
  fs_.Heal();
  EXPECT_TRUE(Save(&fs_, "d/ckpt", 1).ok());
}

TEST_F(BundleWriterTest, LeavesNothingWhereverAFirstSaveFails) {
  const int64_t before = fs_.operations();
  ASSERT_TRUE(Save(&fs_, "d/ckpt", 1).ok());
  const int64_t operations = fs_.operations() - before;
  ASSERT_TRUE(RemoveCheckpoint(&memory_, "d/ckpt").ok());
  for (int64_t n = 1; n < operations - 1; ++n) {  // The last two give the index its name.
    fs_.FailOperation(n, absl::InternalError("Input/output error"));
    EXPECT_FALSE(Save(&fs_, "d/ckpt", 1).ok()) << n;
    EXPECT_THAT(Files(), ElementsAre()) << n;
  }
}

// It may have done what it says has failed.
TEST_F(BundleWriterTest, KeepsTheDataWhenAnIndexMayLeadToThem) {
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "ckpt.index", absl::InternalError("timed out"));
  EXPECT_FALSE(Save(&fs_, "d/ckpt", 1).ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001"));
}

TEST_F(BundleWriterTest, KeepsTheErrorOfAddForFinish) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  fs_.FailOperation(1, absl::InternalError("injected"));
  EXPECT_FALSE(writer->Add("v", DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_EQ(writer->Finish().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(memory_.Exists("d/ckpt.index").value());
}

TEST_F(BundleWriterTest, ReplacesACheckpointOfTheSamePrefix) {
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(Save(&fs_, "d/ckpt", i).ok());
    EXPECT_EQ(Restore(&fs_, "d/ckpt"), i);
    EXPECT_EQ(Files().size(), 2u) << i;
  }
}

TEST_F(BundleWriterTest, ReplacesADamagedCheckpoint) {
  ASSERT_TRUE(Save(&fs_, "d/ckpt", 1).ok());
  memory_.FlipBits("d/ckpt.index", 5, 1);
  ASSERT_TRUE(Save(&fs_, "d/ckpt", 2).ok());
  EXPECT_EQ(Restore(&fs_, "d/ckpt"), 2);
  EXPECT_EQ(Files().size(), 2u);
}

// Without its index nobody knows which data file it lives from.
TEST_F(BundleWriterTest, DoesNotTakeACheckpointThatItCannotReadForNone) {
  ASSERT_TRUE(Save(&fs_, "d/ckpt", 1).ok());
  using Operation = FaultyFileSystem::Operation;
  for (const Operation operation : {Operation::kExists, Operation::kOpen, Operation::kRead}) {
    fs_.FailMatching(operation, "ckpt.index", absl::InternalError("Input/output error"));
    fs_.FailMatching(Operation::kRename, "ckpt.index", absl::InternalError("it ends half-way"));
    EXPECT_EQ(Save(&fs_, "d/ckpt", 2).code(), absl::StatusCode::kInternal);
    fs_.Heal();
    EXPECT_EQ(Restore(&memory_, "d/ckpt"), 1);
  }
}

// Whatever operation of a second save of one prefix is the last, and whatever of the unsynced is lost: the
// old content or the new is there whole; and the new one once Finish has said so.
TEST(BundleWriterCrashTest, KeepsOneWholeCheckpointThroughAReplacement) {
  for (const UnsyncedNames names : {UnsyncedNames::kLost, UnsyncedNames::kKept, UnsyncedNames::kOnlyLastKept}) {
    bool killed = true;
    for (int64_t n = 0; killed; ++n) {
      MemoryFileSystem memory;
      ASSERT_TRUE(memory.CreateDirectory("d").ok());
      FaultyFileSystem fs(&memory);
      ASSERT_TRUE(Save(&fs, "d/ckpt", 1).ok());
      const int64_t before = fs.operations();
      fs.KillAfter(n);
      const bool saved = Save(&fs, "d/ckpt", 2).ok();
      killed = fs.operations() - before > n;
      EXPECT_TRUE(saved || killed);
      for (const bool power_cut : {false, true}) {
        if (power_cut) memory.DropUnsyncedData(names);
        const float restored = Restore(&memory, "d/ckpt");
        EXPECT_TRUE(restored == 1 || restored == 2) << "killed after " << n << ", restored " << restored;
        EXPECT_TRUE(!saved || restored == 2) << "killed after " << n;
      }
      ASSERT_LT(n, 100);
    }
  }
}

}  // namespace
}  // namespace lockstep

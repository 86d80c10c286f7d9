#include "lockstep/common/checkpoint/bundle/bundle_writer.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using UnsyncedNames = MemoryFileSystem::UnsyncedNames;

absl::string_view Bytes(const float& value) {
  return absl::string_view(reinterpret_cast<const char*>(&value), sizeof(value));
}

absl::Status Save(FileSystem* fs, const std::string& prefix, float value, int files = 1) {
  BundleWriterOptions options;
  options.num_data_files = files;
  auto writer = BundleWriter::Create(fs, prefix, options);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Add("v", v1::DT_FLOAT, {1}, Bytes(value));
  for (int i = 1; i < files && status.ok(); ++i) {
    status = (*writer)->Add(absl::StrCat("v", i), v1::DT_FLOAT, {1}, Bytes(value));
  }
  if (status.ok()) status = (*writer)->Finish();
  return status;
}

float Restore(FileSystem* fs, const std::string& prefix) {
  const auto reader = BundleReader::Open(fs, prefix);
  if (!reader.ok()) {
    ADD_FAILURE() << reader.status();
    return 0;
  }
  EXPECT_TRUE((*reader)->Verify().ok());
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
  auto writer = BundleWriter::Create(&fs_, "d/ckpt", {note}).value();
  ASSERT_TRUE(writer->Add("a", v1::DT_FLOAT, {1}, Bytes(1)).ok());
  ASSERT_TRUE(writer->Add("b", v1::DT_UINT8, {(2 << 20) + 1}, std::string((2 << 20) + 1, 'x')).ok());
  ASSERT_TRUE(writer->Add("c", v1::DT_UINT8, {0}, "").ok());
  EXPECT_THAT(offsets, ElementsAre(0, 4, 4 + (1 << 20), 4 + (2 << 20)));
}

TEST_F(BundleWriterTest, EndsBeforeAPieceThatIsRefused) {
  const auto refuse_second = [](uint64_t offset) {
    return offset < 4 ? absl::OkStatus() : absl::CancelledError("refused");
  };
  auto writer = BundleWriter::Create(&fs_, "d/ckpt", {refuse_second}).value();
  ASSERT_TRUE(writer->Add("a", v1::DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_TRUE(absl::IsCancelled(writer->Add("b", v1::DT_FLOAT, {1}, Bytes(1))));
  EXPECT_TRUE(absl::IsCancelled(writer->Finish()));
  writer.reset();
  EXPECT_THAT(Files(), ElementsAre());
}

// There is one data file, and the version is one that TensorFlow's reader accepts.
TEST_F(BundleWriterTest, TheHeaderIsTheseBytesForEver) {
  ASSERT_TRUE(Save(&fs_, "d/ckpt", 1).ok());
  const auto entries = DecodeIndexTable(ReadFile(&fs_, "d/ckpt.index").value());
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->at(""), "\x08\x01\x1a\x02\x08\x01");
}

TEST_F(BundleWriterTest, WritesAnIndexAndADataFile) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  ASSERT_TRUE(writer->Add("b", v1::DT_FLOAT, {1}, Bytes(2)).ok());
  ASSERT_TRUE(writer->Add("a", v1::DT_UINT8, {2, 0}, "").ok());
  ASSERT_TRUE(writer->Add("c", v1::DT_INT64, {}, "12345678").ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001.tmp"));
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
  const auto reader = BundleReader::Open(&fs_, "d/ckpt").value();
  EXPECT_THAT(reader->names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(reader->Read("a")->shape(), (Shape{2, 0}));
  EXPECT_EQ(reader->Read("c")->bytes(), "12345678");
  EXPECT_EQ(reader->Read("c")->dtype(), v1::DT_INT64);
  EXPECT_EQ(reader->Read("c")->shape(), Shape());
}

// SAVE-05
TEST_F(BundleWriterTest, AddsEachTensorToTheLightestDataFile) {
  BundleWriterOptions options;
  options.num_data_files = 3;
  auto writer = BundleWriter::Create(&fs_, "d/ckpt", options).value();
  ASSERT_TRUE(writer->Add("a", v1::DT_UINT8, {6}, "aaaaaa").ok());
  ASSERT_TRUE(writer->Add("b", v1::DT_UINT8, {2}, "bb").ok());
  ASSERT_TRUE(writer->Add("c", v1::DT_UINT8, {3}, "ccc").ok());
  ASSERT_TRUE(writer->Add("d", v1::DT_UINT8, {5}, "ddddd").ok());
  ASSERT_TRUE(writer->Add("e", v1::DT_UINT8, {1}, "e").ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00003", "ckpt.data-00001-of-00003", "ckpt.data-00002-of-00003",
                                   "ckpt.index"));
  EXPECT_EQ(ReadFile(&fs_, "d/ckpt.data-00000-of-00003").value(), "aaaaaa");
  EXPECT_EQ(ReadFile(&fs_, "d/ckpt.data-00001-of-00003").value(), "bbddddd");
  EXPECT_EQ(ReadFile(&fs_, "d/ckpt.data-00002-of-00003").value(), "ccce");
  const auto reader = BundleReader::Open(&fs_, "d/ckpt").value();
  EXPECT_TRUE(reader->Verify().ok());
  EXPECT_EQ(reader->Read("d")->bytes(), "ddddd");
  EXPECT_FALSE(reader->written_by_saver());
}

TEST_F(BundleWriterTest, ReplacesADifferentNumberOfDataFiles) {
  const auto save = [this](int files, float value) {
    ASSERT_TRUE(Save(&fs_, "d/ckpt", value, files).ok());
    EXPECT_EQ(Restore(&fs_, "d/ckpt"), value);
  };
  save(2, 1);
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00002", "ckpt.data-00001-of-00002", "ckpt.index"));
  save(2, 2);
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00003", "ckpt.data-00001-of-00003", "ckpt.index"));
  save(2, 3);
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00002", "ckpt.data-00001-of-00002", "ckpt.index"));
  save(1, 4);
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
}

// Makes each operation in turn fail while a save with several data files replaces an existing checkpoint.
TEST_F(BundleWriterTest, FailedReplacementLeavesOnlyTheOldOne) {
  const auto save = [this](float value) { return Save(&fs_, "d/ckpt", value, 2); };
  ASSERT_TRUE(save(1).ok());
  int indexes_that_may_lead_to_the_new = 0;
  for (int64_t n = 1;; ++n) {
    fs_.FailOperation(n, absl::ResourceExhaustedError("full"));
    if (save(2).ok()) break;
    const float found = Restore(&memory_, "d/ckpt");
    // The new index already has its final name if only the last sync of the directory failed.
    EXPECT_TRUE(found == 1 || found == 2) << n;
    if (found == 2) break;
    if (Files().size() > 3) {
      EXPECT_EQ(++indexes_that_may_lead_to_the_new, 1) << "only where the rename of the index is what failed; n " << n;
      continue;
    }
    EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00002", "ckpt.data-00001-of-00002", "ckpt.index")) << n;
    ASSERT_LT(n, 100);
  }
}

TEST_F(BundleWriterTest, RefusesImpossibleDataFileCounts) {
  for (const int files : {0, -1, 10000}) {
    BundleWriterOptions options;
    options.num_data_files = files;
    const absl::Status status = BundleWriter::Create(&fs_, "d/ckpt", options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("there may be 1 to 9999"));
  }
  EXPECT_TRUE(Files().empty());
}

// SAVE-23
TEST_F(BundleWriterTest, RefusesARepeatedName) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  ASSERT_TRUE(writer->Add("v", v1::DT_FLOAT, {1}, Bytes(1)).ok());
  const absl::Status twice = writer->Add("v", v1::DT_FLOAT, {1}, Bytes(1));
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(twice.message(), "checkpoint d/ckpt: variable v is added twice");
}

TEST_F(BundleWriterTest, RefusesContentUnlikeItsTypeAndShape) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  const absl::Status status = writer->Add("v", v1::DT_FLOAT, {2, 3}, "12345");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("variable v of type float32 and shape [2,3] has 5 bytes where 24 are expected"));
  EXPECT_FALSE(writer->Add("s", v1::DT_STRING, {}, "").ok());
  EXPECT_FALSE(writer->Add("", v1::DT_FLOAT, {1}, Bytes(1)).ok());
  EXPECT_FALSE(writer->Add(std::string(65537, 'x'), v1::DT_FLOAT, {1}, Bytes(1)).ok());
  // The calls that failed do not affect the checkpoint.
  ASSERT_TRUE(writer->Add("v", v1::DT_FLOAT, {1}, Bytes(1)).ok());
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

TEST_F(BundleWriterTest, RemovesTemporaryFilesWhenAbandoned) {
  { const auto writer = BundleWriter::Create(&fs_, "d/ckpt").value(); }
  EXPECT_TRUE(Files().empty());
}

TEST_F(BundleWriterTest, ReportsAFullDiskAndCleansUp) {
  for (const uint64_t room : {0, 3, 4, 10}) {  // The data file needs 4 bytes, and the index more than 100.
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

// The rename may have succeeded even though it returned an error.
TEST_F(BundleWriterTest, KeepsTheDataWhenAnIndexMayLeadToThem) {
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "ckpt.index", absl::InternalError("timed out"));
  EXPECT_FALSE(Save(&fs_, "d/ckpt", 1).ok());
  EXPECT_THAT(Files(), ElementsAre("ckpt.data-00000-of-00001"));
}

TEST_F(BundleWriterTest, KeepsTheErrorOfAddForFinish) {
  auto writer = BundleWriter::Create(&fs_, "d/ckpt").value();
  fs_.FailOperation(1, absl::InternalError("injected"));
  EXPECT_FALSE(writer->Add("v", v1::DT_FLOAT, {1}, Bytes(1)).ok());
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

// If the index cannot be read, the writer cannot know which data file is in use.
TEST_F(BundleWriterTest, UnreadableCheckpointIsNotAbsent) {
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

// Interrupts the second save of a prefix after each operation and loses any subset of the unsynced data. Either the old
// or the new checkpoint must be intact, and once Finish has succeeded, it must be the new one.
class BundleWriterCrashTest : public ::testing::TestWithParam<int> {};

// Covers one data file and several.
TEST_P(BundleWriterCrashTest, KeepsOneWholeCheckpointThroughout) {
  for (const UnsyncedNames names : {UnsyncedNames::kLost, UnsyncedNames::kKept, UnsyncedNames::kOnlyLastKept}) {
    bool killed = true;
    for (int64_t n = 0; killed; ++n) {
      MemoryFileSystem memory;
      ASSERT_TRUE(memory.CreateDirectory("d").ok());
      FaultyFileSystem fs(&memory);
      ASSERT_TRUE(Save(&fs, "d/ckpt", 1, GetParam()).ok());
      const int64_t before = fs.operations();
      fs.KillAfter(n);
      const bool saved = Save(&fs, "d/ckpt", 2, GetParam()).ok();
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

INSTANTIATE_TEST_SUITE_P(DataFiles, BundleWriterCrashTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace lockstep

#include "lockstep/worker/data/records/record_index.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/libsvm.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kDirectory[] = "run/index";

class RecordIndexTest : public ::testing::Test {
 protected:
  RecordIndexTest() {
    config::v1::InputConfig::Libsvm config;
    config.set_features(2);
    format_ = *CreateLibsvmFormat(config);
    options_.directory = kDirectory;
    options_.scan.progress = [this](const IndexProgress& progress) { progress_.push_back(progress); };
    WriteLines(100);
  }

  void WriteLines(int lines) {
    std::string contents;
    for (int i = 0; i < lines; ++i) absl::StrAppend(&contents, i % 7, " 1:", i, "\n");
    ASSERT_TRUE(WriteFileAtomically(&fs_, "data", contents).ok());
  }

  absl::StatusOr<std::unique_ptr<RecordIndex>> Open() {
    progress_.clear();
    auto contents = faulty_.NewRandomAccessFile("data");
    if (!contents.ok()) return contents.status();
    return RecordIndex::Open(&faulty_, **contents, {"data"}, *format_, options_);
  }

  // Returns the text of record i.
  std::string Record(const RecordIndex& index, int64_t i) {
    const auto place = index.Get(i);
    EXPECT_TRUE(place.ok()) << place.status();
    const std::string contents = *ReadFile(&fs_, "data");
    return contents.substr(place->offset, place->size);
  }

  // Returns true if the last Open read the data.
  bool WasBuilt() const { return !progress_.empty(); }

  std::string IndexPath() {
    const auto names = fs_.ListDirectory(kDirectory);
    EXPECT_TRUE(names.ok() && names->size() == 1);
    return JoinPath(kDirectory, names->at(0));
  }

  MemoryFileSystem fs_;
  FaultyFileSystem faulty_{&fs_};
  std::unique_ptr<RecordFormat> format_;
  IndexOptions options_;
  std::vector<IndexProgress> progress_;
};

TEST_F(RecordIndexTest, FindsEveryRecord) {
  auto index = Open();
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ((*index)->size(), 100);
  EXPECT_EQ((*index)->summary().max_label, 6);
  for (const int i : {0, 1, 50, 99}) EXPECT_EQ(Record(**index, i), absl::StrCat(i % 7, " 1:", i));
}

TEST_F(RecordIndexTest, KnowsTheRowsWithoutAnExample) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "data", "x\n1 1:1\n\n2 1:2\ny\nz\n3 1:3\nw\n").ok());
  options_.scan.on_damage = config::v1::InputConfig::SKIP_AND_COUNT;
  for (const bool is_built : {true, false}) {
    auto index = Open();
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(WasBuilt(), is_built);
    EXPECT_EQ((*index)->size(), 3);
    EXPECT_EQ((*index)->rows(), 7);
    const int64_t examples[] = {-1, 0, 1, -1, -1, 2, -1};
    const char* const texts[] = {"x", "1 1:1", "2 1:2", "y", "z", "3 1:3", "w"};
    for (int64_t row = 0; row < 7; ++row) {
      EXPECT_EQ((*index)->ExampleOf(row), examples[row]);
      if (examples[row] >= 0) {
        EXPECT_EQ((*index)->RowOf(examples[row]), row);
      }
      EXPECT_EQ(Record(**index, row), texts[row]);
    }
  }
}

TEST_F(RecordIndexTest, ReportsProgress) {
  ASSERT_TRUE(Open().ok());
  const uint64_t size = ReadFile(&fs_, "data")->size();
  ASSERT_THAT(progress_, SizeIs(1));
  EXPECT_EQ(progress_[0].path, "data");
  EXPECT_EQ(progress_[0].bytes_done, size);
  EXPECT_EQ(progress_[0].bytes_total, size);
}

TEST_F(RecordIndexTest, IsReadOnceAndThenUsedAgain) {
  auto built = Open();
  ASSERT_TRUE(built.ok());
  EXPECT_NE((*built)->summary().crc32c, 0u);
  EXPECT_TRUE(WasBuilt());
  auto again = Open();
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(WasBuilt());
  EXPECT_EQ((*again)->size(), 100);
  EXPECT_EQ((*again)->summary().max_label, 6);
  EXPECT_EQ((*again)->summary().crc32c, (*built)->summary().crc32c);
  EXPECT_EQ(Record(**again, 99), "1 1:99");
}

TEST_F(RecordIndexTest, IsRebuiltIfTheDataChange) {
  ASSERT_TRUE(Open().ok());
  // The data has the same size but a different time.
  WriteLines(100);
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(WasBuilt());
  WriteLines(60);
  auto index = Open();
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->size(), 60);
  // The directory contains one index for each combination of file and way of reading it, and no temporary files.
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(1));
}

// Changes the file as `cp` followed by `touch -r` does, and as `mv` of another file with the same time does.
TEST_F(RecordIndexTest, IsRebuiltIfDataChangeWithTheSameTime) {
  ASSERT_TRUE(Open().ok());
  const absl::Time time = (*fs_.NewRandomAccessFile("data"))->modification_time();
  fs_.FlipBits("data", 0, 1);
  fs_.SetModificationTime("data", time);
  auto index = Open();
  ASSERT_TRUE(index.ok());
  EXPECT_TRUE(WasBuilt());
  EXPECT_EQ(Record(**index, 0), "1 1:0");
  WriteLines(100);
  fs_.SetModificationTime("data", time);
  index = Open();
  ASSERT_TRUE(index.ok());
  EXPECT_TRUE(WasBuilt());
  EXPECT_EQ(Record(**index, 0), "0 1:0");
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(1));
}

// A file system in which another host, as soon as an index is renamed, replaces it with the index of its own copy of
// the data.
class SharedFileSystem : public MemoryFileSystem {
 public:
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const absl::Status status = MemoryFileSystem::Rename(from, to);
    if (!others_index.empty() && status.ok()) return WriteOthersIndex(to);
    return status;
  }

  std::string others_index;

 private:
  absl::Status WriteOthersIndex(const std::string& path) {
    ASSIGN_OR_RETURN(const auto file, NewWritableFile("other"));
    RETURN_IF_ERROR(file->Append(others_index));
    RETURN_IF_ERROR(file->Close());
    return MemoryFileSystem::Rename("other", path);
  }
};

TEST_F(RecordIndexTest, ReadsOnceIfAHostReplacesTheIndex) {
  ASSERT_TRUE(Open().ok());
  SharedFileSystem shared;
  ASSERT_TRUE(WriteFileAtomically(&shared, "elsewhere", "").ok());
  ASSERT_TRUE(WriteFileAtomically(&shared, "data", *ReadFile(&fs_, "data")).ok());
  shared.others_index = *ReadFile(&fs_, IndexPath());
  for (int start = 0; start < 2; ++start) {
    progress_.clear();
    auto index = RecordIndex::Open(&shared, **shared.NewRandomAccessFile("data"), {"data"}, *format_, options_);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ((*index)->size(), 100);
    EXPECT_EQ(Record(**index, 99), "1 1:99");
    EXPECT_THAT(progress_, SizeIs(1));
    EXPECT_THAT(*shared.ListDirectory(kDirectory), SizeIs(1));
  }
}

// Writes an index of the version that had no record checksums.
TEST_F(RecordIndexTest, IsRebuiltIfAnOlderVersionWroteIt) {
  ASSERT_TRUE(Open().ok());
  const std::string path = IndexPath();
  std::string index = *ReadFile(&fs_, path);
  constexpr size_t kTrailerBytes = 80;
  index[index.size() - kTrailerBytes] = 1;
  // Corrects its checksum.
  index.resize(index.size() - 4);
  AppendLittleEndian<uint32_t>(&index, Crc32c(index.substr(index.size() - (kTrailerBytes - 4))));
  ASSERT_TRUE(WriteFileAtomically(&fs_, path, index).ok());
  auto again = Open();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(WasBuilt());
  EXPECT_EQ((*again)->size(), 100);
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(1));
}

// If impossible indexes were accepted, a process that can write to the directory could make a worker use any amount of
// memory, or accept classes that do not exist.
TEST_F(RecordIndexTest, IsRebuiltIfItIsImpossible) {
  ASSERT_TRUE(Open().ok());
  const std::string path = IndexPath();
  const std::string good = *ReadFile(&fs_, path);
  const uint64_t data_bytes = ReadFile(&fs_, "data")->size();
  const size_t entries = good.size() - 80;
  constexpr size_t kMaxLabel = 44 + 16;  // in the trailer
  // Returns a copy of the index with a number of 4 or 8 bytes replaced and the checksums updated.
  const auto with = [&](size_t at, uint64_t number, bool wide) {
    std::string index = good.substr(0, good.size() - 8), bytes;
    wide ? AppendLittleEndian<uint64_t>(&bytes, number) : AppendLittleEndian<uint32_t>(&bytes, number);
    index.replace(at, bytes.size(), bytes);
    AppendLittleEndian<uint32_t>(&index, Crc32c(index.substr(0, entries)));
    AppendLittleEndian<uint32_t>(&index, Crc32c(index.substr(entries)));
    return index;
  };
  const auto is_used = [&](const std::string& index) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, path, index).ok());
    const auto opened = Open();
    EXPECT_TRUE(opened.ok()) << opened.status();
    return !WasBuilt();
  };
  EXPECT_TRUE(is_used(with(16 * 7, data_bytes - 5, true)));  // as large as the last record
  EXPECT_FALSE(is_used(with(16 * 7, data_bytes, true)));
  EXPECT_FALSE(is_used(with(16 * 7, ~uint64_t{0}, true)));
  EXPECT_FALSE(is_used(with(16 * 7 + 8, 1 << 31, false)));
  EXPECT_TRUE(is_used(with(entries + kMaxLabel, 0x7fffffff, true)));
  EXPECT_FALSE(is_used(with(entries + kMaxLabel, uint64_t{1} << 31, true)));
  EXPECT_FALSE(is_used(with(entries + kMaxLabel, ~uint64_t{0} - 1, true)));
}

TEST_F(RecordIndexTest, AnotherFormatHasAnIndexOfItsOwn) {
  ASSERT_TRUE(Open().ok());
  config::v1::InputConfig::Libsvm config;
  config.set_features(3);
  format_ = *CreateLibsvmFormat(config);
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(WasBuilt());
  options_.scan.on_damage = config::v1::InputConfig::SKIP_AND_COUNT;
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(WasBuilt());
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(3));
}

TEST_F(RecordIndexTest, EveryDamagedByteIsNoticed) {
  ASSERT_TRUE(Open().ok());
  const std::string path = IndexPath();
  const std::string good = *ReadFile(&fs_, path);
  for (size_t i = 0; i < good.size(); ++i) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, path, good).ok());
    fs_.FlipBits(path, i, 4);
    auto index = Open();
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_TRUE(WasBuilt()) << "byte " << i << " of " << good.size();
    EXPECT_EQ(Record(**index, 99), "1 1:99");
  }
  for (size_t size = 0; size < good.size(); size += 13) {
    fs_.Truncate(path, size);
    ASSERT_TRUE(Open().ok());
    EXPECT_TRUE(WasBuilt()) << "cut to " << size << " of " << good.size();
  }
}

TEST_F(RecordIndexTest, StaysInMemoryWithoutADirectory) {
  options_.directory.clear();
  auto index = Open();
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(Record(**index, 98), "0 1:98");
  EXPECT_FALSE(fs_.Exists(kDirectory).value());
}

TEST_F(RecordIndexTest, AnIndexThatCannotBeKeptIsNoError) {
  faulty_.FillDiskAfter(100);
  auto index = Open();
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(Record(**index, 99), "1 1:99");
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(0));
  faulty_.Heal();
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(1));
}

// If a process dies while writing an index, the index that it leaves is either valid or rebuilt.
TEST_F(RecordIndexTest, SurvivesDeathAtEveryOperation) {
  for (int operations = 0; operations < 30; ++operations) {
    ASSERT_TRUE(fs_.CreateDirectory(kDirectory).ok());
    const std::vector<std::string> names = *fs_.ListDirectory(kDirectory);
    for (const std::string& name : names) ASSERT_TRUE(fs_.Remove(JoinPath(kDirectory, name)).ok());
    faulty_.KillAfter(operations);
    Open().IgnoreError();
    faulty_.Heal();
    auto index = Open();
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ((*index)->size(), 100);
    EXPECT_EQ(Record(**index, 99), "1 1:99");
  }
}

TEST_F(RecordIndexTest, DamagedDataAreAnErrorAndLeaveNoIndex) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "data", "1 1:1\nx\n").ok());
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("data:2:"));
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(0));
}

// The file is larger than the chunks in which data and index are read.
TEST_F(RecordIndexTest, ReadsLargeFilesInPieces) {
  constexpr int kLines = 300000;
  WriteLines(kLines);
  for (const bool built : {true, false}) {
    auto index = Open();
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(WasBuilt(), built);
    ASSERT_EQ((*index)->size(), kLines);
    for (const int i : {0, 87381, 100000, kLines - 1}) {
      EXPECT_EQ(Record(**index, i), absl::StrCat(i % 7, " 1:", i));
    }
  }
}

}  // namespace
}  // namespace lockstep

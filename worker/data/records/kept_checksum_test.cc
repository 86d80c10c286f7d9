#include "lockstep/worker/data/records/kept_checksum.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::SizeIs;

constexpr char kDirectory[] = "run/index";
constexpr uint32_t kRowBytes = 131300;

class KeptChecksumTest : public ::testing::Test {
 protected:
  KeptChecksumTest() {
    options_.directory = kDirectory;
    options_.progress = [this](const IndexProgress& progress) { progress_.push_back(progress); };
    // The data is longer than the pieces in which it is read.
    for (uint32_t i = 0; i < kRowBytes * 20 + 7; ++i) data_.push_back(static_cast<char>(i * i >> 5));
    WriteData();
  }

  void WriteData() { ASSERT_TRUE(WriteFileAtomically(&fs_, "data", data_).ok()); }

  // Returns the checksums of the rows from byte 7 on. Row boundaries are unrelated to those of the pieces that are
  // read.
  RowChecksums Sums() {
    progress_.clear();
    const auto contents = faulty_.NewRandomAccessFile("data");
    EXPECT_TRUE(contents.ok());
    const auto sums = KeptChecksums(&faulty_, "data", **contents, {7, row_bytes_}, options_);
    EXPECT_TRUE(sums.ok()) << sums.status();
    return sums.value_or(RowChecksums());
  }
  uint32_t Sum() {
    const RowChecksums sums = Sums();
    EXPECT_EQ(sums.rows, ExpectedRows());
    return sums.all;
  }
  uint32_t Expected() const { return Crc32c(absl::string_view(data_).substr(7)); }
  std::vector<uint32_t> ExpectedRows() const {
    std::vector<uint32_t> rows;
    for (size_t i = 7; i < data_.size(); i += row_bytes_) {
      rows.push_back(Crc32c(absl::string_view(data_).substr(i, row_bytes_)));
    }
    return rows;
  }
  // Returns true if the last Sum read the data.
  bool WasRead() const { return !progress_.empty(); }
  std::string KeptPath() {
    const auto names = fs_.ListDirectory(kDirectory);
    EXPECT_TRUE(names.ok() && names->size() == 1);
    return JoinPath(kDirectory, names->at(0));
  }

  std::string data_;
  uint64_t row_bytes_ = kRowBytes;
  MemoryFileSystem fs_;
  FaultyFileSystem faulty_{&fs_};
  ChecksumOptions options_;
  std::vector<IndexProgress> progress_;
};

TEST_F(KeptChecksumTest, ReadsTheFileOnce) {
  EXPECT_EQ(Sum(), Expected());
  ASSERT_TRUE(WasRead());
  EXPECT_EQ(progress_.back().bytes_done, data_.size());
  EXPECT_EQ(Sum(), Expected());
  EXPECT_FALSE(WasRead());
}

TEST_F(KeptChecksumTest, ReadsItAgainWhenItHasChanged) {
  Sum();
  data_[1000] ^= 1;
  WriteData();
  EXPECT_EQ(Sum(), Expected());
  EXPECT_TRUE(WasRead());
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(1));
}

// Changes the file as `cp` followed by `touch -r` does, and as `mv` of another file with the same time does.
TEST_F(KeptChecksumTest, ReadsAgainAfterASameTimeChange) {
  Sum();
  const absl::Time time = (*fs_.NewRandomAccessFile("data"))->modification_time();
  data_[1000] ^= 1;
  fs_.FlipBits("data", 1000, 1);
  fs_.SetModificationTime("data", time);
  EXPECT_EQ(Sum(), Expected());
  EXPECT_TRUE(WasRead());
  data_[1000] ^= 1;
  WriteData();
  fs_.SetModificationTime("data", time);
  EXPECT_EQ(Sum(), Expected());
  EXPECT_TRUE(WasRead());
  EXPECT_EQ(Sum(), Expected());
  EXPECT_FALSE(WasRead());
}

TEST_F(KeptChecksumTest, ReadsItAgainForOtherRows) {
  Sum();
  // Tests rows that are longer than a piece, and short ones.
  for (const uint64_t rows : {2, 2626}) {
    row_bytes_ = (data_.size() - 7) / rows;
    ASSERT_EQ((data_.size() - 7) % rows, 0u);
    EXPECT_EQ(Sum(), Expected());
    EXPECT_TRUE(WasRead());
    EXPECT_EQ(Sum(), Expected());
    EXPECT_FALSE(WasRead());
  }
}

// Before the format had row checksums, it had 28 bytes of identity, the checksum of all rows, and its own checksum.
TEST_F(KeptChecksumTest, IsRebuiltIfAnOlderVersionWroteIt) {
  Sum();
  const std::string path = KeptPath();
  std::string old = ReadFile(&fs_, path)->substr(0, 28);
  old[0] = 1;
  AppendLittleEndian<uint32_t>(&old, 12345);
  AppendLittleEndian<uint32_t>(&old, Crc32c(old));
  ASSERT_TRUE(WriteFileAtomically(&fs_, path, old).ok());
  EXPECT_EQ(Sum(), Expected());
  EXPECT_TRUE(WasRead());
  EXPECT_EQ(KeptPath(), path);
}

TEST_F(KeptChecksumTest, EveryDamagedByteIsNoticed) {
  Sum();
  const std::string path = KeptPath();
  const std::string good = *ReadFile(&fs_, path);
  for (size_t i = 0; i < good.size(); ++i) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, path, good).ok());
    fs_.FlipBits(path, i, 4);
    EXPECT_EQ(Sum(), Expected());
    EXPECT_TRUE(WasRead()) << "byte " << i;
    fs_.Truncate(path, i);
    EXPECT_EQ(Sum(), Expected());
    EXPECT_TRUE(WasRead()) << "cut to " << i;
  }
}

TEST_F(KeptChecksumTest, OneThatCannotBeKeptIsNoError) {
  for (int operations = 0; operations < 6; ++operations) {
    faulty_.FillDiskAfter(operations * 4);
    EXPECT_EQ(Sum(), Expected());
    faulty_.Heal();
    const std::vector<std::string> names = *fs_.ListDirectory(kDirectory);
    for (const std::string& name : names) ASSERT_TRUE(fs_.Remove(JoinPath(kDirectory, name)).ok());
  }
  options_.directory.clear();
  EXPECT_EQ(Sum(), Expected());
  EXPECT_THAT(*fs_.ListDirectory(kDirectory), SizeIs(0));
}

}  // namespace
}  // namespace lockstep

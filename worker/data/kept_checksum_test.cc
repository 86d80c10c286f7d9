#include "worker/data/kept_checksum.h"

#include <vector>

#include "common/io/crc32c.h"
#include "common/io/faulty_file_system.h"
#include "common/io/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::SizeIs;

constexpr char kDirectory[] = "run/index";

class KeptChecksumTest : public ::testing::Test {
 protected:
  KeptChecksumTest() {
    options_.directory = kDirectory;
    options_.progress = [this](const IndexProgress& progress) { progress_.push_back(progress); };
    // More than the pieces in which it is read.
    for (uint32_t i = 0; i < (5 << 20) / 2; ++i) data_.push_back(static_cast<char>(i * i >> 5));
    WriteData();
  }

  void WriteData() { ASSERT_TRUE(WriteFileAtomically(&fs_, "data", data_).ok()); }

  // From byte 7 on.
  uint32_t Sum() {
    progress_.clear();
    const auto contents = faulty_.NewRandomAccessFile("data");
    EXPECT_TRUE(contents.ok());
    const auto crc = KeptCrc32c(&faulty_, "data", **contents, 7, options_);
    EXPECT_TRUE(crc.ok()) << crc.status();
    return crc.value_or(0);
  }
  uint32_t Expected() const { return Crc32c(absl::string_view(data_).substr(7)); }
  // Whether the last Sum read the data.
  bool WasRead() const { return !progress_.empty(); }
  std::string KeptPath() {
    const auto names = fs_.ListDirectory(kDirectory);
    EXPECT_TRUE(names.ok() && names->size() == 1);
    return JoinPath(kDirectory, names->at(0));
  }

  std::string data_;
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

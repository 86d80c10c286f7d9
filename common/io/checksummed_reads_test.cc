#include "lockstep/common/io/checksummed_reads.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

// Larger than what a thread takes at a time, and an odd number.
constexpr size_t kLarge = (9 << 20) + 12345;

class ChecksummedReadsTest : public ::testing::Test {
 protected:
  ChecksummedReadsTest() {
    for (size_t i = 0; i < kLarge; ++i) contents_.push_back(static_cast<char>(i * 2654435761u >> 13));
    auto file = fs_.NewWritableFile("f").value();
    EXPECT_TRUE(file->Append(contents_).ok());
    EXPECT_TRUE(file->Close().ok());
    file_ = fs_.NewRandomAccessFile("f").value();
  }

  uint32_t CrcOf(uint64_t offset, uint64_t size) { return Crc32c(absl::string_view(contents_).substr(offset, size)); }

  MemoryFileSystem fs_;
  std::string contents_;
  std::unique_ptr<RandomAccessFile> file_;
};

TEST_F(ChecksummedReadsTest, ReadsEachRangeWithOneThreadOrMany) {
  ThreadPool pool(3);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    // Unaligned destinations.
    std::string large(kLarge + 1, '\0'), small(7, '\0');
    const std::vector<FileRange> ranges = {{file_.get(), 0, kLarge, &large[1]},
                                           {file_.get(), 100, 7, &small[0]},
                                           {file_.get(), 5, 0, nullptr},
                                           {file_.get(), 3, kLarge - 3, nullptr}};
    const std::vector<uint32_t> crcs = ReadChecksummed(ranges, threads).value();
    EXPECT_EQ(crcs, (std::vector<uint32_t>{CrcOf(0, kLarge), CrcOf(100, 7), 0, CrcOf(3, kLarge - 3)}));
    EXPECT_TRUE(large.substr(1) == contents_);
    EXPECT_EQ(large[0], '\0');
    EXPECT_EQ(small, contents_.substr(100, 7));
  }
}

TEST_F(ChecksummedReadsTest, NoRangesAreNoChecksums) { EXPECT_TRUE(ReadChecksummed({}, nullptr)->empty()); }

TEST_F(ChecksummedReadsTest, ReadsEachByteOnce) {
  FaultyFileSystem counted(&fs_);
  const auto file = counted.NewRandomAccessFile("f").value();
  const int64_t before = counted.operations();
  ASSERT_TRUE(ReadChecksummed({{file.get(), 0, 1 << 20, nullptr}}, nullptr).ok());
  EXPECT_EQ(counted.operations() - before, 4) << "of 256 KiB each";
}

TEST_F(ChecksummedReadsTest, ReadsAShortRangeAtOnceWhereverItLies) {
  constexpr size_t kBoundary = 4 << 20;
  FaultyFileSystem counted(&fs_);
  const auto file = counted.NewRandomAccessFile("f").value();
  std::vector<char> memory(3 * kBoundary);
  char* const boundary = memory.data() + 2 * kBoundary - reinterpret_cast<uintptr_t>(memory.data()) % kBoundary;
  for (const ptrdiff_t before : {1, 280, 560}) {
    const int64_t operations = counted.operations();
    EXPECT_EQ(ReadChecksummed({{file.get(), 100, 560, boundary - before}}, nullptr)->at(0), CrcOf(100, 560));
    EXPECT_EQ(counted.operations() - operations, 1) << before;
  }
}

TEST_F(ChecksummedReadsTest, ReturnsTheFirstFailedPiecesError) {
  EXPECT_TRUE(absl::IsDataLoss(ReadChecksummed({{file_.get(), 1, kLarge, nullptr}}, nullptr).status()));
  FaultyFileSystem faulty(&fs_);
  const auto file = faulty.NewRandomAccessFile("f").value();
  ThreadPool pool(3);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    for (int64_t n = 1; n <= 30; n += 7) {
      std::string out(kLarge, '\0');
      faulty.FailOperation(n, absl::DataLossError("cannot be read"));
      EXPECT_TRUE(absl::IsDataLoss(ReadChecksummed({{file.get(), 0, kLarge, &out[0]}}, threads).status())) << n;
    }
  }
}

}  // namespace
}  // namespace lockstep

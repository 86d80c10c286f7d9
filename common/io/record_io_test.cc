#include "lockstep/common/io/record_io.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordReaderTest : public ::testing::Test {
 protected:
  void Write(absl::string_view contents) { ASSERT_TRUE(WriteFileAtomically(&fs_, "f", contents).ok()); }
  std::unique_ptr<RecordReader> Open() { return RecordReader::Open(&fs_, "f").value(); }

  MemoryFileSystem fs_;
};

// The bytes that TensorFlow's TFRecordWriter writes for "foo".
TEST_F(RecordReaderTest, FramesAsTensorFlowDoes) {
  EXPECT_EQ(absl::BytesToHexString(FrameRecord("foo")), "0300000000000000b099490e666f6f618abefe");
}

TEST_F(RecordReaderTest, ReadsRecordsOneAfterTheOther) {
  const std::vector<std::string> payloads = {"first", "", std::string(100000, 'x')};
  std::string contents;
  for (const std::string& payload : payloads) contents += FrameRecord(payload);
  Write(contents);
  const auto reader = Open();
  std::vector<std::string> read;
  uint64_t offset = 0;
  while (offset < reader->size()) {
    std::string payload;
    const auto position = reader->ReadAt(offset, &payload);
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->length, payload.size());
    EXPECT_EQ(reader->SkipAt(offset)->next, position->next);
    read.push_back(payload);
    offset = position->next;
  }
  EXPECT_EQ(read, payloads);
  std::string payload;
  EXPECT_EQ(reader->ReadAt(offset, &payload).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(RecordReaderTest, DetectsAFlipOfEveryBit) {
  const std::string record = FrameRecord("payload");
  for (size_t i = 0; i < record.size() * 8; ++i) {
    std::string damaged = record;
    damaged[i / 8] ^= 1 << i % 8;
    Write(damaged);
    std::string payload;
    const absl::Status status = Open()->ReadAt(0, &payload).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "bit " << i << ": " << status;
  }
}

TEST_F(RecordReaderTest, DetectsACutAtEveryByte) {
  const std::string first = FrameRecord("first");
  const std::string second = FrameRecord("second");
  for (size_t size = 1; size < second.size(); ++size) {
    Write(first + second.substr(0, size));
    std::string payload;
    const absl::Status status = Open()->ReadAt(first.size(), &payload).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("f: the record at byte 21 is cut off"));
  }
}

TEST_F(RecordReaderTest, RefusesALengthBeyondItsLimit) {
  Write(FrameRecord(std::string(101, 'x')));
  const auto reader = RecordReader::Open(&fs_, "f", 100).value();
  std::string payload;
  const absl::Status status = reader->ReadAt(0, &payload).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 101 bytes, more than the allowed 100"));
}

// The length is far larger than the file, but its checksum is correct.
TEST_F(RecordReaderTest, AllocatesNothingForATooLongLength) {
  std::string record = FrameRecord(std::string(1 << 20, 'x'));
  Write(record.substr(0, 100));
  std::string payload;
  EXPECT_EQ(Open()->ReadAt(0, &payload).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_LT(payload.capacity(), 1000u);
}

TEST_F(RecordReaderTest, SaysThatAFileMayBeOfAnotherFormat) {
  std::string payload;
  Write("x,y\n1,2\n3,4\n5,6\n");
  EXPECT_THAT(std::string(Open()->ReadAt(0, &payload).status().message()),
              HasSubstr("; the file may hold no TFRecords"));
  Write(FrameRecord("first") + "x,y\n1,2\n3,4\n5,6\n");
  EXPECT_THAT(std::string(Open()->ReadAt(21, &payload).status().message()), ::testing::EndsWith(" is stored"));
}

TEST_F(RecordReaderTest, SaysThatAFileIsMissing) {
  EXPECT_EQ(RecordReader::Open(&fs_, "missing").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lockstep

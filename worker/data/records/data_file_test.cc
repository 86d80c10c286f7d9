#include "lockstep/worker/data/records/data_file.h"

#include <zstd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::string Zstd(const std::string& contents) {
  std::string out(ZSTD_compressBound(contents.size()), '\0');
  out.resize(ZSTD_compress(&out[0], out.size(), contents.data(), contents.size(), 3));
  return out;
}

// Converts ASCII to UTF-16.
std::string Utf16(const std::string& text, bool big_endian) {
  std::string out;
  for (const char c : text) out += big_endian ? std::string{'\0', c} : std::string{c, '\0'};
  return out;
}

class DataFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Open(const std::string& contents, DataFileKind kind = DataFileKind::kText,
                                   uint64_t max_bytes = 1000000) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "f", contents).ok());
    const auto file = OpenDataFile(&fs_, "f", kind, max_bytes);
    if (!file.ok()) return file.status();
    std::string decoded((*file)->size(), '\0');
    EXPECT_TRUE((*file)->Read(0, decoded.size(), &decoded[0]).ok());
    if (!decoded.empty()) {
      EXPECT_TRUE(absl::IsDataLoss((*file)->Read(1, decoded.size(), &decoded[0])));
    }
    EXPECT_EQ((*file)->inode(), (*fs_.NewRandomAccessFile("f"))->inode());
    return decoded;
  }

  MemoryFileSystem fs_;
};

TEST_F(DataFileTest, TakesPlainTextAsItIs) {
  for (const char* const text : {"", "a", "a,b\r\n1,2\r\n", "\xEF\xBB\xBFx\n", "K\xF6ln\n"})
    EXPECT_EQ(Open(text).value(), text);
}

TEST_F(DataFileTest, Decompresses) {
  std::string text;
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&text, i % 7, ",");
  EXPECT_EQ(Open(Gzip(text)).value(), text);
  EXPECT_EQ(Open(Zstd(text)).value(), text);
  EXPECT_EQ(Open(Zstd("one\n") + Zstd("two\n")).value(), "one\ntwo\n");
  EXPECT_EQ(Open(Gzip("one\n") + Gzip("two\n") + std::string(17, '\0')).value(), "one\ntwo\n") << "zeros are padding";
}

TEST_F(DataFileTest, NamesDamage) {
  const auto error = [&](const std::string& contents) { return std::string(Open(contents).status().message()); };
  EXPECT_THAT(error(Zstd("some text").substr(0, 12)), HasSubstr("f: the compressed file ends early, after 12 bytes"));
  std::string damaged = Zstd(std::string(1000, 'x'));
  damaged[6] ^= 0x7f;
  EXPECT_THAT(error(damaged), HasSubstr("f: "));
  EXPECT_THAT(error(Gzip("a") + std::string(3, '\0') + "b"), HasSubstr("is neither zero nor the end"));
}

TEST_F(DataFileTest, BoundsItsMemory) {
  const std::string zeros(1001, '0');
  for (const std::string& compressed : {Gzip(zeros), Zstd(zeros)}) {
    EXPECT_THAT(std::string(Open(compressed, DataFileKind::kText, 1000).status().message()),
                HasSubstr("f: has more than 1000 bytes when decoded"));
    EXPECT_TRUE(Open(compressed, DataFileKind::kText, 1001).ok());
  }
}

TEST_F(DataFileTest, ReadsUtf16) {
  const std::string text = "a,b\r\n1,2\r\n";
  EXPECT_EQ(Open("\xFF\xFE" + Utf16(text, false)).value(), text);
  EXPECT_EQ(Open("\xFE\xFF" + Utf16(text, true)).value(), text);
  EXPECT_EQ(Open(Utf16(text, false)).value(), text) << "without a mark";
  EXPECT_EQ(Open(Utf16(text, true)).value(), text);
  EXPECT_EQ(Open(Gzip("\xFF\xFE" + Utf16(text, false))).value(), text);
  EXPECT_THAT(std::string(Open("\xFF\xFE" + Utf16("ab", false) + "c").status().message()),
              HasSubstr("f: is not UTF-16LE at byte 4"));
}

TEST_F(DataFileTest, EndsLinesInLineFeeds) { EXPECT_EQ(Open("a,b\r1,2\r").value(), "a,b\n1,2\n"); }

TEST_F(DataFileTest, NamesForeignFormats) {
  EXPECT_THAT(std::string(Open("<!DOCTYPE html>\n<html>").status().message()),
              HasSubstr("f: no data can be read: it is a web"));
  EXPECT_TRUE(absl::IsDataLoss(Open("PK\x03\x04....").status()));
}

TEST_F(DataFileTest, ARecordsLengthIsNoSignature) {
  // The lengths look like the signatures of gzip and of a pickle.
  for (const size_t length : {0x088b1f, 0x0280}) {
    const std::string file = FrameRecord(std::string(length, 'x'));
    EXPECT_EQ(Open(file, DataFileKind::kTfRecord).value(), file);
    EXPECT_EQ(Open(Gzip(file), DataFileKind::kTfRecord).value(), file);
  }
}

TEST(FromUtf8OrLatin1Test, KeepsUtf8AndTurnsLatin1IntoIt) {
  EXPECT_EQ(FromUtf8OrLatin1("K\xC3\xB6ln"), "K\xC3\xB6ln");
  EXPECT_EQ(FromUtf8OrLatin1("K\xF6ln"), "K\xC3\xB6ln");
  EXPECT_EQ(FromUtf8OrLatin1("\xFF"), "\xC3\xBF");
}

}  // namespace
}  // namespace lockstep

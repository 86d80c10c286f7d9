#include "lockstep/common/io/foreign_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ForeignFileTest, NamesFormatsThatAreNoData) {
  EXPECT_THAT(ForeignFormat("\n<!DOCTYPE html><title>404</title>"), HasSubstr("web page"));
  EXPECT_THAT(ForeignFormat("\xEF\xBB\xBF<HTML lang=en>"), HasSubstr("web page"));
  EXPECT_THAT(ForeignFormat(absl::string_view("\x1f\x8b\x08\0", 4)), HasSubstr("gzipped"));
  EXPECT_THAT(ForeignFormat("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(ForeignFormat("PAR1"), HasSubstr("Parquet"));
  for (const char* const level : {"x\x01", "x\x9c", "x\xda"}) EXPECT_THAT(ForeignFormat(level), HasSubstr("zlib"));
}

TEST(ForeignFileTest, SaysNothingOfData) {
  for (const char* const text : {"", "a,b\n1,2\n", "1 1:0.5\n", "P", "<5,6\n"})
    EXPECT_THAT(ForeignFormat(text), IsEmpty());
}

TEST(ForeignFileTest, ReadsTheStartOfAFile) {
  MemoryFileSystem fs;
  ASSERT_TRUE(WriteFileAtomically(&fs, "f", "<html>").ok());
  EXPECT_THAT(ForeignFormatOf(**fs.NewRandomAccessFile("f")), HasSubstr("; it is a web page"));
  ASSERT_TRUE(WriteFileAtomically(&fs, "f", "").ok());
  EXPECT_THAT(ForeignFormatOf(**fs.NewRandomAccessFile("f")), IsEmpty());
}

}  // namespace
}  // namespace lockstep

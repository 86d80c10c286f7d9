#include "lockstep/cli/report/input_files.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

config::v1::RunSpec ConfigOf(const char* text) {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  return config;
}

TEST(InputFilesTest, NamesTheSplitAndTheMissingFile) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs, "/d/images", "").ok());
  const config::v1::RunSpec config = ConfigOf(R"(input {
    split { name: "made" synthetic {} }
    split { name: "train" idx { images: "/d/images" labels: "/d/labels" } } })");
  const absl::Status status = CheckInputFiles(&fs, config);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "input.split[1]: there is no file /d/labels");
  ASSERT_TRUE(WriteFileAtomically(&fs, "/d/labels", "").ok());
  EXPECT_TRUE(CheckInputFiles(&fs, config).ok());
}

TEST(InputFilesTest, SaysWhenItCannotKnow) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  fs.FailOperation(1, absl::PermissionDeniedError("Permission denied"));
  const absl::Status status = CheckInputFiles(&fs, ConfigOf("input { split { csv { file: '/d/a' } } }"));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), "input.split[0]: Permission denied (operation 1, /d/a)");
}

TEST(InputFilesTest, KnowsTheFilesOfEveryFormat) {
  MemoryFileSystem fs;
  for (const char* source : {"csv { file: 'f' }", "libsvm { file: 'f' }", "tfrecord { file: 'f' }",
                             "registered { file: 'f' }", "idx { images: 'f' labels: 'f' }", "npz { file: 'f' }",
                             "npy { features: 'f' labels: 'f' weights: 'f' }", "csv { file: 'f-*.csv' }"}) {
    const std::string text = std::string("input { split { ") + source + " } }";
    EXPECT_EQ(CheckInputFiles(&fs, ConfigOf(text.c_str())).code(), absl::StatusCode::kNotFound) << source;
  }
}

}  // namespace
}  // namespace lockstep

#include "lockstep/common/checkpoint/formats/tensor_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorFileTest : public ::testing::Test {
 protected:
  TensorFileTest() {
    auto writer = BundleWriter::Create(&fs_, "c").value();
    EXPECT_TRUE(writer->Add("u", v1::DT_UINT8, {3}, "abc").ok());
    EXPECT_TRUE(writer->Add("w", v1::DT_FLOAT, {2, 1}, "12345678").ok());
    EXPECT_TRUE(writer->Add("step", v1::DT_INT64, {}, "87654321").ok());
    EXPECT_TRUE(writer->Add("b", v1::DT_BFLOAT16, {1}, "xy").ok());
    EXPECT_TRUE(writer->Finish().ok());
  }

  MemoryFileSystem fs_;
};

TEST_F(TensorFileTest, EveryFormatKeepsNamesTypesAndBytes) {
  const auto source = OpenTensors(&fs_, "c").value();
  for (const char* name : {"safetensors", "npz"}) {
    const std::string path = absl::StrCat("out.", name);
    const TensorFileFormat format = ParseTensorFileFormat(name).value();
    EXPECT_EQ(FormatOfPath(path), format);
    EXPECT_FALSE(TensorsExist(&fs_, path).value());
    ASSERT_TRUE(WriteTensorFile(&fs_, path, format, *source, {{"w", "u", "step"}, {}}).ok());
    EXPECT_TRUE(TensorsExist(&fs_, path).value());
    const std::string bytes = ReadFile(&fs_, path).value();
    ASSERT_TRUE(WriteTensorFile(&fs_, path, format, *source, {{"step", "w", "u"}, {}}).ok());
    EXPECT_EQ(ReadFile(&fs_, path).value(), bytes) << "the order of the names does not matter";
    const auto written = OpenTensors(&fs_, path);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_THAT((*written)->names(), ElementsAre("step", "u", "w"));
    for (const std::string& tensor : (*written)->names()) {
      EXPECT_EQ((*written)->Describe(tensor)->dtype, source->Describe(tensor)->dtype);
      EXPECT_EQ((*written)->Describe(tensor)->shape, source->Describe(tensor)->shape);
      EXPECT_EQ((*written)->Read(tensor)->bytes(), source->Read(tensor)->bytes());
    }
  }
}

TEST_F(TensorFileTest, AFileOfAnotherFormatIsNamed) {
  ASSERT_TRUE(fs_.CreateDirectory("/d").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/d/w.pth", "PK\x03\x04").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/d/w.h5", "\x89HDF").ok());
  EXPECT_THAT(std::string(NoSuchCheckpoint(&fs_, "/d/w.pth", "").message()),
              HasSubstr("; it is a ZIP archive, such as "));
  EXPECT_THAT(std::string(NoSuchCheckpoint(&fs_, "/d/w.h5", "").message()), HasSubstr("; it is an HDF5 file: "));
}

TEST_F(TensorFileTest, ADirectoryIsNoCheckpoint) {
  ASSERT_TRUE(fs_.CreateDirectory("/d/run").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/d/run/model.ckpt-7.index", "").ok());
  EXPECT_EQ(NoSuchCheckpoint(&fs_, "/d/run", "").message(),
            "there is no checkpoint /d/run: it is a directory; name a checkpoint in it; the directory has "
            "/d/run/model.ckpt-7");
}

TEST_F(TensorFileTest, AFailureLeavesTheOldFile) {
  const auto source = OpenTensors(&fs_, "c").value();
  ASSERT_TRUE(WriteFileAtomically(&fs_, "old.npz", "old").ok());
  const absl::Status type = WriteTensorFile(&fs_, "old.npz", TensorFileFormat::kNpz, *source, {{"w", "b"}, {}});
  EXPECT_EQ(type.message(), "b: NumPy has no type bfloat16");
  EXPECT_TRUE(absl::IsNotFound(WriteTensorFile(&fs_, "old.npz", TensorFileFormat::kNpz, *source, {{"none"}, {}})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteTensorFile(&fs_, "old.npz", TensorFileFormat::kNpz, *source, {{"w", "w"}, {}})));
  EXPECT_EQ(ReadFile(&fs_, "old.npz").value(), "old");
  EXPECT_FALSE(fs_.Exists("old.npz.tmp").value());
  EXPECT_TRUE(WriteTensorFile(&fs_, "b.safetensors", TensorFileFormat::kSafetensors, *source, {{"b"}, {}}).ok());
}

TEST_F(TensorFileTest, AnotherNameIsACheckpoints) {
  EXPECT_FALSE(FormatOfPath("runs/mlp/model.ckpt-7").has_value());
  EXPECT_FALSE(FormatOfPath("npz").has_value());
  EXPECT_TRUE(TensorsExist(&fs_, "c").value());
  EXPECT_FALSE(TensorsExist(&fs_, "d").value());
  EXPECT_TRUE(absl::IsNotFound(OpenTensors(&fs_, "d").status()));
  EXPECT_TRUE(absl::IsNotFound(OpenTensors(&fs_, "d.npz").status()));
  EXPECT_TRUE(absl::IsNotFound(OpenTensors(&fs_, "d.safetensors").status()));
  EXPECT_THAT(std::string(ParseTensorFileFormat("h5").status().message()), HasSubstr("safetensors and npz"));
}

}  // namespace
}  // namespace lockstep

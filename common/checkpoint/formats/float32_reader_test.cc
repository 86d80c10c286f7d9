#include "lockstep/common/checkpoint/formats/float32_reader.h"

#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/io/testing/bytes_of.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class Float32ReaderTest : public ::testing::Test {
 protected:
  Float32ReaderTest() {
    auto writer = BundleWriter::Create(&fs_, "c").value();
    EXPECT_TRUE(writer->Add("b", v1::DT_BFLOAT16, {2}, BytesOf<uint16_t>({0x3f80, 0xc040})).ok());
    EXPECT_TRUE(writer->Add("d", v1::DT_DOUBLE, {2, 1}, BytesOf<double>({1.0 / 3, 1e300})).ok());
    EXPECT_TRUE(writer->Add("f", v1::DT_FLOAT, {1}, BytesOf<float>({2.5f})).ok());
    EXPECT_TRUE(writer->Add("h", v1::DT_HALF, {1}, BytesOf<uint16_t>({0x3800})).ok());
    EXPECT_TRUE(writer->Add("i", v1::DT_INT64, {}, BytesOf<int64_t>({7})).ok());
    EXPECT_TRUE(writer->Finish().ok());
    const auto source = BundleReader::Open(&fs_, "c").value();
    EXPECT_TRUE(
        WriteTensorFile(&fs_, "w.safetensors", TensorFileFormat::kSafetensors, *source, {source->names(), {}}).ok());
  }

  std::vector<float> Floats(const TensorReader& reader, const char* name) {
    const Tensor tensor = reader.Read(name).value();
    EXPECT_EQ(tensor.dtype(), v1::DT_FLOAT);
    std::vector<float> values(tensor.num_elements());
    std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
    return values;
  }

  MemoryFileSystem fs_;
};

TEST_F(Float32ReaderTest, FloatsOfAFileOfWeightsAreFloat32) {
  const auto reader = OpenWeights(&fs_, "w.safetensors").value();
  EXPECT_EQ(reader->prefix(), "w.safetensors");
  EXPECT_THAT(reader->names(), ElementsAre("b", "d", "f", "h", "i"));
  EXPECT_THAT(Floats(*reader, "b"), ElementsAre(1.0f, -3.0f));
  EXPECT_THAT(Floats(*reader, "d"), ElementsAre(1.0f / 3, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(reader->Describe("d")->shape.ToString(), "[2,1]");
  EXPECT_EQ(reader->Describe("d")->bytes, 8u);
  EXPECT_THAT(Floats(*reader, "f"), ElementsAre(2.5f));
  EXPECT_THAT(Floats(*reader, "h"), ElementsAre(0.5f));
  EXPECT_EQ(reader->Describe("i")->dtype, v1::DT_INT64);
  EXPECT_EQ(reader->Read("i")->bytes(), BytesOf<int64_t>({7}));
  EXPECT_TRUE(reader->Verify().ok());
  EXPECT_TRUE(absl::IsNotFound(reader->Read("none").status()));
}

TEST_F(Float32ReaderTest, ACheckpointKeepsItsTypes) {
  EXPECT_EQ(OpenWeights(&fs_, "c").value()->Describe("d")->dtype, v1::DT_DOUBLE);
  EXPECT_TRUE(absl::IsNotFound(OpenWeights(&fs_, "w.npz").status()));
}

}  // namespace
}  // namespace lockstep

#include "lockstep/worker/data/formats/numpy.h"

#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/npz_writer.h"
#include "lockstep/common/io/testing/bytes_of.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NumpyTest : public ::testing::Test {
 protected:
  NumpyTest() {
    EXPECT_TRUE(fs_.CreateDirectory("/d").ok());
    options_.fs = &fs_;
    options_.base_directory = "/d";
  }

  void WriteNpy(const std::string& name, v1::DataType dtype, const Shape& shape, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "/d/" + name, EncodeNpyHeader(dtype, shape).value() + content).ok());
  }
  struct Array {
    std::string name;
    v1::DataType dtype;
    Shape shape;
    std::string content;
  };
  void WriteNpz(const std::vector<Array>& arrays) {
    auto file = fs_.NewWritableFile("/d/a.npz").value();
    NpzWriter writer(file.get());
    for (const Array& array : arrays) {
      ASSERT_TRUE(writer.Add(array.name, array.dtype, array.shape, array.content).ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
    ASSERT_TRUE(file->Close().ok());
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& source, const std::string& input = "") {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat("split { ", source, " } ", input), &config));
    return OpenDataset(config, "", 1, options_);
  }
  absl::Status ErrorOf(const std::string& source) { return Open(source).status(); }
  // Reads all examples.
  Batch Read(const std::string& source, const std::string& input = "") {
    const auto dataset = Open(source, input);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    Batch batch;
    if (!dataset.ok()) return batch;
    spec_ = (*dataset)->spec();
    std::vector<int64_t> indices((*dataset)->size());
    std::iota(indices.begin(), indices.end(), 0);
    EXPECT_TRUE((*dataset)->Read(indices, &batch).ok());
    return batch;
  }
  // Reads two examples whose features are `content`.
  Batch ReadFeature(v1::DataType dtype, const std::string& content) {
    WriteNpz({{"x", dtype, {2, 2}, content}, {"y", v1::DT_INT64, {2}, BytesOf<int64_t>({0, 1})}});
    return Read("npz { file: 'a.npz' }");
  }

  MemoryFileSystem fs_;
  DatasetOptions options_;
  ExampleSpec spec_;
};

TEST_F(NumpyTest, ReadsFeaturesLabelsAndWeights) {
  WriteNpz({{"images", v1::DT_FLOAT, {3, 1, 2}, BytesOf<float>({1, 2, 3, 4, 5, 6})},
            {"classes", v1::DT_UINT8, {3, 1}, BytesOf<uint8_t>({2, 0, 4})},
            {"weights", v1::DT_DOUBLE, {3}, BytesOf<double>({0.5, 0, 2})}});
  const auto dataset = Open("npz { file: 'a.npz' features: 'images' labels: 'classes' weights: 'weights' }");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().features_shape, Shape({1, 2}));
  EXPECT_EQ((*dataset)->spec().classes, 5);
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_TRUE((*dataset)->has_labels());
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({2, 0, 1, 2}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(4, 2, 0, 4));
  EXPECT_THAT(batch.weights.flat<float>(), ElementsAre(2, 0.5, 0, 2));
}

TEST_F(NumpyTest, TypesBecomeNumbersOrIds) {
  EXPECT_THAT(ReadFeature(v1::DT_DOUBLE, BytesOf<double>({0.1, -1e30, 0, 7})).features.flat<float>(),
              ElementsAre(0.1f, -1e30f, 0, 7));
  EXPECT_THAT(ReadFeature(v1::DT_HALF, BytesOf<uint16_t>({0x3c00, 0xc000, 0, 1})).features.flat<float>(),
              ElementsAre(1, -2, 0, 5.9604645e-08f));
  EXPECT_THAT(ReadFeature(v1::DT_UINT8, BytesOf<uint8_t>({0, 255, 51, 0})).features.flat<float>(),
              ElementsAre(0, 1, 0.2f, 0));
  EXPECT_THAT(ReadFeature(v1::DT_BOOL, BytesOf<uint8_t>({0, 1, 1, 0})).features.flat<float>(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(ReadFeature(v1::DT_INT64, BytesOf<int64_t>({0, -1, 2147483647, 5})).features.flat<int32_t>(),
              ElementsAre(0, -1, 2147483647, 5));
  EXPECT_THAT(ReadFeature(v1::DT_INT16, BytesOf<int16_t>({0, -1, 300, 5})).features.flat<int32_t>(),
              ElementsAre(0, -1, 300, 5));
  EXPECT_EQ(spec_.features_dtype, v1::DT_INT32);
}

TEST_F(NumpyTest, FloatLabelsAreTargets) {
  WriteNpy("x.npy", v1::DT_FLOAT, {2}, BytesOf<float>({1, 2}));
  WriteNpy("y.npy", v1::DT_DOUBLE, {2, 2}, BytesOf<double>({1, 2, 3, 4}));
  const Batch batch = Read("npy { features: 'x.npy' labels: 'y.npy' }", "normalization { mean: 1 stddev: 2 }");
  EXPECT_EQ(spec_.features_shape, Shape({1}));
  EXPECT_EQ(spec_.labels_shape, Shape({2}));
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0, 0.5));
  EXPECT_THAT(batch.labels.flat<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(NumpyTest, LargeFeaturesStayOnDiskVerified) {
  const std::string content = BytesOf<float>({1, 2, 3, 4, 5, 6, 7, 8});
  WriteNpy("x.npy", v1::DT_FLOAT, {4, 2}, content);
  WriteNpy("y.npy", v1::DT_INT32, {4}, BytesOf<int32_t>({0, 1, 0, 1}));
  config::v1::InputConfig::Npy npy;
  npy.set_features("/d/x.npy");
  npy.set_labels("/d/y.npy");
  NumpyOptions options;
  const auto held = OpenNpyDataset(&fs_, npy, options);
  options.held_bytes = 16;
  const auto on_disk = OpenNpyDataset(&fs_, npy, options);
  ASSERT_TRUE(on_disk.ok()) << on_disk.status();
  EXPECT_EQ((*held)->digest().crc32c(), (*on_disk)->digest().crc32c());
  Batch batch;
  ASSERT_TRUE((*on_disk)->Read({3, 0, 1}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(7, 8, 1, 2, 3, 4));
  fs_.FlipBits("/d/x.npy", 128 + 9, 1);
  const absl::Status changed = (*on_disk)->Read({1}, &batch);
  EXPECT_TRUE(absl::IsDataLoss(changed));
  EXPECT_THAT(std::string(changed.message()), HasSubstr("/d/x.npy: example 1 at byte 136 is no longer"));
}

TEST_F(NumpyTest, LabelsMayBeOptional) {
  WriteNpz({{"x", v1::DT_FLOAT, {2, 1}, BytesOf<float>({1, 2})}});
  const absl::Status status = ErrorOf("npz { file: 'a.npz' }");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "/d/a.npz has no array y, it has x; npz { features labels weights } name the arrays");
  options_.labels_optional = true;
  const auto dataset = Open("npz { file: 'a.npz' weights: 'w' }");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_FALSE((*dataset)->has_labels());
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({1, 0}, &batch).ok());
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 0));
  EXPECT_EQ((*dataset)->spec().classes, 1);
}

TEST_F(NumpyTest, TheDigestIsOfTheExamples) {
  const auto digest = [&](v1::DataType dtype, const std::string& x, const std::vector<int64_t>& y) {
    WriteNpz({{"x", dtype, {2, 1}, x}, {"y", v1::DT_INT64, {2}, BytesOf(y)}});
    return Open("npz { file: 'a.npz' }").value()->digest().crc32c();
  };
  const std::string x = BytesOf<float>({1, 2});
  const uint32_t first = digest(v1::DT_FLOAT, x, {0, 1});
  EXPECT_EQ(digest(v1::DT_FLOAT, x, {0, 1}), first);
  EXPECT_NE(digest(v1::DT_FLOAT, BytesOf<float>({2, 1}), {0, 1}), first);
  EXPECT_NE(digest(v1::DT_FLOAT, x, {1, 0}), first);
  EXPECT_NE(digest(v1::DT_INT32, x, {0, 1}), first);
}

TEST_F(NumpyTest, RefusesRowsThatAreNoExamples) {
  const auto error = [&](const std::vector<Array>& arrays, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    WriteNpz(arrays);
    const absl::Status status = ErrorOf("npz { file: 'a.npz' weights: 'w' }");
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  };
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const Array x = {"x", v1::DT_FLOAT, {2, 1}, BytesOf<float>({1, 2})};
  const Array y = {"y", v1::DT_INT64, {2}, BytesOf<int64_t>({0, 1})};
  const Array w = {"w", v1::DT_FLOAT, {2}, BytesOf<float>({1, 1})};
  EXPECT_EQ(error({x, y}, kInvalid),
            "/d/a.npz has no array w, it has x, y; npz { features labels weights } name the arrays");
  EXPECT_EQ(error({x, {"y", v1::DT_INT64, {1}, BytesOf<int64_t>({0})}, w}),
            "/d/a.npz: y has the shape [1], /d/a.npz: x has 2 examples");
  EXPECT_EQ(error({x, {"y", v1::DT_INT64, {2}, BytesOf<int64_t>({0, -1})}, w}),
            "/d/a.npz: y: example 1 has the class -1, must be 0 or greater; numpy.unique(classes, "
            "return_inverse=True)[1] numbers "
            "them from 0");
  EXPECT_THAT(error({x, {"y", v1::DT_INT64, {2}, BytesOf<int64_t>({0, int64_t{1} << 32})}, w}),
              HasSubstr("a number that is not an integer of 32 bits"));
  EXPECT_EQ(error({x, {"y", v1::DT_INT64, {2, 2}, BytesOf<int64_t>({0, 1, 0, 1})}, w}, kInvalid),
            "/d/a.npz: y is int64[2,2], must be a class an example, or float32 targets");
  EXPECT_EQ(error({x, y, {"w", v1::DT_FLOAT, {2}, BytesOf<float>({1, -1})}}),
            "/d/a.npz: w: example 1 has the weight -1, must be 0 or greater");
  EXPECT_THAT(
      error({{"x", v1::DT_DOUBLE, {2}, BytesOf<double>({1, 1e300})}, y, w}),
      HasSubstr("/d/a.npz: x: example 1 has a number that is not finite in float32; numpy.nan_to_num replaces"));
  EXPECT_THAT(error({{"x", v1::DT_FLOAT, {0, 3}, ""}, y, w}, kInvalid), HasSubstr("with one at least"));
  EXPECT_THAT(error({{"x", v1::DT_FLOAT, {}, BytesOf<float>({1})}, y, w}, kInvalid),
              HasSubstr("x is float32[], must be"));
}

}  // namespace
}  // namespace lockstep

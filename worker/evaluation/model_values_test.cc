#include "lockstep/worker/evaluation/model_values.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::ModelSpec Spec(const std::string& text) {
  v1::ModelSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

class ModelValuesTest : public ::testing::Test {
 protected:
  ModelValuesTest() {
    EXPECT_TRUE(fs_.CreateDirectory("run").ok());
    auto writer = *BundleWriter::Create(&fs_, "run/model.ckpt-7");
    Add(writer.get(), "global_step", Tensor::FromValues<int64_t>({}, {7}));
    Add(writer.get(), "kernel", Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    Add(writer.get(), "kernel/Momentum", Tensor::FromValues<float>({2, 3}, {0, 0, 0, 0, 0, 0}));
    Add(writer.get(), "kernel/ExponentialMovingAverage", Tensor::FromValues<float>({2, 3}, {6, 5, 4, 3, 2, 1}));
    Add(writer.get(), "bias", Tensor::FromValues<float>({3}, {7, 8, 9}));
    Add(writer.get(), "count", Tensor::FromValues<int32_t>({1}, {5}));
    EXPECT_TRUE(writer->Finish().ok());
    reader_ = *BundleReader::Open(&fs_, "run/model.ckpt-7");
  }

  static void Add(BundleWriter* writer, const std::string& name, const Tensor& tensor) {
    EXPECT_TRUE(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()).ok());
  }

  // Expects loading to fail with `code` and a message that contains `text`.
  void ExpectError(const std::string& spec, absl::StatusCode code, const std::string& text) {
    const absl::Status status = LoadModelValues(*reader_, Spec(spec)).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  MemoryFileSystem fs_;
  std::unique_ptr<BundleReader> reader_;
};

TEST_F(ModelValuesTest, LoadsVariablesInTheModelsOrder) {
  absl::StatusOr<ModelValues> loaded =
      LoadModelValues(*reader_, Spec("variables { name: 'bias' dtype: DT_FLOAT shape: 3 } "
                                     "variables { name: 'kernel' dtype: DT_FLOAT shape: 2 shape: 3 }"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ModelValues values = *std::move(loaded);
  ASSERT_EQ(values.view().size(), 2);
  EXPECT_THAT(absl::MakeConstSpan(values.view()[0], 3), ElementsAre(7, 8, 9));
  EXPECT_THAT(absl::MakeConstSpan(values.view()[1], 6), ElementsAre(1, 2, 3, 4, 5, 6));
  for (const float* value : values.view()) EXPECT_EQ(reinterpret_cast<uintptr_t>(value) % kTensorAlignment, 0);
}

TEST_F(ModelValuesTest, ReadsIntegersInTheirType) {
  const auto values = LoadModelValues(*reader_, Spec("variables { name: 'count' dtype: DT_INT32 shape: 1 }"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*ValueAs<int32_t>(values->view(), 0), 5);
  ExpectError("variables { name: 'count' dtype: DT_INT64 shape: 1 }", absl::StatusCode::kInvalidArgument,
              "count is int32[1], the model declares int64[1]");
}

TEST_F(ModelValuesTest, NamesTheVariableMissingInCheckpoint) {
  ExpectError("variables { name: 'hidden/kernel' dtype: DT_FLOAT shape: 3 }", absl::StatusCode::kNotFound,
              "checkpoint run/model.ckpt-7 lacks the model's variable \"hidden/kernel\" [3]");
}

TEST_F(ModelValuesTest, NamesBothShapesAndTypes) {
  ExpectError("variables { name: 'kernel' dtype: DT_FLOAT shape: 3 shape: 2 }", absl::StatusCode::kInvalidArgument,
              "checkpoint run/model.ckpt-7: kernel is float32[2,3], the model declares float32[3,2]");
  ExpectError("variables { name: 'count' dtype: DT_FLOAT shape: 1 }", absl::StatusCode::kInvalidArgument,
              "count is int32[1], the model declares float32[1]");
}

TEST_F(ModelValuesTest, NoticesADamagedCheckpoint) {
  // Tensors are stored in the order in which they were added: the step's 8 bytes, then the kernel. Byte 8 is in the
  // kernel.
  fs_.FlipBits("run/model.ckpt-7.data-00000-of-00001", 8, 1);
  ExpectError("variables { name: 'kernel' dtype: DT_FLOAT shape: 2 shape: 3 }", absl::StatusCode::kDataLoss, "kernel");
  EXPECT_TRUE(LoadModelValues(*reader_, Spec("variables { name: 'bias' dtype: DT_FLOAT shape: 3 }")).ok());
}

TEST_F(ModelValuesTest, ReadsTheGlobalStep) { EXPECT_EQ(LoadGlobalStep(*reader_).value(), 7); }

TEST_F(ModelValuesTest, ReadsTheAveragesOfTrainedVariables) {
  const v1::ModelSpec spec = Spec(R"(
    variables { name: "kernel" dtype: DT_FLOAT shape: 2 shape: 3 trainable: true }
    variables { name: "bias" dtype: DT_FLOAT shape: 3 })");
  const auto values = LoadModelValues(*reader_, spec, ValueSource::kMovingAverages);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->tensors()[0].flat<float>(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(values->tensors()[1].flat<float>(), ElementsAre(7, 8, 9)) << "it is not trained";
  const auto partial = LoadModelValues(*reader_, Spec(R"(
    variables { name: "kernel" dtype: DT_FLOAT shape: 2 shape: 3 trainable: true }
    variables { name: "bias" dtype: DT_FLOAT shape: 3 trainable: true })"),
                                       ValueSource::kMovingAverages);
  ASSERT_TRUE(partial.ok()) << partial.status();
  EXPECT_THAT(partial->tensors()[1].flat<float>(), ElementsAre(7, 8, 9)) << "its group keeps none";
  const absl::Status none =
      LoadModelValues(*reader_, Spec(R"(variables { name: "bias" dtype: DT_FLOAT shape: 3 trainable: true })"),
                      ValueSource::kMovingAverages)
          .status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("the run keeps none"));
}

}  // namespace
}  // namespace lockstep

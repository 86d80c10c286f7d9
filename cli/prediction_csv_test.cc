#include "cli/prediction_csv.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

Tensor Floats(Shape shape, std::vector<float> values) {
  return Tensor::FromValues<float>(std::move(shape), absl::MakeConstSpan(values));
}

TEST(PredictionCsvTest, WritesTheClassOfTheGreatestOutput) {
  ExampleSpec spec;
  spec.classes = 3;
  Batch batch;
  batch.size = 2;
  const std::vector<int32_t> labels = {2, 0};
  batch.labels = Tensor::FromValues<int32_t>(Shape({2}), absl::MakeConstSpan(labels));
  const Tensor output = Floats(Shape({2, 3}), {0.5f, -1, 2.25f, 1, 1, 0.1f});
  const PredictionCsv csv(spec);
  EXPECT_EQ(csv.Titles(output), "example,label,prediction,output_0,output_1,output_2\n");
  EXPECT_EQ(csv.Rows(256, batch, output),
            "256,2,2,0.5,-1,2.25\n"
            "257,0,0,1,1,0.100000001\n");
}

TEST(PredictionCsvTest, TakesTheSignOfASingleOutput) {
  ExampleSpec spec;
  spec.classes = 2;
  Batch batch;
  batch.size = 2;
  const std::vector<int32_t> labels = {1, 1};
  batch.labels = Tensor::FromValues<int32_t>(Shape({2}), absl::MakeConstSpan(labels));
  EXPECT_EQ(PredictionCsv(spec).Rows(0, batch, Floats(Shape({2, 1}), {0.5f, -0.5f})), "0,1,1,0.5\n1,1,0,-0.5\n");
}

TEST(PredictionCsvTest, WritesTargetsBesideOutputs) {
  ExampleSpec spec;
  spec.labels_dtype = DT_FLOAT;
  spec.labels_shape = Shape({2});
  Batch batch;
  batch.size = 1;
  batch.labels = Floats(Shape({1, 2}), {1, 2});
  const Tensor output = Floats(Shape({1, 2}), {1.5f, 1e-20f});
  EXPECT_EQ(PredictionCsv(spec).Titles(output), "example,label_0,label_1,output_0,output_1\n");
  EXPECT_EQ(PredictionCsv(spec).Rows(0, batch, output), "0,1,2,1.5,9.99999968e-21\n");
}

}  // namespace
}  // namespace lockstep

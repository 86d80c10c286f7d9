#include "lockstep/train/session/train_op.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(TrainOpTest, AnotherConfigurationKeepsModelAndTransform) {
  TrainOp op = *CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
    input { split { name: "train" synthetic { examples: 16 shape: 4 classes: 2 } } batch_size: 4 }
    optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 5 })");
  op.make_workload = [](const config::v1::RunSpec&) { return absl::UnimplementedError("made"); };
  op.transform_model = [](std::unique_ptr<Model>) { return absl::UnimplementedError("transformed"); };
  config::v1::RunSpec longer = op.spec;
  longer.mutable_training()->set_steps(7);
  longer.mutable_training()->clear_replicas_to_aggregate();
  const auto other = op.WithSpec(longer);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->spec.training().steps(), 7);
  EXPECT_EQ(other->spec.training().replicas_to_aggregate(), 1) << "defaults are filled in";
  EXPECT_EQ(other->make_workload(other->spec).status().message(), "made");
  EXPECT_EQ(other->transform_model(nullptr).status().message(), "transformed");
  EXPECT_EQ(op.spec.training().steps(), 5);
  longer.mutable_training()->set_steps(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(op.WithSpec(longer).status()));
}

TEST(TrainOpTest, OpsDifferByModelAndFunctions) {
  const TrainOp op = *CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
    input { split { name: "train" synthetic { examples: 16 shape: 4 classes: 2 } } batch_size: 4 }
    optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 5 })");
  TrainOp other = op;
  other.spec.mutable_training()->set_steps(7);
  EXPECT_TRUE(CheckSameOp(op, other).ok()) << "the length is the session's";
  EXPECT_TRUE(CheckSameOp(op, TrainOp()).ok()) << "the session's own";
  other.spec.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(3);
  EXPECT_THAT(std::string(CheckSameOp(op, other).message()),
              ::testing::HasSubstr("model.layer[0].dense.units: 2 -> 3"));
  other = op;
  other.transform_model = [](std::unique_ptr<Model> model) { return model; };
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSameOp(op, other)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSameOp(other, op)));
  other = op;
  other.make_workload = [](const config::v1::RunSpec&) { return absl::UnimplementedError("made"); };
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSameOp(op, other)));
}

}  // namespace
}  // namespace lockstep::train

#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class WarmStartPlanTest : public ::testing::Test {
 protected:
  using Tensors = std::vector<std::pair<std::string, Shape>>;

  void Write(const Tensors& tensors) {
    ASSERT_TRUE(fs_.CreateDirectory("d").ok());
    auto writer = BundleWriter::Create(&fs_, "d/old").value();
    for (const auto& [name, shape] : tensors) {
      const std::string content(static_cast<size_t>(shape.num_elements()) * sizeof(float), '\0');
      ASSERT_TRUE(writer->Add(name, v1::DT_FLOAT, shape, content).ok());
    }
    ASSERT_TRUE(writer->Finish().ok());
  }

  absl::StatusOr<WarmStartPlan> Plan(const std::string& rules, const Tensors& variables) {
    config::v1::WarmStartVariables config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(rules, &config)) << rules;
    v1::ModelSpec model;
    for (const auto& [name, shape] : variables) {
      v1::VariableSpec* const variable = model.add_variables();
      variable->set_name(name);
      for (const int64_t dim : shape.dims()) variable->add_shape(dim);
    }
    return PlanWarmStart(*BundleReader::Open(&fs_, "d/old").value(), WarmStartRules::Create(config).value(), model);
  }

  MemoryFileSystem fs_;
};

TEST_F(WarmStartPlanTest, LoadsWhatItFindsAndReportsTheRest) {
  Write({{"fc1/weights", {2, 3}}, {"fc1/biases", {3}}, {"fc2/weights", {3, 1}}, {"global_step", {}}, {"extra", {1}}});
  const auto plan = Plan(R"(rename { variable: "(.*)/kernel" key: "\\1/weights" } exclude: "fc2")",
                         {{"fc1/kernel", {2, 3}}, {"fc1/bias", {3}}, {"fc2/kernel", {3, 2}}, {"extra", {1}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->loads.size(), 2u);
  EXPECT_EQ(plan->loads[0].variable, 0);
  EXPECT_EQ(plan->loads[0].key, "fc1/weights");
  EXPECT_FALSE(plan->loads[0].reshaped);
  EXPECT_EQ(plan->loads[1].variable, 3);
  EXPECT_EQ(plan->report,
            "warm start from d/old: 2 of 4 variables\n"
            "  fc1/kernel[2,3] from fc1/weights\n"
            "  extra[1]\n"
            "  initial value, not in the checkpoint: fc1/bias\n"
            "  initial value, not to be loaded: fc2/kernel\n"
            "  not used of the checkpoint: fc1/biases, fc2/weights");
}

TEST_F(WarmStartPlanTest, AFileOfWeightsStartsARunAsACheckpointDoes) {
  Write({{"fc1/weights", {2, 3}}, {"extra", {1}}});
  v1::ModelSpec model;
  v1::VariableSpec* const variable = model.add_variables();
  variable->set_name("fc1/kernel");
  for (const int64_t dim : {2, 3}) variable->add_shape(dim);
  config::v1::CheckpointConfig config;
  auto* const rename = config.mutable_warm_start_variables()->add_rename();
  rename->set_variable("(.*)/kernel");
  rename->set_key("\\1/weights");
  for (const TensorFileFormat format : {TensorFileFormat::kSafetensors, TensorFileFormat::kNpz}) {
    config.set_warm_start(absl::StrCat("d/old.", NameOf(format)));
    EXPECT_TRUE(absl::IsNotFound(OpenWarmStart(&fs_, config, model).status()));
    const auto source = BundleReader::Open(&fs_, "d/old").value();
    ASSERT_TRUE(WriteTensorFile(&fs_, config.warm_start(), format, *source, {source->names(), {}}).ok());
    const auto start = OpenWarmStart(&fs_, config, model);
    ASSERT_TRUE(start.ok()) << start.status();
    EXPECT_EQ(start->plan.report, absl::StrCat("warm start from ", config.warm_start(),
                                               ": 1 of 1 variables\n"
                                               "  fc1/kernel[2,3] from fc1/weights\n"
                                               "  not used of the checkpoint: extra"));
    ASSERT_TRUE(WriteFileAtomically(&fs_, config.warm_start(), "damaged").ok());
    EXPECT_THAT(std::string(OpenWarmStart(&fs_, config, model).status().message()),
                HasSubstr(absl::StrCat("checkpoint.warm_start: ", config.warm_start(), ": no ")));
  }
}

TEST_F(WarmStartPlanTest, OneTensorMayStartSeveralVariables) {
  Write({{"shared", {2}}});
  const auto plan = Plan("rename { variable: '[ab]' key: 'shared' }", {{"a", {2}}, {"b", {2}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->loads.size(), 2u);
  EXPECT_EQ(plan->loads[1].key, "shared");
}

// WARM-02, WARM-08
TEST_F(WarmStartPlanTest, WhatIsRequiredMustBeThere) {
  Write({{"v0", {1}}, {"v1", {1}}});
  const absl::Status status =
      Plan("require_all: true rename { variable: 'v2' key: 'v0_fake' }", {{"v0", {1}}, {"v2", {1}}, {"v3", {1}}})
          .status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "d/old lacks v2 (v0_fake), v3");
  EXPECT_TRUE(Plan("require_all: true exclude: 'v[23]'", {{"v0", {1}}, {"v2", {1}}, {"v3", {1}}}).ok());
}

// WARM-06, WARM-07
TEST_F(WarmStartPlanTest, ReshapesOnlyWhenAskedToAndWithAsManyElements) {
  Write({{"v0", {1, 2}}});
  const absl::Status status = Plan("", {{"v0", {2, 1}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "checkpoint d/old: v0 is float32[1,2], the model declares float32[2,1]");
  const auto plan = Plan("reshape: true", {{"v0", {2, 1}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->loads[0].reshaped);
  EXPECT_THAT(plan->report, HasSubstr("\n  v0[2,1], reshaped from [1,2]"));
  EXPECT_THAT(std::string(Plan("reshape: true", {{"v0", {3}}}).status().message()), HasSubstr("declares float32[3]"));
}

TEST_F(WarmStartPlanTest, AStartThatLoadsNothingIsAnError) {
  Write({{"v0", {1}}});
  EXPECT_EQ(Plan("", {{"x", {1}}}).status().message(),
            "d/old has none of the model's variables that are to be loaded, x for one");
  EXPECT_EQ(Plan("exclude: 'v'", {{"v0", {1}}}).status().message(),
            "d/old has none of the model's variables that are to be loaded");
}

TEST_F(WarmStartPlanTest, AReportOfManyNamesIsCut) {
  Tensors variables = {{"v0", {1}}};
  Write(variables);
  for (int i = 1; i <= 52; ++i) variables.emplace_back(absl::StrCat("v", i), Shape{1});
  EXPECT_THAT(Plan("", variables)->report, HasSubstr(", v50 and 2 more"));
}

}  // namespace
}  // namespace lockstep

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

TEST_F(WarmStartPlanTest, LoadsFoundVariablesAndReportsTheRest) {
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

TEST_F(WarmStartPlanTest, AWeightFileStartsARun) {
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

TEST_F(WarmStartPlanTest, ABoolIsZeroOrOne) {
  v1::ModelSpec model;
  v1::VariableSpec* const variable = model.add_variables();
  variable->set_name("flags");
  variable->set_dtype(v1::DT_BOOL);
  variable->add_shape(2);
  ASSERT_TRUE(fs_.CreateDirectory("d").ok());
  config::v1::CheckpointConfig config;
  config.set_warm_start("d/old");
  const auto check = [&](const std::string& bytes) {
    auto writer = BundleWriter::Create(&fs_, "d/old").value();
    EXPECT_TRUE(writer->Add("flags", v1::DT_BOOL, {2}, bytes).ok());
    EXPECT_TRUE(writer->Finish().ok());
    return CheckValues(OpenWarmStart(&fs_, config, model).value());
  };
  EXPECT_EQ(check(std::string("\0\1", 2)), absl::OkStatus());
  EXPECT_EQ(
      check(std::string("\0\2", 2)),
      absl::InvalidArgumentError("checkpoint.warm_start: checkpoint d/old: flags has a bool that is neither 0 nor 1"));
}

// The tensors of a PyTorch state_dict. Linear is [outputs, inputs], Conv2d [outputs, inputs, height, width].
class PytorchWeightsTest : public WarmStartPlanTest {
 protected:
  absl::StatusOr<WarmStartPlan> PlanFile(const std::string& rules, const std::string& variable, const Shape& shape) {
    config::v1::CheckpointConfig config;
    config.set_warm_start("d/torch.safetensors");
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(rules, config.mutable_warm_start_variables())) << rules;
    v1::ModelSpec model;
    v1::VariableSpec* const spec = model.add_variables();
    spec->set_name(variable);
    for (const int64_t dim : shape.dims()) spec->add_shape(dim);
    auto start = OpenWarmStart(&fs_, config, model);
    if (!start.ok()) return start.status();
    reader_ = std::move(start->checkpoint);
    return start->plan;
  }

  void WriteFile(const Tensors& tensors) {
    Write(tensors);
    const auto source = BundleReader::Open(&fs_, "d/old").value();
    ASSERT_TRUE(
        WriteTensorFile(&fs_, "d/torch.safetensors", TensorFileFormat::kSafetensors, *source, {source->names(), {}})
            .ok());
  }

  std::string Error(const std::string& rules, const std::string& variable, const Shape& shape) {
    return std::string(PlanFile(rules, variable, shape).status().message());
  }

  std::unique_ptr<TensorReader> reader_;
};

TEST_F(PytorchWeightsTest, ASquareMatrixIsNotLoadedUnasked) {
  WriteFile({{"fc.weight", {3, 3}}});
  const std::string rename = "rename { variable: '(.*)/kernel' key: '\\\\1.weight' ";
  EXPECT_THAT(Error(rename + "}", "fc/kernel", {3, 3}),
              HasSubstr("fc.weight[3,3] for fc/kernel[3,3]: it fits as it is, and in PyTorch's order"));
  const auto plan = PlanFile(rename + "transpose: true }", "fc/kernel", {3, 3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->report, HasSubstr("fc/kernel[3,3] from fc.weight, rearranged from [3,3]"));
  const auto as_it_is = PlanFile(rename + "transpose: false }", "fc/kernel", {3, 3});
  ASSERT_TRUE(as_it_is.ok()) << as_it_is.status();
  EXPECT_TRUE(as_it_is->loads[0].permutation.empty());
}

TEST_F(PytorchWeightsTest, AnotherNameThatFitsTwiceIsAWarning) {
  WriteFile({{"w", {3, 3}}});
  const auto plan = PlanFile("rename { variable: 'fc/kernel' key: 'w' }", "fc/kernel", {3, 3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->report, HasSubstr("\n  warning: fc/kernel from w: it fits as it is, and in PyTorch's order"));
}

TEST_F(PytorchWeightsTest, ReshapeDoesNotStandInForTranspose) {
  WriteFile({{"fc.weight", {2, 3}}});
  const std::string rename = "rename { variable: 'fc/kernel' key: 'fc.weight' ";
  EXPECT_THAT(Error("reshape: true " + rename + "}", "fc/kernel", {3, 2}), HasSubstr("it fits as it is, and in"));
  EXPECT_THAT(Error(rename + "}", "fc/kernel", {3, 2}),
              HasSubstr("fc.weight[2,3] for fc/kernel[3,2]: it fits in PyTorch's order: rename { variable: "
                        "\"fc/kernel\" key: \"fc.weight\" transpose: true }"));
}

TEST_F(PytorchWeightsTest, ReadsElementsInTheOrderOfTheRule) {
  ASSERT_TRUE(fs_.CreateDirectory("d").ok());
  const std::vector<float> stored = {1, 2, 3, 4, 5, 6};
  auto writer = BundleWriter::Create(&fs_, "d/old").value();
  ASSERT_TRUE(writer->Add("fc.weight", v1::DT_FLOAT, {2, 3}, {reinterpret_cast<const char*>(stored.data()), 24}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto plan = Plan("rename { variable: 'k' key: 'fc.weight' transpose: true }", {{"k", {3, 2}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<float> loaded(6);
  ASSERT_TRUE(ReadLoad(*BundleReader::Open(&fs_, "d/old").value(), plan->loads[0], absl::MakeSpan(loaded)).ok());
  EXPECT_THAT(loaded, ::testing::ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(PytorchWeightsTest, ARuleThatDoesNotFitIsAnError) {
  WriteFile({{"conv.weight", {8, 3, 5, 5}}});
  EXPECT_THAT(Error("rename { variable: 'k' key: 'conv.weight' transpose: true }", "k", {5, 5, 3, 8}),
              HasSubstr("the tensor has 4 dimensions, its rule orders 2"));
  EXPECT_THAT(Error("rename { variable: 'k' key: 'conv.weight' permutation: [3, 2, 1, 0] }", "k", {5, 5, 8, 3}),
              HasSubstr("in the order of its rule it is [5,5,3,8]"));
  EXPECT_TRUE(
      PlanFile("rename { variable: 'k' key: 'conv.weight' permutation: [2, 3, 1, 0] }", "k", {5, 5, 3, 8}).ok());
}

TEST_F(WarmStartPlanTest, OneTensorMayStartSeveralVariables) {
  Write({{"shared", {2}}});
  const auto plan = Plan("rename { variable: '[ab]' key: 'shared' }", {{"a", {2}}, {"b", {2}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->loads.size(), 2u);
  EXPECT_EQ(plan->loads[1].key, "shared");
}

// WARM-02, WARM-08
TEST_F(WarmStartPlanTest, RequiredVariablesMustExist) {
  Write({{"v0", {1}}, {"v1", {1}}});
  const absl::Status status =
      Plan("require_all: true rename { variable: 'v2' key: 'v0_fake' }", {{"v0", {1}}, {"v2", {1}}, {"v3", {1}}})
          .status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "d/old lacks v2 (v0_fake), v3");
  EXPECT_TRUE(Plan("require_all: true exclude: 'v[23]'", {{"v0", {1}}, {"v2", {1}}, {"v3", {1}}}).ok());
}

// WARM-06, WARM-07
TEST_F(WarmStartPlanTest, ReshapesOnRequestIfSizesMatch) {
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
            "d/old has none of the model's variables that are to be loaded, x for one; it has v0");
  EXPECT_EQ(Plan("exclude: 'v'", {{"v0", {1}}}).status().message(),
            "d/old has none of the model's variables that are to be loaded; it has v0");
}

TEST_F(WarmStartPlanTest, AReportOfManyNamesIsCut) {
  Tensors variables = {{"v0", {1}}};
  Write(variables);
  for (int i = 1; i <= 52; ++i) variables.emplace_back(absl::StrCat("v", i), Shape{1});
  EXPECT_THAT(Plan("", variables)->report, HasSubstr(", v50 and 2 more"));
}

}  // namespace
}  // namespace lockstep

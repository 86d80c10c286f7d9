#include "lockstep/train/saver/assign_from.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/saver/saver.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Floats(std::vector<int64_t> shape, std::vector<float> values) {
  return NamedFloats("", shape, values).value().value;
}

class AssignFromTest : public ::testing::Test {
 protected:
  AssignFromTest() {
    EXPECT_TRUE(fs_.CreateDirectory("d").ok());
    options_.fs = &fs_;
  }

  void Save(const std::vector<NamedTensor>& values) {
    SaverOptions options;
    options.fs = &fs_;
    ASSERT_EQ(Saver::Create(options).value()->Save("d/ckpt", absl::nullopt, values).value(), "d/ckpt");
  }
  // Saves v0 = 10 and v1 = 20.
  void SaveTwo() { Save({{"v0", Floats({1}, {10})}, {"v1", Floats({1}, {20})}}); }

  static v1::ModelSpec Model(const std::vector<std::pair<std::string, std::vector<int64_t>>>& variables) {
    v1::ModelSpec model;
    for (const auto& [name, shape] : variables) {
      v1::VariableSpec* const variable = model.add_variables();
      variable->set_name(name);
      variable->set_dtype(v1::DT_FLOAT);
      for (const int64_t dim : shape) variable->add_shape(dim);
    }
    return model;
  }
  // Returns, for example, "v0[1]=10 v1[1]=20".
  static std::string Text(const InitialValues& initial) {
    std::string text;
    for (const NamedTensor& variable : initial.values) {
      absl::StrAppend(&text, text.empty() ? "" : " ", variable.name, variable.value.shape().ToString(), "=",
                      absl::StrJoin(variable.value.flat<float>(), ","));
    }
    return text;
  }

  MemoryFileSystem fs_;
  AssignOptions options_;
};

TEST_F(AssignFromTest, VariablesComeFromTheirKeys) {
  SaveTwo();
  const auto assign = AssignFromCheckpoint("d/ckpt", {{"v0", {"a"}}, {"v1", {"b", "c"}}}, options_);
  ASSERT_TRUE(assign.ok()) << assign.status();
  const auto initial = (*assign)(Model({{"c", {1}}, {"a", {1}}, {"other", {2}}, {"b", {1}}}));
  ASSERT_TRUE(initial.ok()) << initial.status();
  EXPECT_EQ(Text(*initial), "c[1]=20 a[1]=10 b[1]=20");
  EXPECT_EQ(initial->report,
            "warm start from d/ckpt: 3 of 4 variables\n"
            "  a[1] from v0\n"
            "  b[1] from v1\n"
            "  c[1] from v1\n"
            "  initial value, not to be loaded: other");
}

TEST_F(AssignFromTest, ValuesThatAreNotFiniteAreRefused) {
  Save({{"v0", Floats({2}, {1, std::numeric_limits<float>::quiet_NaN()})}});
  const auto assign = AssignFromCheckpoint("d/ckpt", {{"v0", {"a"}}}, options_);
  ASSERT_TRUE(assign.ok()) << assign.status();
  const absl::Status status = (*assign)(Model({{"a", {2}}})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("d/ckpt: element 1 of v0 is nan"));
}

TEST_F(AssignFromTest, BoolsThatAreNeither0Nor1AreRefused) {
  Tensor flags(v1::DT_BOOL, {2});
  flags.data()[0] = '\1';
  flags.data()[1] = '\2';
  Save({{"v0", flags}});
  v1::ModelSpec model = Model({{"a", {2}}});
  model.mutable_variables(0)->set_dtype(v1::DT_BOOL);
  const auto assign = AssignFromCheckpoint("d/ckpt", {{"v0", {"a"}}}, options_);
  ASSERT_TRUE(assign.ok()) << assign.status();
  EXPECT_EQ((*assign)(model).status(),
            absl::InvalidArgumentError("checkpoint d/ckpt: v0 has a bool that is neither 0 nor 1"));
}

TEST_F(AssignFromTest, AFileOfWeightsIsReadAsACheckpointIs) {
  SaveTwo();
  const auto source = OpenTensors(&fs_, "d/ckpt").value();
  for (const TensorFileFormat format : {TensorFileFormat::kSafetensors, TensorFileFormat::kNpz}) {
    const std::string path = absl::StrCat("d/weights.", NameOf(format));
    const absl::Status absent = AssignFromCheckpoint(path, {{"v0", {"a"}}}, options_).status();
    EXPECT_EQ(absent.message(), absl::StrCat("\"", path, "\" is not a valid checkpoint: there is no such file"));
    ASSERT_TRUE(WriteTensorFile(&fs_, path, format, *source, {{"v0", "v1"}, {}}).ok());
    const auto assign = AssignFromCheckpoint(path, {{"v0", {"a"}}, {"v1", {"b"}}}, options_);
    ASSERT_TRUE(assign.ok()) << assign.status();
    const auto initial = (*assign)(Model({{"a", {1}}, {"b", {1}}}));
    ASSERT_TRUE(initial.ok()) << initial.status();
    EXPECT_EQ(Text(*initial), "a[1]=10 b[1]=20");
  }
}

// WARM-02
TEST_F(AssignFromTest, AMissingKeyIsAnErrorAtOnce) {
  SaveTwo();
  const absl::Status status = AssignFromCheckpoint("d/ckpt", {{"v0_fake", {"v0"}}, {"v1", {"v1"}}}, options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "checkpoint d/ckpt is missing variable v0_fake");
}

// WARM-03
TEST_F(AssignFromTest, AMissingKeyMayBeIgnored) {
  SaveTwo();
  options_.ignore_missing_vars = true;
  const auto assign = AssignFromCheckpoint("d/ckpt", {{"v0_fake", {"v0"}}, {"v1", {"v1"}}}, options_);
  const auto initial = (*assign)(Model({{"v0", {1}}, {"v1", {1}}}));
  ASSERT_TRUE(initial.ok()) << initial.status();
  EXPECT_EQ(Text(*initial), "v1[1]=20");
  EXPECT_THAT(initial->report, HasSubstr("initial value, not in the checkpoint: v0 (v0_fake)"));
  EXPECT_THAT(initial->report, HasSubstr("not used of the checkpoint: v0"));
}

// WARM-04
TEST_F(AssignFromTest, APartTakesItsPartOfTheValue) {
  Save({{"var0", Floats({2, 2}, {10, 11, 12, 13})}});
  const AssignMap map = {{"var0", {{"part0", {0, 0}}, {"part1", {1, 0}}, {"column1", {0, 1}}, "var0full"}}};
  const auto model = Model({{"part0", {1, 2}}, {"part1", {1, 2}}, {"column1", {2, 1}}, {"var0full", {2, 2}}});
  const auto initial = AssignFromCheckpoint("d/ckpt", map, options_).value()(model);
  ASSERT_TRUE(initial.ok()) << initial.status();
  EXPECT_EQ(Text(*initial), "part0[1,2]=10,11 part1[1,2]=12,13 column1[2,1]=11,13 var0full[2,2]=10,11,12,13");
  EXPECT_THAT(initial->report, HasSubstr("part1[1,2] from var0, the part at [1,0]"));
  for (const std::vector<int64_t>& offset : {std::vector<int64_t>{2, 0}, {0, 1}, {-1, 0}, {0}}) {
    const auto outside = AssignFromCheckpoint("d/ckpt", {{"var0", {{"part0", offset}}}}, options_).value()(model);
    EXPECT_TRUE(absl::IsInvalidArgument(outside.status())) << outside.status();
  }
}

TEST_F(AssignFromTest, ShapesMustBeTheSame) {
  Save({{"v0", Floats({1, 2}, {10, 11})}});
  const auto initial = AssignFromCheckpoint("d/ckpt", ByName({"v0"}), options_).value()(Model({{"v0", {2, 1}}}));
  EXPECT_TRUE(absl::IsInvalidArgument(initial.status()));
  EXPECT_EQ(initial.status().message(), "checkpoint d/ckpt: v0 is float32[1,2], the variable v0 is float32[2,1]");
}

// WARM-06, WARM-07
TEST_F(AssignFromTest, TheFunctionReshapesWhenItIsAskedTo) {
  Save({{"v0", Floats({1, 2}, {10, 11})}});
  const auto model = Model({{"v0", {2, 1}}});
  const auto strict = AssignFromCheckpointFn("d/ckpt", ByName({"v0"}), options_);
  ASSERT_TRUE(strict.ok()) << strict.status();
  EXPECT_TRUE(absl::IsInvalidArgument((**strict)(model).status()));
  options_.reshape = true;
  const auto reshaped = (**AssignFromCheckpointFn("d/ckpt", ByName({"v0"}), options_))(model);
  ASSERT_TRUE(reshaped.ok()) << reshaped.status();
  EXPECT_EQ(Text(*reshaped), "v0[2,1]=10,11");
  EXPECT_THAT(reshaped->report, HasSubstr("v0[2,1], reshaped from [1,2]"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      (**AssignFromCheckpointFn("d/ckpt", ByName({"v0"}), options_))(Model({{"v0", {3}}})).status()));
}

// WARM-08
TEST_F(AssignFromTest, TheFunctionFindsAMissingKeyWhenItIsCalled) {
  SaveTwo();
  const auto assign = AssignFromCheckpointFn("d/ckpt", ByName({"v0", "v1", "v2"}), options_);
  ASSERT_TRUE(assign.ok()) << assign.status();
  const absl::Status status = (**assign)(Model({{"v0", {1}}, {"v1", {1}}, {"v2", {1}}})).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "checkpoint d/ckpt has no variable v2");
}

// WARM-09
TEST_F(AssignFromTest, TheFunctionMayIgnoreMissingKeys) {
  SaveTwo();
  options_.ignore_missing_vars = true;
  const auto assign = AssignFromCheckpointFn("d/ckpt", ByName({"v0", "v1", "v2"}), options_);
  const auto initial = (**assign)(Model({{"v0", {1}}, {"v1", {1}}, {"v2", {1}}}));
  EXPECT_EQ(Text(*initial), "v0[1]=10 v1[1]=20");
  const auto none = AssignFromCheckpointFn("d/ckpt", ByName({"v2"}), options_);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value()) << "there is nothing to call";
}

// WARM-11
TEST_F(AssignFromTest, AnEmptyMapIsAnErrorOfTheFunctionOnly) {
  SaveTwo();
  EXPECT_TRUE(absl::IsInvalidArgument(AssignFromCheckpointFn("d/ckpt", {}, options_).status()));
  const auto nothing = AssignFromCheckpoint("d/ckpt", {}, options_);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(Text((*nothing)(Model({{"v0", {1}}})).value()), "");
}

TEST_F(AssignFromTest, WhatTheModelLacksOrIsNamedTwiceIsRefused) {
  SaveTwo();
  EXPECT_EQ(AssignFromCheckpoint("d/ckpt", {{"v0", {"a"}}, {"v1", {"a"}}}, options_).status().message(),
            "variable a is to be loaded twice");
  EXPECT_EQ(AssignFromCheckpoint("d/ckpt", ByName({"v0"}), options_).value()(Model({{"w", {1}}})).status().message(),
            "the model has no variable v0");
  const absl::Status absent = AssignFromCheckpoint("d/absent", ByName({"v0"}), options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(absent));
  EXPECT_THAT(std::string(absent.message()), HasSubstr("not a valid checkpoint"));
}

TEST_F(AssignFromTest, AnotherTypeIsRefused) {
  Save({{"v0", Tensor::FromValues<int64_t>({1}, {7})}});
  const auto initial = AssignFromCheckpoint("d/ckpt", ByName({"v0"}), options_).value()(Model({{"v0", {1}}}));
  EXPECT_EQ(initial.status().message(), "checkpoint d/ckpt: v0 is int64[1], the variable v0 is float32[1]");
}

// WARM-12
TEST_F(AssignFromTest, ValuesTakeTheShapeOfTheirVariables) {
  const auto assign = AssignFromValues({{"my_var0", Floats({3}, {1, 3, 9})}});
  const auto initial = assign(Model({{"my_var1", {1}}, {"my_var0", {1, 3, 1}}}));
  ASSERT_TRUE(initial.ok()) << initial.status();
  EXPECT_EQ(Text(*initial), "my_var0[1,3,1]=1,3,9");
  EXPECT_EQ(initial->report, "initial values given for 1 of 2 variables\n  my_var0[1,3,1]");
  const absl::Status other = assign(Model({{"my_var0", {2}}})).status();
  EXPECT_EQ(other.message(), "the value for my_var0 is float32[3], the variable is float32[2]");
}

TEST_F(AssignFromTest, ANameStandsForTheOnlyVariableThatBeginsWithIt) {
  const auto assign = AssignFromValues({{"w", Floats({1}, {1})}});
  const auto begins = assign(Model({{"weights", {1}}, {"b", {1}}}));
  EXPECT_EQ(Text(*begins), "weights[1]=1");
  EXPECT_THAT(begins->report, HasSubstr("weights[1] from w"));
  EXPECT_EQ(Text(*assign(Model({{"weights", {1}}, {"w", {1}}}))), "w[1]=1");
  EXPECT_EQ(assign(Model({{"weights", {1}}, {"w1", {1}}})).status().message(),
            "variable w doesn't uniquely identify a variable: there are weights, w1");
  EXPECT_EQ(assign(Model({{"b", {1}}})).status().message(), "variable w wasn't found");
  const auto twice = AssignFromValues({{"w", Floats({1}, {1})}, {"weights", Floats({1}, {2})}});
  EXPECT_EQ(twice(Model({{"weights", {1}}})).status().message(), "two values are given for variable weights");
}

}  // namespace
}  // namespace lockstep::train

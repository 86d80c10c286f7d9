#include "lockstep/common/tensor/parameter_layout.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::VariableSpec* AddVariable(const std::string& name, const std::vector<int64_t>& shape, bool trainable,
                              v1::ModelSpec* model) {
  v1::VariableSpec* const variable = model->add_variables();
  variable->set_name(name);
  variable->set_dtype(v1::DT_FLOAT);
  for (const int64_t size : shape) variable->add_shape(size);
  variable->set_trainable(trainable);
  return variable;
}

TEST(ParameterLayoutTest, EveryVariableStartsAligned) {
  v1::ModelSpec model;
  AddVariable("a", {3}, true, &model);
  AddVariable("b", {}, false, &model);
  AddVariable("c", {16}, true, &model);
  AddVariable("d", {17}, true, &model);
  AddVariable("e", {2}, false, &model);
  model.add_update_ops()->set_variable("e");
  const auto layout = *ParameterLayout::Create(model);
  std::vector<int64_t> offsets;
  for (const auto& variable : layout.variables()) offsets.push_back(variable.flat_offset);
  EXPECT_THAT(offsets, ElementsAre(0, 80, 16, 32, 64)) << "trained ones, written ones, constants";
  EXPECT_EQ(layout.trained_elements(), 64);
  EXPECT_EQ(layout.constants_offset(), 80);
  EXPECT_EQ(layout.constant_elements(), 16);
  EXPECT_TRUE(layout.variables()[1].constant);
  EXPECT_FALSE(layout.variables()[0].constant || layout.variables()[4].constant);
  EXPECT_EQ(layout.variables()[1].elements, 1) << "a scalar";
  EXPECT_EQ(layout.flat_elements(), 16 + 16 + 16 + 32 + 16);
  EXPECT_EQ(layout.num_trainable_segments(), 3);
}

TEST(ParameterLayoutTest, SegmentsCoverEachVariableOnce) {
  constexpr int64_t kSegment = ParameterLayout::kSegmentElements;
  v1::ModelSpec model;
  AddVariable("exact", {2, kSegment}, true, &model);
  AddVariable("one_more", {kSegment + 1}, true, &model);
  AddVariable("fixed", {kSegment * 3 - 1}, false, &model);
  const auto layout = *ParameterLayout::Create(model);
  ASSERT_EQ(layout.segments().size(), 2u + 2u + 3u);
  EXPECT_EQ(layout.num_trainable_segments(), 4);
  size_t index = 0;
  for (size_t v = 0; v < layout.variables().size(); ++v) {
    const auto& variable = layout.variables()[v];
    EXPECT_EQ(variable.first_segment, static_cast<int>(index));
    int64_t covered = 0;
    for (int i = 0; i < variable.num_segments; ++i, ++index) {
      const auto& segment = layout.segments()[index];
      EXPECT_EQ(segment.variable, static_cast<int>(v));
      EXPECT_EQ(segment.offset, covered);
      EXPECT_EQ(segment.flat_offset, variable.flat_offset + covered);
      EXPECT_GT(segment.elements, 0);
      EXPECT_LE(segment.elements, kSegment);
      covered += segment.elements;
    }
    EXPECT_EQ(covered, variable.elements);
  }
}

TEST(ParameterLayoutTest, UpdateOpsPointToTheirVariables) {
  v1::ModelSpec model;
  AddVariable("w", {2}, true, &model);
  AddVariable("mean", {2}, false, &model);
  v1::UpdateOpSpec* const op = model.add_update_ops();
  op->set_variable("mean");
  op->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
  op->set_decay(0.9f);
  const auto layout = *ParameterLayout::Create(model);
  ASSERT_EQ(layout.update_ops().size(), 1u);
  EXPECT_EQ(layout.update_ops()[0].variable, 1);
  EXPECT_EQ(layout.update_ops()[0].spec.kind(), v1::UpdateOpSpec::MOVING_AVERAGE);
}

TEST(ParameterLayoutTest, IntegersTakeTheirOwnSize) {
  constexpr int64_t kSegment = ParameterLayout::kSegmentElements;
  v1::ModelSpec model;
  AddVariable("w", {2}, true, &model);
  AddVariable("count", {kSegment + 1}, false, &model)->set_dtype(v1::DT_INT64);
  AddVariable("flags", {65}, false, &model)->set_dtype(v1::DT_BOOL);
  AddVariable("step", {}, false, &model)->set_dtype(v1::DT_INT32);
  AddVariable("image", {kSegment + 1}, false, &model)->set_dtype(v1::DT_UINT8);
  model.add_update_ops()->set_variable("count");
  model.mutable_update_ops(0)->set_kind(v1::UpdateOpSpec::ASSIGN_ADD);
  model.add_update_ops()->set_variable("flags");
  const auto layout = *ParameterLayout::Create(model);
  const auto& variables = layout.variables();
  EXPECT_EQ(variables[1].bytes(), static_cast<size_t>(kSegment + 1) * 8);
  EXPECT_EQ(variables[2].bytes(), 65u);
  EXPECT_EQ(variables[3].bytes(), 4u);
  EXPECT_EQ(variables[1].flat_offset, 16);
  EXPECT_EQ(variables[2].flat_offset, 16 + 2 * kSegment + 16);
  EXPECT_EQ(layout.constants_offset(), 16 + 2 * kSegment + 16 + 32) << "65 bytes are two units of 64";
  EXPECT_EQ(variables[3].flat_offset, layout.constants_offset());
  EXPECT_EQ(layout.segments()[2].offset, kSegment);
  EXPECT_EQ(layout.segments()[2].flat_offset, variables[1].flat_offset + 2 * kSegment) << "in floats";
  EXPECT_EQ(layout.segments()[6].offset, kSegment);
  EXPECT_EQ(layout.segments()[6].flat_offset, variables[4].flat_offset + kSegment / 4);
}

TEST(ParameterLayoutTest, PlacesStateBeforeConstants) {
  v1::ModelSpec model;
  AddVariable("w", {2}, true, &model);
  AddVariable("fixed", {2}, false, &model);
  AddVariable("mean", {17}, false, &model);
  v1::UpdateOpSpec* const op = model.add_update_ops();
  op->set_variable("mean");
  op->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
  EXPECT_TRUE(ParameterLayout::Create(model)->update_state().empty());
  op->set_zero_debias(true);
  const auto layout = *ParameterLayout::Create(model);
  ASSERT_EQ(layout.update_ops()[0].state, 0);
  ASSERT_EQ(layout.update_state().size(), 2u);
  const auto &biased = layout.update_state()[0], &local_step = layout.update_state()[1];
  EXPECT_EQ(biased.spec.name(), "mean/biased");
  EXPECT_EQ(biased.spec.shape(0), 17);
  EXPECT_EQ(biased.elements, 17);
  EXPECT_EQ(local_step.spec.name(), "mean/local_step");
  EXPECT_EQ(local_step.spec.shape_size(), 0);
  EXPECT_EQ(local_step.elements, 1);
  EXPECT_EQ(layout.variables()[2].flat_offset, 16);
  EXPECT_EQ(biased.flat_offset, 48);
  EXPECT_EQ(local_step.flat_offset, 80);
  EXPECT_EQ(layout.constants_offset(), 96);
  EXPECT_EQ(layout.variables()[1].flat_offset, 96);
  EXPECT_EQ(layout.segments().size(), 3u) << "workers do not get the state";
}

TEST(ParameterLayoutTest, RefusesWrongDeclarationsByName) {
  struct Case {
    std::function<void(v1::ModelSpec*)> change;
    std::string text;
  };
  const auto update_op = [](v1::ModelSpec* model, const std::string& variable) {
    v1::UpdateOpSpec* const op = model->add_update_ops();
    op->set_variable(variable);
    return op;
  };
  const auto unbiased = [&](v1::ModelSpec* model, const std::string& variable) {
    v1::UpdateOpSpec* const op = update_op(model, variable);
    op->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
    op->set_zero_debias(true);
    return op;
  };
  const Case cases[] = {
      {[&](v1::ModelSpec* m) { update_op(m, "v")->set_zero_debias(true); }, "the update op of v has zero_debias"},
      {[&](v1::ModelSpec* m) { unbiased(m, "v")->set_decay(1); },
       "the moving average of v has zero_debias and decay 1"},
      {[&](v1::ModelSpec* m) {
         unbiased(m, "v");
         unbiased(m, "v");
       },
       "keeps its state as v/biased, which is the name of"},
      {[&](v1::ModelSpec* m) {
         m->mutable_variables(0)->set_name("v/local_step");
         unbiased(m, "v");
       },
       "keeps its state as v/local_step, which is the name of"},
      {[&](v1::ModelSpec* m) {
         m->mutable_variables(1)->set_shape(0, ParameterLayout::kMaxElements / 2);
         unbiased(m, "v");
       },
       "with v/biased of"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_name(""); }, "has no name"},
      {[](v1::ModelSpec* m) { m->mutable_variables(1)->set_name("w"); }, "two variables are named w"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_dtype(v1::DT_DOUBLE); }, "variable w has type"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_dtype(v1::DT_INT64); },
       "variable w is trainable and has type int64; only float32 is trained"},
      {[](v1::ModelSpec* m) { m->mutable_variables(1)->set_dtype(v1::DT_STRING); },
       "variable v has type string, must be float32, int32, int64, uint8 or bool"},
      {[&](v1::ModelSpec* m) {
         m->mutable_variables(1)->set_dtype(v1::DT_INT64);
         update_op(m, "v")->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
       },
       "the update op of v, which has type int64, is MOVING_AVERAGE; only float32 is averaged"},
      {[&](v1::ModelSpec* m) {
         m->mutable_variables(1)->set_dtype(v1::DT_BOOL);
         update_op(m, "v")->set_kind(v1::UpdateOpSpec::ASSIGN_ADD);
       },
       "the update op of v, which has type bool, is ASSIGN_ADD"},
      {[](v1::ModelSpec* m) {
         m->mutable_variables(1)->set_dtype(v1::DT_INT64);
         m->mutable_variables(1)->set_shape(0, ParameterLayout::kMaxElements);
       },
       "with variable v of"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_dtype(static_cast<v1::DataType>(99)); },
       "variable w has type"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_shape(0, 0); }, "variable w has shape"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_shape(0, -1); }, "variable w"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->add_shape(std::numeric_limits<int64_t>::max()); }, "variable w"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_shape(0, ParameterLayout::kMaxElements + 1); },
       "variable w"},
      {[](v1::ModelSpec* m) { m->mutable_variables(0)->set_trainable(false); }, "no trainable variable"},
      {[](v1::ModelSpec* m) { m->clear_variables(); }, "no trainable variable"},
      {[&](v1::ModelSpec* m) { update_op(m, "nobody"); }, "unknown variable nobody"},
      {[&](v1::ModelSpec* m) { update_op(m, "w"); }, "trainable variable w"},
      {[&](v1::ModelSpec* m) { update_op(m, "v")->set_kind(static_cast<v1::UpdateOpSpec::Kind>(7)); },
       "unknown kind 7"},
      {[&](v1::ModelSpec* m) {
         v1::UpdateOpSpec* const op = update_op(m, "v");
         op->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
         op->set_decay(1.5f);
       },
       "decay 1.5"},
      {[&](v1::ModelSpec* m) {
         v1::UpdateOpSpec* const op = update_op(m, "v");
         op->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
         op->set_decay(std::numeric_limits<float>::quiet_NaN());
       },
       "decay nan"},
  };
  for (const Case& test : cases) {
    v1::ModelSpec model;
    AddVariable("w", {2}, true, &model);
    AddVariable("v", {2}, false, &model);
    test.change(&model);
    const auto status = ParameterLayout::Create(model).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.text));
  }
}

TEST(ParameterLayoutTest, TheSumOfAllVariablesDoesNotOverflow) {
  v1::ModelSpec model;
  for (int i = 0; i < 3; ++i) {
    AddVariable("v" + std::to_string(i), {i == 0 ? 64 : std::numeric_limits<int64_t>::max() / 8}, true, &model);
  }
  const auto status = ParameterLayout::Create(model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("v1"));
}

}  // namespace
}  // namespace lockstep

#include "lockstep/server/ps/versions/optimizer_state_versions.h"

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace {

constexpr size_t kSpare = 2;

// Both variables have two elements. "w" is trained; "mean" is not.
std::shared_ptr<const ParameterLayout> Layout() {
  v1::ModelSpec model;
  for (const char* name : {"w", "mean"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(2);
    variable->set_trainable(variable->name() == "w");
  }
  return std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
}

class OptimizerStateVersionsTest : public ::testing::Test {
 protected:
  VariableSnapshot Snapshot() const {
    VariableSnapshot snapshot;
    state_.AddTo(&snapshot);
    return snapshot;
  }
  const ParameterLayout::Segment& w() const { return layout_->segments()[0]; }

  const std::shared_ptr<const ParameterLayout> layout_ = Layout();
  const std::vector<std::vector<Optimizer::State>> states_ = {{{"Momentum", 0}, {"Accumulator", 0.5f}}, {}};
  OptimizerStateVersions state_{layout_, states_, kSpare};
};

TEST_F(OptimizerStateVersionsTest, StartAtTheInitialValues) {
  EXPECT_TRUE(Snapshot().optimizer_state.empty());
  state_.Clear();
  ASSERT_EQ(state_.Current(w()).size(), 2u);
  EXPECT_EQ(state_.Current(w())[0][1], 0);
  EXPECT_EQ(state_.Current(w())[1][1], 0.5f);
  EXPECT_EQ(*Snapshot().state_names, (std::vector<std::vector<std::string>>{{"Momentum", "Accumulator"}, {}}));
}

TEST_F(OptimizerStateVersionsTest, AnUpdateIsInvisibleUntilCommitted) {
  state_.Clear();
  const VariableSnapshot before = Snapshot();
  state_.BeginUpdate();
  ASSERT_EQ(state_.Next(w()).size(), 2u);
  state_.Next(w())[0][0] = 7;
  state_.Next(w())[1][0] = 8;
  EXPECT_EQ(Snapshot().optimizer_state, before.optimizer_state);
  state_.Commit();
  EXPECT_EQ(state_.Current(w())[0][0], 7);
  EXPECT_EQ(state_.Current(w())[1][0], 8);
  EXPECT_TRUE(state_.Next(w()).empty());
  EXPECT_EQ(before.optimizer_state[1]->as<float>()[w().flat_offset], 0.5f) << "a snapshot still has the old version";
}

TEST_F(OptimizerStateVersionsTest, VariablesMayHaveDifferentStates) {
  v1::ModelSpec model;
  for (const auto& variable : layout_->variables()) *model.add_variables() = variable.spec;
  model.mutable_variables(1)->set_trainable(true);
  const auto layout = std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
  OptimizerStateVersions state(layout, {{{"Adagrad", 0.5f}}, {{"Adam", 0}, {"Adam_1", 0.25f}}}, kSpare);
  state.Clear();
  EXPECT_EQ(state.num_arrays(), 2);
  const ParameterLayout::Segment& other = layout->segments()[1];
  ASSERT_EQ(state.Current(w()).size(), 1u);
  EXPECT_EQ(state.Current(w())[0][1], 0.5f);
  ASSERT_EQ(state.Current(other).size(), 2u);
  EXPECT_EQ(state.Current(other)[0][0], 0);
  EXPECT_EQ(state.Current(other)[1][0], 0.25f);
  state.BeginUpdate();
  EXPECT_EQ(state.Next(w()).size(), 1u);
  EXPECT_EQ(state.Next(other).size(), 2u);
}

TEST_F(OptimizerStateVersionsTest, WhatIsNotTrainedTakesNoMemory) {
  state_.Clear();
  const size_t bytes = static_cast<size_t>(ParameterLayout::PaddedFloats(8)) * sizeof(float);
  for (const auto& array : Snapshot().optimizer_state) EXPECT_EQ(array->size(), bytes) << "that of w alone";
}

TEST_F(OptimizerStateVersionsTest, ASnapshotCopiesNothing) {
  state_.Clear();
  EXPECT_EQ(Snapshot().optimizer_state[0]->as<float>() + w().flat_offset, state_.Current(w())[0]);
  EXPECT_EQ(Snapshot().optimizer_state[1]->as<float>() + w().flat_offset, state_.Current(w())[1]);
}

TEST_F(OptimizerStateVersionsTest, TakeTurnsInTwoBuffersForEachState) {
  state_.Clear();
  std::set<const float*> buffers;
  for (int i = 0; i < 10; ++i) {
    state_.BeginUpdate();
    state_.Commit();
    for (const float* const state : state_.Current(w())) buffers.insert(state);
  }
  EXPECT_EQ(buffers.size(), 2 * 2u);
}

TEST_F(OptimizerStateVersionsTest, RestoreReadsEveryTrainedState) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  const float momentum[] = {1, 2}, accumulator[] = {3, 4};
  const auto write = [&](const std::string& prefix, bool whole) {
    auto writer = BundleWriter::Create(&fs, prefix).value();
    const auto bytes = [](const float* two) {
      return absl::string_view(reinterpret_cast<const char*>(two), 2 * sizeof(float));
    };
    ASSERT_TRUE(writer->Add("w/Momentum", v1::DT_FLOAT, {2}, bytes(momentum)).ok());
    if (whole) {
      ASSERT_TRUE(writer->Add("w/Accumulator", v1::DT_FLOAT, {2}, bytes(accumulator)).ok());
    }
    ASSERT_TRUE(writer->Finish().ok());
  };
  write("d/whole", true);
  write("d/partial", false);
  const auto whole = BundleReader::Open(&fs, "d/whole").value();
  std::vector<BundleReader::Place> places;
  ASSERT_TRUE(state_.Restore(*whole, &places).ok());
  ASSERT_TRUE(whole->VerifyInto(places, nullptr).ok());
  EXPECT_EQ(state_.Current(w())[0][1], 2);
  EXPECT_EQ(state_.Current(w())[1][0], 3);
  EXPECT_TRUE(absl::IsNotFound(state_.Restore(*BundleReader::Open(&fs, "d/partial").value(), &places)));
}

TEST_F(OptimizerStateVersionsTest, LackingStateStartsAtInitialValues) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  ASSERT_TRUE(BundleWriter::Create(&fs, "d/none").value()->Finish().ok());
  std::vector<BundleReader::Place> places;
  OptimizerStateVersions::Lacking lacking;
  ASSERT_TRUE(state_.Restore(*BundleReader::Open(&fs, "d/none").value(), &places, &lacking).ok());
  EXPECT_TRUE(places.empty());
  ASSERT_EQ(lacking.size(), 2);
  EXPECT_EQ(lacking[1].variable, 0);
  EXPECT_EQ(lacking[1].state, 1);
  const auto restored = state_.Current(w());
  const std::vector<float> momentum(restored[0], restored[0] + 2), accumulator(restored[1], restored[1] + 2);
  state_.Clear();
  EXPECT_EQ(momentum[0], state_.Current(w())[0][0]);
  EXPECT_EQ(accumulator[1], state_.Current(w())[1][1]);
}

}  // namespace
}  // namespace lockstep

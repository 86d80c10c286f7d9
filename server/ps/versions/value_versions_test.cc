#include "lockstep/server/ps/versions/value_versions.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace {

// "w" is the first segment; "mean" and "count" are not trained.
std::shared_ptr<const ParameterLayout> Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "mean" dtype: DT_FLOAT shape: 2 }
    variables { name: "count" dtype: DT_FLOAT }
    update_ops { variable: "mean" kind: MOVING_AVERAGE decay: 0.5 }
    update_ops { variable: "count" kind: ASSIGN_ADD })",
                                                            &model));
  return std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
}

class ValueVersionsTest : public ::testing::Test {
 protected:
  static constexpr size_t kSpare = 2;

  // Sets the current values to 0.1 and publishes them.
  void Start(ValueVersions* values) {
    values->Renew(/*pool=*/nullptr);
    for (const auto& variable : layout_->variables()) {
      std::fill_n(values->Current(variable.flat_offset), variable.elements, 0.1f);
    }
    values->PublishCurrent();
  }
  // Runs an update that sets every element of "w" to `value`.
  void Update(ValueVersions* values, float value) {
    values->BeginUpdate();
    std::fill_n(values->Next(w().flat_offset), w().elements, value);
    values->EncodeNext(w());
    values->FoldUpdates({});
    values->Commit();
  }
  const ParameterLayout::Segment& w() const { return layout_->segments()[0]; }
  int64_t OffsetOf(int variable) const { return layout_->variables()[variable].flat_offset; }

  const std::shared_ptr<const ParameterLayout> layout_ = Layout();
};

// Also tests reused memory, since the gaps between the variables must be the same in every run.
TEST_F(ValueVersionsTest, StartWithZerosBetweenTheVariables) {
  ValueVersions values(layout_, v1::DT_FLOAT, kSpare, /*shared=*/false);
  EXPECT_EQ(values.current(), nullptr);
  values.Renew(/*pool=*/nullptr);
  const AlignedBuffer* const memory = values.current().get();
  std::fill_n(values.Current(0), layout_->flat_elements(), 5.0f);
  values.PublishCurrent();
  EXPECT_EQ(values.published()->flat, values.current());
  EXPECT_EQ(values.published()->encoded, nullptr);
  Start(&values);
  EXPECT_EQ(values.current().get(), memory);
  std::vector<float> expected(static_cast<size_t>(layout_->flat_elements()), 0.0f);
  for (const auto& variable : layout_->variables()) {
    std::fill_n(expected.begin() + variable.flat_offset, variable.elements, 0.1f);
  }
  EXPECT_EQ(std::vector<float>(values.Current(0), values.Current(layout_->flat_elements())), expected);
}

TEST_F(ValueVersionsTest, UpdatesUseAnotherBufferTillCommitted) {
  ValueVersions values(layout_, v1::DT_FLOAT, kSpare, false);
  Start(&values);
  const auto before = values.current();
  EXPECT_EQ(values.next_published(), nullptr);
  values.BeginUpdate();
  const auto next = values.next_published();
  ASSERT_NE(next, nullptr);
  values.Next(w().flat_offset)[1] = 5;
  values.FoldUpdates({});
  EXPECT_EQ(values.current(), before);
  values.Commit();
  EXPECT_EQ(values.published(), next) << "the values published early are the version itself";
  EXPECT_EQ(values.current(), next->flat);
  EXPECT_EQ(values.next_published(), nullptr);
  EXPECT_EQ(values.current()->as<float>()[w().flat_offset + 1], 5);
  EXPECT_EQ(before->as<float>()[w().flat_offset + 1], 0.1f) << "a reader still has the old version";
}

TEST_F(ValueVersionsTest, FoldsUpdateOpsInSlotOrder) {
  ValueVersions values(layout_, v1::DT_FLOAT, kSpare, false);
  Start(&values);
  values.Current(OffsetOf(1))[0] = 4;
  values.Current(OffsetOf(1))[1] = 4;
  values.Current(OffsetOf(2))[0] = 0;
  values.BeginUpdate();
  const std::vector<std::vector<std::vector<float>>> updates = {{{8, 0}, {1}}, {{0, 4}, {2}}};
  values.FoldUpdates(updates);
  values.Commit();
  // The first element takes the values 4, 6 and 3; the second takes 4, 2 and 3.
  EXPECT_EQ(values.Current(OffsetOf(1))[0], 3);
  EXPECT_EQ(values.Current(OffsetOf(1))[1], 3);
  EXPECT_EQ(values.Current(OffsetOf(2))[0], 3);
}

// Returns a value of an update op as it is folded.
template <typename T>
std::vector<float> BytesOf(const std::vector<T>& elements) {
  std::vector<float> bytes((elements.size() * sizeof(T) + 3) / 4);
  std::memcpy(bytes.data(), elements.data(), elements.size() * sizeof(T));
  return bytes;
}

TEST_F(ValueVersionsTest, FoldsIntegersInTheirOwnType) {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "long" dtype: DT_INT64 shape: 2 }
    variables { name: "int" dtype: DT_INT32 }
    variables { name: "byte" dtype: DT_UINT8 shape: 3 }
    variables { name: "last" dtype: DT_INT64 }
    variables { name: "flag" dtype: DT_BOOL }
    update_ops { variable: "long" kind: ASSIGN_ADD }
    update_ops { variable: "int" kind: ASSIGN_ADD }
    update_ops { variable: "byte" kind: ASSIGN_ADD }
    update_ops { variable: "last" kind: ASSIGN }
    update_ops { variable: "flag" kind: ASSIGN })",
                                                            &model));
  const auto layout = std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
  ValueVersions values(layout, v1::DT_BFLOAT16, kSpare, false);
  values.Renew(/*pool=*/nullptr);
  std::fill_n(values.Current(0), layout->constants_offset(), 0.0f);
  values.PublishCurrent();
  constexpr int64_t kLong = int64_t{1} << 60;  // a float has 24 bits
  const std::vector<std::vector<std::vector<float>>> updates = {
      {BytesOf<int64_t>({kLong + 1, std::numeric_limits<int64_t>::max()}), BytesOf<int32_t>({-5}),
       BytesOf<uint8_t>({250, 1, 2}), BytesOf<int64_t>({3}), BytesOf<uint8_t>({1})},
      {BytesOf<int64_t>({kLong, 2}), BytesOf<int32_t>({std::numeric_limits<int32_t>::min()}),
       BytesOf<uint8_t>({10, 1, 2}), BytesOf<int64_t>({kLong + 7}), BytesOf<uint8_t>({0})}};
  for (int step = 0; step < 2; ++step) {
    values.BeginUpdate();
    if (step == 0) values.FoldUpdates(updates);
    if (step == 1) values.FoldUpdates({});
    values.Commit();
  }
  const auto address = [&](int variable) {
    const auto& segment = layout->segments()[layout->variables()[variable].first_segment];
    const FloatChunks chunks = values.published()->Segment(*layout, segment);
    EXPECT_EQ(chunks.type(), layout->variables()[variable].spec.dtype());
    EXPECT_EQ(chunks.bytes(), layout->variables()[variable].bytes());
    return chunks.SingleRun();
  };
  const auto* const longs = reinterpret_cast<const int64_t*>(address(1));
  EXPECT_EQ(longs[0], 2 * kLong + 1);
  EXPECT_EQ(longs[1], std::numeric_limits<int64_t>::min() + 1) << "it wraps";
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(address(2)), std::numeric_limits<int32_t>::max() - 4);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(address(3));
  EXPECT_EQ(std::vector<int>(bytes, bytes + 3), std::vector<int>({4, 2, 4}));
  EXPECT_EQ(*reinterpret_cast<const int64_t*>(address(4)), kLong + 7) << "the last slot's value";
  EXPECT_EQ(*address(5), 0);
}

// TensorFlow 2.21 computed the numbers, with assign_moving_average(mean, value, decay, zero_debias=True) in a graph:
// "mean", "mean/biased" and "mean/local_step" after each of four calls. It was given the decay 0.9 as a float32.
TEST_F(ValueVersionsTest, ZeroDebiasHasTensorFlowsBits) {
  struct Call {
    std::vector<float> value, mean, biased;
  };
  const std::map<float, std::vector<Call>> cases = {
      {0.75f,
       {{{1, 2}, {1, 2}, {0.25f, 0.5f}},
        {{0.3f, -4}, {0x1.333332p-1f, -0x1.6db6dcp+0f}, {0x1.0cccccp-2f, -0.625f}},
        {{0.1f, 7}, {0x1.88fe9cp-2f, 0x1.1bacfap+1f}, {0x1.c66664p-3f, 1.28125f}},
        {{8, 1e-3f}, {0x1.95a678p+1f, 0x1.67f4dcp+0f}, {0x1.154cccp+1f, 0x1.ec20c4p-1f}}}},
      {0.9f,
       {{{1, 2}, {1, 2}, {0x1.9999ap-4f, 0x1.9999ap-3f}},
        {{0.3f, -4}, {0x1.435e5p-1f, -0x1.286bc6p+0f}, {0x1.eb8526p-4f, -0x1.c28f6p-3f}},
        {{0.1f, 7}, {0x1.bddfdep-2f, 0x1.da36cap+0f}, {0x1.e353fep-4f, 0x1.01062ap-1f}},
        {{8, 1e-3f}, {0x1.5149ecp+1f, 0x1.50653ep+0f}, {0x1.cff97ap-1f, 0x1.cebee8p-2f}}}}};
  for (const auto& [decay, calls] : cases) {
    v1::ModelSpec model;
    for (const auto& variable : layout_->variables()) *model.add_variables() = variable.spec;
    for (const auto& op : layout_->update_ops()) *model.add_update_ops() = op.spec;
    model.mutable_update_ops(0)->set_decay(decay);
    model.mutable_update_ops(0)->set_zero_debias(true);
    const auto layout = std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
    ValueVersions values(layout, v1::DT_FLOAT, kSpare, false);
    Start(&values);
    const auto elements = [&](const ParameterLayout::Variable& variable) {
      const float* const first = values.Current(variable.flat_offset);
      return std::vector<float>(first, first + variable.elements);
    };
    // The first update has the values of two slots.
    for (size_t i = 1; i < calls.size(); ++i) {
      std::vector<std::vector<std::vector<float>>> updates = {{calls[i].value, {1}}};
      if (i == 1) updates.insert(updates.begin(), {calls[0].value, {1}});
      values.BeginUpdate();
      values.FoldUpdates(updates);
      values.Commit();
      EXPECT_EQ(elements(layout->variables()[1]), calls[i].mean) << decay << " " << i;
      EXPECT_EQ(elements(layout->update_state()[0]), calls[i].biased) << decay << " " << i;
      EXPECT_EQ(elements(layout->update_state()[1]), std::vector<float>{static_cast<float>(i + 1)});
    }
  }
}

TEST_F(ValueVersionsTest, WorkersGetTrainableSegmentsRounded) {
  ValueVersions values(layout_, v1::DT_BFLOAT16, kSpare, false);
  const auto expect = [&](float value) {
    uint16_t rounded = 0;
    Encode16(v1::DT_BFLOAT16, 1, &value, &rounded);
    EXPECT_EQ(values.published()->type, v1::DT_BFLOAT16);
    EXPECT_EQ(values.Current(w().flat_offset)[2], value);
    EXPECT_EQ(values.published()->encoded->as<uint16_t>()[w().flat_offset + 2], rounded);
  };
  Start(&values);
  expect(0.1f);
  Update(&values, 0.3f);
  expect(0.3f);
}

TEST_F(ValueVersionsTest, VersionsShareConstants) {
  v1::ModelSpec model;
  for (const auto& variable : layout_->variables()) *model.add_variables() = variable.spec;
  model.add_update_ops()->set_variable("count");
  const auto layout = std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
  const ParameterLayout::Variable& mean = layout->variables()[1];
  ASSERT_TRUE(mean.constant);
  ValueVersions values(layout, v1::DT_FLOAT, kSpare, false);
  values.Renew(/*pool=*/nullptr);
  for (const auto& variable : layout->variables()) {
    std::fill_n(values.Current(variable.flat_offset), variable.elements, 0.1f);
  }
  values.PublishCurrent();
  const auto before = values.published();
  EXPECT_EQ(before->flat->size(), static_cast<size_t>(layout->constants_offset()) * sizeof(float));
  Update(&values, 3);
  const auto after = values.published();
  EXPECT_NE(after->flat, before->flat);
  EXPECT_EQ(after->constants, before->constants) << "an update copies nothing of them";
  values.CopyConstants({1});
  values.Current(mean.flat_offset)[1] = 7;
  values.PublishCurrent();
  const auto set = values.published();
  EXPECT_EQ(set->flat, after->flat);
  EXPECT_GT(set->constants->editions[1], after->constants->editions[1]);
  const ParameterLayout::Segment& segment = layout->segments()[mean.first_segment];
  EXPECT_EQ(set->Segment(*layout, segment).Contiguous(1, 1)[0], 7);
  EXPECT_EQ(before->Segment(*layout, segment).Contiguous(1, 1)[0], 0.1f);
  Update(&values, 4);
  EXPECT_EQ(values.published()->constants, set->constants);
  values.Renew(/*pool=*/nullptr);
  EXPECT_GT(values.constants()->editions[1], set->constants->editions[1]) << "a number stands for one value";
}

TEST_F(ValueVersionsTest, TakeTurnsInTwoBuffers) {
  ValueVersions values(layout_, v1::DT_BFLOAT16, kSpare, false);
  Start(&values);
  std::set<const AlignedBuffer*> flat, encoded;
  for (int i = 0; i < 10; ++i) {
    Update(&values, 1);
    flat.insert(values.published()->flat.get());
    encoded.insert(values.published()->encoded.get());
  }
  EXPECT_EQ(flat.size(), 2u);
  EXPECT_EQ(encoded.size(), 2u);
}

}  // namespace
}  // namespace lockstep

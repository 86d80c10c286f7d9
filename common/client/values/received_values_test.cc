#include "lockstep/common/client/values/received_values.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns a layout with the variables "a" [2] and "b" [1].
ParameterLayout TestLayout() {
  v1::ModelSpec model;
  for (const int elements : {2, 1}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(elements == 2 ? "a" : "b");
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(elements);
    variable->set_trainable(true);
  }
  return ParameterLayout::Create(model).value();
}

class ReceivedValuesTest : public ::testing::Test {
 protected:
  // Receives a variable of the version of `step`, with all elements equal to the step.
  void Receive(int64_t step, int64_t variable) {
    const std::vector<float> content(variable == 0 ? 2 : 1, static_cast<float>(step));
    StepPiece piece;
    piece.variable = variable;
    piece.content = FloatChunks(content.data(), static_cast<int64_t>(content.size()));
    const absl::Status status = values_.Receive(step, piece);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Receives one element of "a".
  void ReceivePart(int64_t step, int64_t offset) {
    const auto content = static_cast<float>(step);
    StepPiece piece;
    piece.offset = offset;
    piece.content = FloatChunks(&content, 1);
    ASSERT_TRUE(values_.Receive(step, piece).ok());
  }
  void ReceiveAll(int64_t step) {
    Receive(step, 1);
    Receive(step, 0);
  }
  // Checks that the version of `step` is complete.
  void ExpectTaken(int64_t step) {
    const auto taken = values_.Take(step);
    ASSERT_TRUE(taken.ok()) << taken.status();
    for (const float value : {(**taken)[0][0], (**taken)[0][1], (**taken)[1][0]}) EXPECT_EQ(value, step);
  }

  const ParameterLayout layout_ = TestLayout();
  VariableBuffers buffers_{layout_, sizeof(float)};
  ReceivedValues values_{&layout_, v1::DT_FLOAT, &buffers_};
};

TEST_F(ReceivedValuesTest, AVersionIsTakenWhenItIsComplete) {
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(0).status()));
  Receive(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(0).status()));
  Receive(0, 1);
  ExpectTaken(0);
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(1).status()));
}

TEST_F(ReceivedValuesTest, ThePieceThatComesLastCounts) {
  ReceiveAll(7);
  const std::vector<float> set = {0.5f};
  StepPiece piece;
  piece.variable = 1;
  piece.content = FloatChunks(set.data(), 1);
  ASSERT_TRUE(values_.Receive(7, piece).ok());
  const auto taken = values_.Take(7);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((**taken)[0][1], 7);
  EXPECT_EQ((**taken)[1][0], 0.5f);
  values_.Release();
  Receive(7, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(7).status())) << "what is arriving again is not complete";
}

TEST_F(ReceivedValuesTest, KeepsTheUsedVersionWhileReceiving) {
  ReceiveAll(7);
  const auto taken = values_.Take(7);
  ASSERT_TRUE(taken.ok());
  ReceiveAll(8);
  EXPECT_EQ((**taken)[0][1], 7);
  Receive(9, 0);
  EXPECT_EQ((**taken)[0][1], 7) << "even if the chief sends more than it may";
  EXPECT_EQ((**taken)[1][0], 7);
}

// A waiting worker can take a token for the newest complete version, whatever it has received since.
TEST_F(ReceivedValuesTest, WaitingKeepsTheNewestCompleteVersion) {
  ReceiveAll(3);
  ExpectTaken(3);
  values_.Release();
  ReceiveAll(4);
  for (int64_t step = 4; step < 9; ++step) {
    Receive(step + 1, 0);
    ExpectTaken(step);
    values_.Release();
    Receive(step + 1, 1);
    ExpectTaken(step);
    values_.Release();
  }
  ExpectTaken(9);
}

TEST(ConstantValuesTest, ConstantsOutliveVersions) {
  v1::ModelSpec model;
  const ParameterLayout trained = TestLayout();
  for (const auto& variable : trained.variables()) *model.add_variables() = variable.spec;
  model.mutable_variables(0)->set_trainable(false);
  const ParameterLayout layout = ParameterLayout::Create(model).value();
  VariableBuffers buffers(layout, sizeof(float));
  ReceivedValues values(&layout, v1::DT_FLOAT, &buffers);
  const auto receive = [&](int64_t step, int64_t variable, int64_t offset, std::vector<float> content) {
    StepPiece piece;
    piece.variable = variable;
    piece.offset = offset;
    piece.content = FloatChunks(content.data(), static_cast<int64_t>(content.size()));
    return values.Receive(step, piece);
  };
  ASSERT_TRUE(receive(3, 0, 0, {1}).ok());
  ASSERT_TRUE(receive(3, 1, 0, {3}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(values.Take(3).status())) << "a part of the constant variable is missing";
  ASSERT_TRUE(receive(3, 0, 1, {2}).ok());
  for (const float step : {3.0f, 4.0f, 5.0f}) {
    if (step > 3) {
      ASSERT_TRUE(receive(static_cast<int64_t>(step), 1, 0, {step}).ok());
    }
    const auto taken = values.Take(static_cast<int64_t>(step));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ((**taken)[0][0], 1);
    EXPECT_EQ((**taken)[0][1], 2);
    EXPECT_EQ((**taken)[1][0], step);
    EXPECT_TRUE(absl::IsInvalidArgument(receive(6, 0, 0, {9}))) << "the worker computes with it";
    EXPECT_EQ((**taken)[0][0], 1);
    values.Release();
  }
  // The chief's program sets the variable. The version does not change.
  ASSERT_TRUE(receive(5, 0, 1, {7}).ok());
  const auto taken = values.Take(5);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((**taken)[0][1], 7);
  EXPECT_EQ((**taken)[1][0], 5);
}

TEST_F(ReceivedValuesTest, AVersionThatIsReplacedMakesRoom) {
  ReceiveAll(3);
  const float* const third = (**values_.Take(3))[0];
  ReceiveAll(4);
  SentBuffer other = buffers_.Get(0);
  EXPECT_NE(other.as<float>(), third) << "it is computed with";
  values_.Release();
  ExpectTaken(4);
  EXPECT_EQ(buffers_.Get(0).as<float>(), third);
}

TEST_F(ReceivedValuesTest, ReceivesAValueInAGradientsPlace) {
  ReceiveAll(3);
  ExpectTaken(3);
  SentBuffer gradient = buffers_.Get(0);
  const float* const place = gradient.as<float>();
  buffers_.PutSent(0, std::move(gradient));
  values_.Release();
  ReceiveAll(4);
  EXPECT_EQ((**values_.Take(4))[0], place);
}

// The chief can complete a part from another worker's copy before it has received all of this worker's gradient.
TEST_F(ReceivedValuesTest, EarlyValueDoesNotOverwriteGradient) {
  ReceiveAll(3);
  ExpectTaken(3);
  SentBuffer gradient = buffers_.Get(0);
  float* const place = gradient.as<float>();
  place[0] = 30;
  place[1] = 31;
  std::shared_ptr<const void> first = gradient.Hold(0, 1);
  const std::shared_ptr<const void> second = gradient.Hold(1, 1);
  buffers_.PutSent(0, std::move(gradient));
  values_.Release();
  first.reset();
  ReceivePart(4, 0);
  EXPECT_EQ(place[0], 4);
  Receive(4, 1);
  ReceivePart(4, 1);
  EXPECT_EQ(place[1], 31) << "the sender reads it";
  ExpectTaken(4);
  EXPECT_NE((**values_.Take(4))[0], place);
}

// A hostile chief may send one variable several times and another not at all. Each variable must still have memory,
// whatever it contains.
TEST_F(ReceivedValuesTest, APieceThatComesTwiceCanBeRead) {
  Receive(3, 1);
  Receive(3, 0);
  values_.Take(3).value();
  for (int i = 0; i < 3; ++i) Receive(4, 1);
  const auto taken = values_.Take(4);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ((**taken)[1][0], 4);
  EXPECT_NE((**taken)[0], nullptr);
}

TEST_F(ReceivedValuesTest, AVersionThatWasReplacedIsGone) {
  for (const int64_t step : {7, 8}) {
    ReceiveAll(step);
    ExpectTaken(step);
    values_.Release();
  }
  buffers_.PutSent(0, buffers_.Get(0));
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(7).status()));
  ExpectTaken(8);
}

TEST_F(ReceivedValuesTest, BeforeTheFirstVersionThereIsNone) {
  for (const int64_t step : {-1, 0}) EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(step).status())) << step;
}

TEST_F(ReceivedValuesTest, APartNeverReplacesACompleteVersion) {
  ReceiveAll(3);
  for (int64_t step = 4; step < 9; ++step) Receive(step, 0);
  ExpectTaken(3);
}

TEST(ReceivedIntegersTest, AreCopiedInTheirType) {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT trainable: true }
    variables { name: "seen" dtype: DT_INT64 shape: 2 }
    variables { name: "flags" dtype: DT_BOOL shape: 3 }
    update_ops { variable: "seen" kind: ASSIGN_ADD }
  )",
                                                            &model));
  const ParameterLayout layout = ParameterLayout::Create(model).value();
  VariableBuffers buffers(layout, sizeof(float));
  ReceivedValues values(&layout, v1::DT_BFLOAT16, &buffers);
  const uint16_t one = 0x3f80;
  const int64_t seen[] = {5, int64_t{1} << 40};
  const bool flags[] = {true, false, true};
  const auto piece = [](int64_t variable, int64_t offset, const FloatChunks& content) {
    StepPiece made;
    made.variable = variable;
    made.offset = offset;
    made.content = content;
    return made;
  };
  ASSERT_TRUE(values.Receive(3, piece(0, 0, FloatChunks(v1::DT_BFLOAT16, &one, 1))).ok());
  // An element arrives in two runs.
  FloatChunks second(v1::DT_INT64, &seen[1], 0);
  second.Append({reinterpret_cast<const char*>(&seen[1]), 3});
  second.Append({reinterpret_cast<const char*>(&seen[1]) + 3, 5});
  ASSERT_TRUE(values.Receive(3, piece(1, 1, second)).ok());
  ASSERT_TRUE(values.Receive(3, piece(1, 0, FloatChunks(v1::DT_INT64, seen, 1))).ok());
  EXPECT_FALSE(values.Take(3).ok()) << "the constant has not arrived";
  ASSERT_TRUE(values.Receive(3, piece(2, 1, FloatChunks(v1::DT_BOOL, &flags[1], 2))).ok());
  ASSERT_TRUE(values.Receive(3, piece(2, 0, FloatChunks(v1::DT_BOOL, flags, 1))).ok());
  const auto taken = values.Take(3);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((**taken)[0][0], 1);
  EXPECT_EQ(std::memcmp((**taken)[1], seen, sizeof(seen)), 0);
  EXPECT_EQ(std::memcmp((**taken)[2], flags, sizeof(flags)), 0);
  EXPECT_EQ(values.Receive(4, piece(1, 0, FloatChunks(v1::DT_FLOAT, seen, 1))).message(),
            "a value of seen is float32, expected int64");
}

}  // namespace
}  // namespace lockstep

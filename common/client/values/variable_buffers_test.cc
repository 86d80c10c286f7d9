#include "lockstep/common/client/values/variable_buffers.h"

#include <memory>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

ParameterLayout Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
           variables { name: "b" dtype: DT_FLOAT shape: 5 trainable: true })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

class VariableBuffersTest : public ::testing::Test {
 protected:
  VariableBuffers buffers_{Layout(), sizeof(float)};
};

TEST_F(VariableBuffersTest, WhatNobodyNeedsIsGivenOutAgain) {
  SentBuffer first = buffers_.Get(1);
  const float* const place = first.as<float>();
  const SentBuffer second = buffers_.Get(1);
  buffers_.Put(1, std::move(first));
  EXPECT_NE(buffers_.Get(0).as<float>(), place) << "of another variable";
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

TEST_F(VariableBuffersTest, AGradientThatIsOnItsWayTakesInTheNextValue) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  const std::shared_ptr<const void> sending = gradient.Hold(2, 3);
  buffers_.PutSent(1, std::move(gradient));
  SentBuffer value = buffers_.GetForParts(1);
  EXPECT_EQ(value.as<float>(), place);
  EXPECT_TRUE(value.IsFree(0, 2));
  EXPECT_FALSE(value.IsFree(2, 3));
  EXPECT_NE(buffers_.GetForParts(1).as<float>(), place) << "once";
}

TEST_F(VariableBuffersTest, AGradientIsNotWrittenWhereOneIsStillOnItsWay) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  std::shared_ptr<const void> sending = gradient.Hold(0, 5);
  buffers_.PutSent(1, std::move(gradient));
  SentBuffer next = buffers_.Get(1);
  EXPECT_NE(next.as<float>(), place);
  EXPECT_TRUE(next.IsFree());
  sending.reset();
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

TEST_F(VariableBuffersTest, OfTwoGradientsTheLaterTakesInTheNextValue) {
  SentBuffer first = buffers_.Get(1);
  const float* const first_place = first.as<float>();
  std::shared_ptr<const void> sending = first.Hold(0, 5);
  buffers_.PutSent(1, std::move(first));
  SentBuffer second = buffers_.Get(1);
  const float* const second_place = second.as<float>();
  buffers_.PutSent(1, std::move(second));
  SentBuffer value = buffers_.GetForParts(1);
  EXPECT_EQ(value.as<float>(), second_place);
  SentBuffer third = buffers_.GetForParts(1);
  EXPECT_NE(third.as<float>(), first_place);
  EXPECT_NE(third.as<float>(), second_place);
  sending.reset();
  EXPECT_EQ(buffers_.Get(1).as<float>(), first_place);
}

TEST_F(VariableBuffersTest, AGradientThatHasArrivedMakesRoomForOneOfTheSameStep) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  gradient.Hold(0, 5).reset();
  buffers_.PutSent(1, std::move(gradient));
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

}  // namespace
}  // namespace lockstep

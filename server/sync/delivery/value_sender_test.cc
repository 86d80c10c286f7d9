#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/delivery/value_delivery.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSegment = ParameterLayout::kSegmentElements;

ParameterLayout LayoutOf(int64_t elements) {
  v1::ModelSpec model;
  v1::VariableSpec* variable = model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->add_shape(elements);
  variable->set_trainable(true);
  return ParameterLayout::Create(model).value();
}

std::shared_ptr<const PublishedValues> ValuesOf(const ParameterLayout& layout) {
  auto values = std::make_shared<PublishedValues>();
  values->flat = std::make_shared<AlignedBuffer>(static_cast<size_t>(layout.flat_elements()) * sizeof(float));
  return values;
}

int64_t ElementsOf(const StepReplyFrame& reply) {
  int64_t elements = 0;
  for (const StepPiece& piece : reply.values) elements += piece.content.size();
  return elements;
}

class ValueSenderTest : public ::testing::Test {
 protected:
  // Fills a reply from `segments`. Returns the number of the segment in each piece.
  std::vector<int64_t> Fill(const std::vector<int>& segments) {
    StepReplyFrame reply;
    feed_.Fill(segments, values_, &reply);
    version_ = reply.values_step;
    std::vector<int64_t> sent;
    for (const StepPiece& piece : reply.values) sent.push_back(piece.offset / kSegment);
    return sent;
  }

  const ParameterLayout layout_ = LayoutOf(3 * kSegment);
  const std::shared_ptr<const PublishedValues> values_ = ValuesOf(layout_);
  ValueSender feed_{&layout_};
  int64_t version_ = -1;
};

TEST_F(ValueSenderTest, SendsEachSegmentOnceInTheGivenOrder) {
  EXPECT_EQ(feed_.Advance(7, /*may_run_ahead=*/true), 7);
  EXPECT_FALSE(feed_.holds(7));
  EXPECT_THAT(Fill({2, 0, 1}), ElementsAre(2, 0, 1));
  EXPECT_EQ(version_, 7);
  EXPECT_TRUE(feed_.holds(7));
  EXPECT_THAT(Fill({2, 0, 1}), IsEmpty());
}

TEST_F(ValueSenderTest, SendsAgainWhatWasSetSinceItWasSent) {
  feed_.Advance(7, true);
  Fill({2, 0});
  feed_.SendAgain(6, {2, 0, 1}, {2});
  EXPECT_THAT(Fill({2, 0}), IsEmpty()) << "of another step";
  feed_.SendAgain(7, {2, 0, 1}, {0, 1});
  feed_.SendAgain(7, {2, 0, 1}, {0});
  EXPECT_TRUE(feed_.HasNext(7, true, 3));
  EXPECT_THAT(Fill({2, 0, 1}), ElementsAre(0, 1)) << "1 was not sent before";
  EXPECT_TRUE(feed_.holds(7));
  feed_.SendAgain(7, {2, 0, 1}, {2});
  EXPECT_FALSE(feed_.holds(7));
  EXPECT_EQ(feed_.Advance(7, true), 7) << "it has yet to be complete";
  EXPECT_THAT(Fill({2, 0, 1}), ElementsAre(2));
  EXPECT_EQ(feed_.Advance(7, true), 8);
}

TEST_F(ValueSenderTest, RunsAheadOnlyFromACompleteVersion) {
  feed_.Advance(7, true);
  EXPECT_EQ(feed_.Advance(7, true), 7);
  Fill({0, 1, 2});
  EXPECT_EQ(feed_.Advance(7, /*may_run_ahead=*/false), 7);
  EXPECT_EQ(feed_.Advance(7, /*may_run_ahead=*/true), 8);
  EXPECT_THAT(Fill({1}), ElementsAre(1));
  EXPECT_THAT(Fill({1, 2}), ElementsAre(2));
  EXPECT_EQ(version_, 8);
}

// A worker that has been sent part of the next step's values may get another token for the current step, and can still
// compute it.
TEST_F(ValueSenderTest, StillHoldsAVersionWhileTheNextComesIn) {
  feed_.Advance(7, true);
  Fill({0, 1, 2});
  feed_.Advance(7, true);
  Fill({1});
  EXPECT_TRUE(feed_.holds(7));
  EXPECT_FALSE(feed_.holds(8));
  // The worker still holds version 7 if it receives all of version 8 before the step is committed.
  Fill({1, 0, 2});
  EXPECT_TRUE(feed_.holds(7));
  EXPECT_TRUE(feed_.holds(8));
  // The commit makes version 8 current. Nothing is sent twice.
  EXPECT_EQ(feed_.Advance(8, false), 8);
  EXPECT_THAT(Fill({1, 0, 2}), IsEmpty());
}

TEST_F(ValueSenderTest, GoesOnWithAVersionThatBecameCurrent) {
  feed_.Advance(7, true);
  Fill({0, 1, 2});
  feed_.Advance(7, true);
  Fill({2});
  EXPECT_EQ(feed_.Advance(8, true), 8);
  EXPECT_THAT(Fill({2, 0, 1}), ElementsAre(0, 1));
  EXPECT_TRUE(feed_.holds(8));
}

// A version for a slow worker is superseded before it has been sent completely.
TEST_F(ValueSenderTest, StartsAgainWhenAVersionIsOverBeforeItWasSent) {
  feed_.Advance(7, true);
  Fill({0});
  EXPECT_EQ(feed_.Advance(9, true), 9);
  EXPECT_THAT(Fill({0, 1, 2}), ElementsAre(0, 1, 2));
  EXPECT_FALSE(feed_.holds(7));
  EXPECT_TRUE(feed_.holds(9));
}

// "w" is trained. "base", which has two segments, and "scale", which has one, are constant.
class ConstantSenderTest : public ::testing::Test {
 protected:
  ConstantSenderTest() {
    v1::ModelSpec model;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(R"pb(
                                                        variables { name: "base" dtype: DT_FLOAT shape: 65537 }
                                                        variables { name: "w" dtype: DT_FLOAT shape: 2 trainable: true }
                                                        variables { name: "scale" dtype: DT_FLOAT })pb",
                                                      &model));
    layout_ = ParameterLayout::Create(model).value();
  }
  // Returns a version whose constant variables have these editions.
  std::shared_ptr<const PublishedValues> Version(int64_t base, int64_t scale) const {
    auto constants = std::make_shared<ConstantValues>();
    constants->flat = std::make_shared<AlignedBuffer>(static_cast<size_t>(layout_.constant_elements()) * sizeof(float));
    constants->editions = {base, 0, scale};
    auto values = std::make_shared<PublishedValues>();
    values->flat = std::make_shared<AlignedBuffer>(static_cast<size_t>(layout_.constants_offset()) * sizeof(float));
    values->constants = constants;
    return values;
  }
  // Sends everything that the worker lacks of a version. Returns the variable of each piece.
  static std::vector<int64_t> Fill(ValueSender* sender, const std::shared_ptr<const PublishedValues>& values) {
    std::vector<int64_t> variables;
    for (size_t before = 1; variables.size() != before;) {
      before = variables.size();
      StepReplyFrame reply;
      const bool constants = sender->FillConstants(*values, &reply);
      if (!constants) sender->Fill({2}, values, &reply);
      for (const StepPiece& piece : reply.values) {
        EXPECT_EQ(constants, piece.variable != 1) << "frames of their own";
        variables.push_back(piece.variable);
      }
    }
    return variables;
  }

  ParameterLayout layout_;
};

TEST_F(ConstantSenderTest, SendsConstantsOnce) {
  ValueSender sender(&layout_);
  const auto first = Version(0, 0);
  sender.Advance(7, false);
  EXPECT_FALSE(sender.HoldsConstants(*first));
  EXPECT_THAT(Fill(&sender, first), ElementsAre(0, 0, 2, 1));
  EXPECT_TRUE(sender.HoldsConstants(*first));
  for (const int64_t step : {8, 9}) {
    auto later = std::make_shared<PublishedValues>(*first);
    later->flat = Version(0, 0)->flat;
    sender.Advance(step, false);
    EXPECT_TRUE(sender.HoldsConstants(*later));
    EXPECT_THAT(Fill(&sender, later), ElementsAre(1));
  }
}

TEST_F(ConstantSenderTest, SendsAConstantThatWasSet) {
  ValueSender sender(&layout_);
  sender.Advance(7, false);
  Fill(&sender, Version(0, 0));
  const auto set = Version(0, 1);
  EXPECT_FALSE(sender.HoldsConstants(*set));
  EXPECT_TRUE(sender.holds(7)) << "the rest of the version is the same";
  EXPECT_THAT(Fill(&sender, set), ElementsAre(2));
  EXPECT_TRUE(sender.HoldsConstants(*set));
  EXPECT_THAT(Fill(&sender, Version(5, 1)), ElementsAre(0, 0));
}

// A token for an older version needs that version's constants.
TEST_F(ConstantSenderTest, SendsTheConstantsOfTheVersion) {
  ValueSender sender(&layout_);
  const auto before = Version(0, 0), after = Version(1, 0);
  sender.Advance(7, false);
  Fill(&sender, after);
  EXPECT_FALSE(sender.HoldsConstants(*before));
  EXPECT_THAT(Fill(&sender, before), ElementsAre(0, 0));
  EXPECT_FALSE(sender.HoldsConstants(*after));
}

TEST_F(ConstantSenderTest, KeepsConstantsOfAnOvertakenVersion) {
  v1::ModelSpec model;
  *model.add_variables() = layout_.variables()[0].spec;
  *model.add_variables() = layout_.variables()[1].spec;
  model.mutable_variables(0)->set_shape(0, 20 * kSegment);
  layout_ = ParameterLayout::Create(model).value();
  ValueSender sender(&layout_);
  const auto values = Version(0, 0);
  StepReplyFrame first, second, third;
  sender.Advance(7, false);
  EXPECT_TRUE(sender.FillConstants(*values, &first));
  EXPECT_EQ(ElementsOf(first), 16 * kSegment);
  EXPECT_EQ(first.values_owner.get(), values->constants.get()) << "it keeps no version";
  sender.Advance(9, false);
  EXPECT_TRUE(sender.FillConstants(*values, &second));
  EXPECT_EQ(ElementsOf(second), 4 * kSegment);
  EXPECT_FALSE(sender.FillConstants(*values, &third));
  sender.Fill({20}, values, &third);
  EXPECT_EQ(ElementsOf(third), 2);
  EXPECT_TRUE(sender.holds(9) && sender.HoldsConstants(*values));
}

TEST(ValueSenderFrameTest, CutsLargeVersionsIntoFrames) {
  const ParameterLayout layout = LayoutOf(20 * kSegment);
  ValueSender feed(&layout);
  std::vector<int> order(20);
  std::iota(order.begin(), order.end(), 0);
  const auto values = ValuesOf(layout);
  feed.Advance(0, false);
  StepReplyFrame first, second;
  feed.Fill(order, values, &first);
  EXPECT_EQ(ElementsOf(first), 16 * kSegment);
  EXPECT_EQ(first.values.size(), 16u);
  EXPECT_FALSE(feed.holds(0));
  feed.Fill(order, values, &second);
  EXPECT_EQ(ElementsOf(second), 4 * kSegment);
  EXPECT_TRUE(feed.holds(0));
}

}  // namespace
}  // namespace lockstep

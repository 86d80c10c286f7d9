#include "lockstep/server/sync/policy/slot_audit.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(5);
const absl::Time kStart = absl::FromUnixSeconds(1000);

class SlotAuditTest : public ::testing::Test {
 protected:
  static SlotAudit::Options Options(double fraction, int64_t slots) {
    SlotAudit::Options options;
    options.enabled = true;
    options.fraction = fraction;
    options.seed = 7;
    options.slots = slots;
    options.variables = {"kernel", "bias"};
    return options;
  }
  static SlotAudit::Copy Copy(uint64_t session, uint64_t kernel, uint64_t bias = 1) {
    return {session, "worker-" + std::to_string(session), {kernel, bias}};
  }
  v1::AuditStatus Status() {
    v1::AuditStatus status;
    audit_.FillStatus(&status);
    return status;
  }

  // Audits both of the step's two slots.
  SlotAudit audit_{Options(1, 2), /*step=*/4};
};

TEST_F(SlotAuditTest, AHostThatAlwaysErrsDoesNotFillTheLog) {
  size_t lines = 0;
  for (int64_t step = 5; step < 5 + 1000; ++step) {
    audit_.StartStep(step);
    audit_.OnCopy(step, 0, Copy(10, 5));
    lines += audit_.OnCopy(step, 0, Copy(11, 6)).warnings.size();
  }
  EXPECT_EQ(Status().differences(), 1000);
  EXPECT_EQ(lines, 16u + 5) << "and 32, 64, ... 512";
  EXPECT_EQ(Status().last_difference(),
            "step 1004, slot 0: the gradient of kernel by worker-11 differs from that by worker-10");
}

TEST_F(SlotAuditTest, ARestartedStepHasNoCopies) {
  audit_.OnLeased(0, 10);
  audit_.OnCopy(4, 0, Copy(10, 5));
  EXPECT_TRUE(audit_.Waits(2, kPatience, kStart));
  audit_.RestartStep();
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart));
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(11, 6)).warnings, IsEmpty());
  EXPECT_EQ(Status().compared(), 0);
  EXPECT_THAT(audit_.slots(), ElementsAre(0, 1)) << "they are those of the step";
}

TEST_F(SlotAuditTest, DrawsTheSlotsFromSeedStepAndSlot) {
  int64_t drawn = 0;
  for (int64_t step = 0; step < 200; ++step) {
    const SlotAudit audit(Options(0.25, 10), step), same(Options(0.25, 10), step);
    EXPECT_EQ(audit.slots(), same.slots());
    drawn += static_cast<int64_t>(audit.slots().size());
  }
  EXPECT_NEAR(static_cast<double>(drawn) / 2000, 0.25, 0.04);
  SlotAudit walked(Options(0.25, 10), 0);
  walked.StartStep(1);
  EXPECT_EQ(walked.slots(), SlotAudit(Options(0.25, 10), 1).slots()) << "after a restart, too";
  EXPECT_THAT(SlotAudit(Options(0, 10), 0).slots(), IsEmpty());
  EXPECT_THAT(audit_.slots(), ElementsAre(0, 1));
}

TEST_F(SlotAuditTest, ASlotThatWasBegunWantsACopyOfAnother) {
  EXPECT_FALSE(audit_.Lacks(2)) << "none was begun";
  audit_.OnLeased(1, 10);
  EXPECT_FALSE(audit_.Lacks(1)) << "nobody else is there";
  EXPECT_TRUE(audit_.Lacks(2));
  EXPECT_EQ(audit_.Choose(10, 2), absl::nullopt);
  EXPECT_EQ(audit_.Choose(11, 2), 1);
  audit_.OnLeased(1, 11);
  EXPECT_FALSE(audit_.Lacks(3));
  audit_.OnReleased(11);
  EXPECT_EQ(audit_.Choose(12, 2), 1);
}

TEST_F(SlotAuditTest, AStepWaitsForItsCopiesButNotForEver) {
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart)) << "a single worker computed all before the other came";
  audit_.OnLeased(0, 10);
  EXPECT_TRUE(audit_.OnCopy(4, 0, Copy(10, 5)).status.ok());
  EXPECT_FALSE(audit_.Waits(1, kPatience, kStart));
  EXPECT_TRUE(audit_.Waits(2, kPatience, kStart)) << "the other one could";
  audit_.OnLeased(0, 11);
  EXPECT_TRUE(audit_.Waits(2, kPatience, kStart + kPatience - absl::Milliseconds(1)));
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart + kPatience));
  audit_.StartStep(5);
  EXPECT_EQ(Status().abandoned(), 1);
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart + kPatience));
}

TEST_F(SlotAuditTest, EachCopyThatComesRenewsThePatience) {
  for (const uint64_t session : {10, 11}) audit_.OnLeased(0, session);
  EXPECT_TRUE(audit_.Waits(2, kPatience, kStart));
  audit_.OnCopy(4, 0, Copy(10, 5));
  EXPECT_TRUE(audit_.Waits(2, kPatience, kStart + kPatience));
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart + 2 * kPatience));
}

TEST_F(SlotAuditTest, ASlotThatOneWorkerComputedIsCounted) {
  ASSERT_FALSE(audit_.slots().empty());
  const auto slots = static_cast<int64_t>(audit_.slots().size());
  audit_.StartStep(5);
  EXPECT_EQ(Status().missed(), slots);
  EXPECT_EQ(Status().abandoned(), 0);
}

TEST_F(SlotAuditTest, EqualCopiesAreCounted) {
  audit_.OnLeased(0, 10);
  audit_.OnLeased(0, 11);
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(10, 5)).warnings, IsEmpty());
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(10, 6)).warnings, IsEmpty()) << "the same worker again";
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(11, 5)).warnings, IsEmpty());
  EXPECT_FALSE(audit_.Waits(3, kPatience, kStart));
  EXPECT_FALSE(audit_.Lacks(3));
  EXPECT_EQ(Status().compared(), 1);
  EXPECT_EQ(Status().differences(), 0);
  EXPECT_TRUE(audit_.CheckCommit().ok());
}

TEST_F(SlotAuditTest, AThirdCopyDecidesBetweenTwoThatDiffer) {
  audit_.OnLeased(0, 10);
  audit_.OnLeased(0, 11);
  audit_.OnCopy(4, 0, Copy(10, 5));
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(11, 6, 2)).warnings,
              ElementsAre("step 4, slot 0: the gradient of kernel, and those of 1 more variables, by worker-11 differs "
                          "from that by worker-10"));
  EXPECT_FALSE(audit_.Waits(2, kPatience, kStart)) << "there is no third one";
  EXPECT_TRUE(audit_.Waits(3, kPatience, kStart));
  EXPECT_EQ(audit_.Choose(11, 3), absl::nullopt);
  EXPECT_EQ(audit_.Choose(12, 3), 0);
  audit_.OnLeased(0, 12);
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(12, 6, 2)).warnings,
              ElementsAre("step 4, slot 0: the gradient of kernel, and those of 1 more variables, by worker-11 differs "
                          "from that by worker-10; worker-10 is outvoted by worker-11 and worker-12"));
  EXPECT_FALSE(audit_.Waits(4, kPatience, kStart));
  EXPECT_EQ(Status().compared(), 2);
  EXPECT_EQ(Status().differences(), 2) << "both differ from the first one";
  EXPECT_EQ(Status().last_difference().find("step 4, slot 0"), 0u);
}

TEST_F(SlotAuditTest, ThreeThatDifferAreUndecided) {
  for (const uint64_t session : {10, 11}) audit_.OnCopy(4, 0, Copy(session, session));
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(12, 12)).warnings,
              ElementsAre("step 4, slot 0: the gradient of kernel by worker-11 differs from that by worker-10; so does "
                          "that by worker-12 from both"));
}

TEST_F(SlotAuditTest, ALateCopyIsHeldAgainstThoseOfItsStep) {
  audit_.OnCopy(4, 0, Copy(10, 5));
  audit_.StartStep(5);
  EXPECT_THAT(audit_.OnCopy(4, 0, Copy(11, 6)).warnings, ElementsAre(::testing::HasSubstr("step 4, slot 0")));
  EXPECT_THAT(audit_.OnCopy(5, 0, Copy(11, 6)).warnings, IsEmpty()) << "the first of its step";
  audit_.StartStep(6);
  EXPECT_THAT(audit_.OnCopy(4, 1, Copy(11, 7)).warnings, IsEmpty()) << "too late";
  EXPECT_EQ(Status().compared(), 1);
}

TEST_F(SlotAuditTest, ADifferenceFailsTheRunIfItIsToo) {
  SlotAudit::Options options = Options(1, 2);
  options.fails = true;
  SlotAudit audit(options, 4);
  audit.OnCopy(4, 0, Copy(10, 5));
  EXPECT_TRUE(audit.CheckCommit().ok());
  EXPECT_TRUE(audit.OnCopy(4, 0, Copy(11, 6)).failure.ok()) << "a third one may name who errs";
  EXPECT_TRUE(absl::IsDataLoss(audit.CheckCommit()));
  EXPECT_TRUE(absl::IsDataLoss(audit.OnCopy(4, 0, Copy(12, 6)).failure));

  SlotAudit late(options, 4);
  late.OnCopy(4, 0, Copy(10, 5));
  late.StartStep(5);
  EXPECT_TRUE(absl::IsDataLoss(late.OnCopy(4, 0, Copy(11, 6)).failure));
  EXPECT_TRUE(audit_.CheckCommit().ok());
}

TEST_F(SlotAuditTest, ACopyHasADigestForEachVariable) {
  EXPECT_TRUE(absl::IsInvalidArgument(audit_.OnCopy(4, 0, {10, "worker-10", {}}).status));
  EXPECT_TRUE(absl::IsInvalidArgument(audit_.OnCopy(4, 0, {10, "worker-10", {1, 2, 3}}).status));
  SlotAudit::Options options = Options(1, 2);
  options.enabled = false;
  EXPECT_TRUE(SlotAudit(options, 4).OnCopy(4, 0, {10, "worker-10", {}}).status.ok());
}

}  // namespace
}  // namespace lockstep

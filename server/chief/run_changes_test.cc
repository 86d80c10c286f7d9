#include "lockstep/server/chief/run_changes.h"

#include "gtest/gtest.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/server/chief/training.h"

namespace lockstep {
namespace {

using RunChangesTest = ChiefFixture;

TEST_F(RunChangesTest, AChangeThatAFailureOvertakesSaysWhy) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  Training* const training = chief_->training();
  EXPECT_TRUE(training->Explain(absl::OkStatus()).ok());
  training->Fail(absl::InternalError("Input/output error"));
  const absl::Status held = training->sync()->CheckHeld();
  EXPECT_TRUE(absl::IsCancelled(held)) << held;
  EXPECT_TRUE(absl::IsInternal(training->Explain(held)))
      << "it would look like a stop, after which everything is saved";
}

}  // namespace
}  // namespace lockstep

#include "lockstep/server/optimizer/schedule_registry.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/server/optimizer/learning_rate.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

REGISTER_SCHEDULE("saw", [](int64_t step, double initial) { return initial * static_cast<double>(1 + step % 4); });

TEST(ScheduleRegistryTest, ARegisteredFunctionIsTheRate) {
  config::v1::LearningRate rate;
  rate.set_initial(0.5f);
  rate.set_registered("saw");
  EXPECT_EQ(LearningRateAt(rate, 0), 0.5f);
  EXPECT_EQ(LearningRateAt(rate, 3), 2);
  EXPECT_EQ(LearningRateAt(rate, 4), 0.5f);
  rate.set_warmup_steps(8);
  EXPECT_EQ(LearningRateAt(rate, 3), 1) << "warmup multiplies it";
}

TEST(ScheduleRegistryTest, AnUnknownNameIsAnErrorThatListsAll) {
  EXPECT_THAT(RegisteredSchedules(), Contains("saw"));
  const absl::Status status = FindSchedule("sow").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("registered is \"sow\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("saw"));
}

TEST(ScheduleRegistryTest, ANameIsRegisteredOnce) {
  const ScheduleFunction zero = [](int64_t, double) { return 0.0; };
  EXPECT_EQ(RegisterSchedule("saw", zero).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RegisterSchedule("", zero).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep

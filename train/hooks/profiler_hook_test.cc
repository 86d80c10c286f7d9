#include "lockstep/train/hooks/profiler_hook.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProfilerHookTest : public ::testing::Test {
 protected:
  ProfilerOptions Options() {
    ProfilerOptions options;
    options.period = Period::Steps(2);
    options.output_directory = "/profile";
    options.fs = &fs_;
    options.clock = &clock_;
    return options;
  }

  // Each run takes 3 ms, and 1 ms passes between runs.
  FakeSession::Options Session() {
    FakeSession::Options options;
    options.loss = [this](int64_t) {
      clock_.Advance(absl::Milliseconds(3));
      return 0.5;
    };
    return options;
  }

  MemoryFileSystem fs_;
  SimulatedClock clock_;
};

TEST_F(ProfilerHookTest, WritesATimelineButNotOfTheFirstRun) {
  const auto hook = *ProfilerHook::Create(Options());
  HookedRun run({hook.get()}, Session());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(run.Run().ok());
    clock_.Advance(absl::Milliseconds(1));
  }
  EXPECT_THAT(*fs_.ListDirectory("/profile"), ElementsAre("timeline-2.json", "timeline-4.json"));
  EXPECT_EQ(*ReadFile(&fs_, "/profile/timeline-4.json"),
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
            "{\"name\":\"run\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":8000,\"dur\":3000,"
            "\"args\":{\"global_step\":3,\"loss\":0.5}},\n"
            "{\"name\":\"between runs\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":11000,\"dur\":1000,\"args\":{}},\n"
            "{\"name\":\"run\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":12000,\"dur\":3000,"
            "\"args\":{\"global_step\":4,\"loss\":0.5}},\n"
            "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"session\"}}]}\n");
}

TEST_F(ProfilerHookTest, AFileThatCannotBeWrittenDoesNotEndTheRun) {
  // The path of the directory is already taken by a file.
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/profile", "x").ok());
  const auto hook = *ProfilerHook::Create(Options());
  HookedRun run({hook.get()}, Session());
  EXPECT_TRUE(run.Run(5).ok());
}

TEST_F(ProfilerHookTest, WrongOptionsAreNamed) {
  ProfilerOptions options = Options();
  options.output_directory = "";
  EXPECT_THAT(ProfilerHook::Create(options).status().message(), HasSubstr("output_directory is empty"));
  options.period = Period();
  EXPECT_THAT(ProfilerHook::Create(options).status().message(), HasSubstr("neither steps and time"));
}

}  // namespace
}  // namespace lockstep::train

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/local/local_chief_client.h"
#include "lockstep/tests/simulation/faults.h"
#include "lockstep/tests/simulation/life.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep {
namespace simulation {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class SimulationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { CaptureLogs(); }

  StackPool stacks_;
};

TEST_F(SimulationTest, ALifeWithoutFaultsEndsWell) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Life life(DrawPlan(seed, /*with_faults=*/false), /*transcript_lines=*/1000, &stacks_);
    EXPECT_EQ(life.Run(), "") << life.TranscriptText();
  }
}

TEST_F(SimulationTest, ASeedIsTheSameLifeAgain) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::string transcripts[2];
    for (std::string& transcript : transcripts) {
      Life life(DrawPlan(seed, /*with_faults=*/true), /*transcript_lines=*/100000, &stacks_);
      life.Run();
      transcript = life.TranscriptText();
    }
    ASSERT_EQ(transcripts[0], transcripts[1]) << "seed " << seed;
  }
}

// The lengths of files must not depend on the machine or the build, because a simulated disk becomes full after a
// certain number of bytes.
TEST_F(SimulationTest, FilesNameNeitherThisMachineNorBuild) {
  int records = 0, canaries = 0, events = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Life life(DrawPlan(seed, /*with_faults=*/false), /*transcript_lines=*/0, &stacks_);
    EXPECT_EQ(life.Run(), "");
    MemoryFileSystem* const fs = life.disk()->memory();
    const auto record = ReadRunRecord(fs, "/logdir").value();
    ASSERT_TRUE(record.has_value()) << "seed " << seed;
    EXPECT_EQ(record->build().SerializeAsString(), SimulatedBuild().SerializeAsString());
    if (record->canary().computed_by().empty()) {
      // The canary is empty only after a change, until the next worker that joins declares what it computes with.
      EXPECT_GT(record->change_size(), 0) << "seed " << seed;
    } else {
      EXPECT_THAT(record->declared_by(), MatchesRegex("worker-[0-9] on (chief-host|host-[0-9])"));
      EXPECT_THAT(record->canary().computed_by(), MatchesRegex("worker-[0-9] on (chief-host|host-[0-9])"));
      ++canaries;
    }
    ++records;
    const std::vector<std::string> names = fs->ListDirectory("/logdir").value();
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, "events.")) continue;
      EXPECT_THAT(name, MatchesRegex(".*\\.chief-host(\\.[0-9]+)?"));
      ++events;
    }
  }
  EXPECT_EQ(records, 50);
  EXPECT_GE(canaries, 40);
  EXPECT_GE(events, 50);
}

TEST_F(SimulationTest, WhetherALifeIsRecordedChangesNothing) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Life silent(DrawPlan(seed, /*with_faults=*/true), /*transcript_lines=*/0, &stacks_);
    silent.Run();
    const int64_t turns = silent.turns();
    // Only one life may exist at a time.
    silent.~Life();
    new (&silent) Life(DrawPlan(seed, /*with_faults=*/true), /*transcript_lines=*/1000, &stacks_);
    silent.Run();
    EXPECT_EQ(silent.turns(), turns) << "seed " << seed;
  }
}

TEST_F(SimulationTest, ManyWorkersKeepEveryPromise) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Life life(DrawPlan(seed, /*with_faults=*/true, /*workers=*/40), /*transcript_lines=*/1000, &stacks_);
    EXPECT_EQ(life.Run(), "") << life.TranscriptText();
  }
}

// If each event of a worker woke all others, turns(160) would be about five times as large as turns(20).
TEST_F(SimulationTest, AStepTakesAtMostWLogWTurns) {
  const auto turns = [this](int workers) {
    int64_t sum = 0;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Life life(DrawPlan(seed, /*with_faults=*/false, workers), /*transcript_lines=*/1000, &stacks_);
      EXPECT_EQ(life.Run(), "") << life.TranscriptText();
      sum += life.turns();
    }
    return static_cast<double>(sum) / (workers * std::log2(workers));
  };
  EXPECT_LE(turns(160), 1.5 * turns(20));
}

TEST_F(SimulationTest, ASlowWorkerCostsAtMostATwentieth) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = DrawSlowWorkerPlan(seed);
    std::string transcript;
    EXPECT_EQ(RunLife(plan, /*transcript_lines=*/1000, &stacks_, &transcript), "") << plan.Describe() << transcript;
  }
}

TEST_F(SimulationTest, EveryFaultStrikes) {
  std::set<std::string> missing;
  for (const FaultKind& kind : Faults()) missing.insert(kind.name);
  bool waited = false;  // a contribution has waited for partial sums
  for (uint64_t seed = 1; seed <= 2000 && !(missing.empty() && waited); ++seed) {
    const Plan plan = DrawPlan(seed, /*with_faults=*/true);
    Life life(plan, /*transcript_lines=*/100000, &stacks_);
    life.Run();
    const std::string transcript = life.TranscriptText();
    waited = waited || (!ReadsStreams(plan.config.training()) && absl::StrContains(transcript, " wait\n"));
    for (auto it = missing.begin(); it != missing.end();) {
      it = absl::StrContains(transcript, absl::StrCat(" FAULT        ", *it, "\n")) ? missing.erase(it) : std::next(it);
    }
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
  EXPECT_TRUE(waited);
}

// Compares the reference, which is a plain loop, with Lockstep itself: a chief and a worker in this process, with real
// threads.
TEST_F(SimulationTest, TheReferenceMatchesASingleProcess) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Plan plan = DrawPlan(seed, /*with_faults=*/false);
    // Under FIRST_ARRIVALS, sums are over batches of one stream.
    if (plan.rules.followed || plan.config.training().has_first_arrivals()) continue;
    const Reference reference(plan.config, plan.rules, ChangesOf(plan.config));
    MemoryFileSystem fs;
    {
      Chief::Options options;
      options.fs = &fs;
      options.clock = Clock::Real();
      options.logdir = "/logdir";
      options.config = plan.config;
      options.config.mutable_cluster()->clear_linger_seconds();
      const auto chief = Chief::Create(std::move(options)).value();
      const auto client = NewLocalChiefClient(chief.get());
      TrainingWorker::Options worker_options;
      worker_options.name = "worker";
      worker_options.clock = Clock::Real();
      worker_options.make_workload = [&plan](const config::v1::RunSpec& config) {
        return NewTinyWorkload(config, plan.rules, {});
      };
      TrainingWorker worker(worker_options, client.get());
      const auto running = Executor::Threads()->Start("worker", [&worker] { EXPECT_TRUE(worker.Run().ok()); });
      EXPECT_TRUE(chief->ends()->Wait().ok());
    }
    const auto newest = LatestCheckpoint(&fs, "/logdir").value();
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(StepOfCheckpoint(*newest), reference.LastStep());
    const auto reader = BundleReader::Open(&fs, *newest).value();
    const absl::Status status = reference.CheckCheckpoint(*reader);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(SimulationTest, FindsEndlessWaits) {
  World::Options options;
  World world(options, &stacks_);
  Host* const host = world.AddHost("host");
  world.Start(host, "stuck", world.AddDisk(), [](Process* process) {
    Mutex mutex;
    CondVar never;
    MutexLock lock(&mutex);
    while (!process->ghost()) never.Wait(&mutex);
    return 0;
  });
  EXPECT_EQ(world.scheduler()->Run([] { return false; }, 1000), LifeScheduler::End::kStuck);
  EXPECT_THAT(world.scheduler()->Describe(), HasSubstr("stuck/main waits"));
}

TEST_F(SimulationTest, AKilledProcessChangesNothing) {
  World::Options options;
  World world(options, &stacks_);
  Disk* const disk = world.AddDisk();
  int steps = 0;
  Process* const process = world.Start(world.AddHost("host"), "writer", disk, [&](Process* self) {
    while (!self->ghost()) {
      self->clock()->Sleep(absl::Seconds(1));
      WriteFileAtomically(self->fs(), absl::StrCat("/", ++steps), "").IgnoreError();
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(self->fs()->Exists("/1").status()));
    return 0;
  });
  world.scheduler()->At(2500000000, [&] { world.Kill(process); });
  EXPECT_EQ(world.scheduler()->Run([&] { return !process->alive(); }, kNever), LifeScheduler::End::kDone);
  EXPECT_EQ(steps, 3) << "it ran to its end";
  EXPECT_TRUE(disk->memory()->Exists("/2").value());
  EXPECT_FALSE(disk->memory()->Exists("/3").value());
}

}  // namespace
}  // namespace simulation
}  // namespace lockstep

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lockstep/tests/simulation/plan.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

// The period at which a standby looks at its chief.
constexpr absl::Duration kPeriod = absl::Milliseconds(50);
// The simulated processes compute and read files in no time, so that only the periods at which they look take time.
// They must leave half of the second that docs/cluster.md promises, for the restore.
constexpr absl::Duration kWorkersLimit = absl::Milliseconds(500);

constexpr char kAddressFile[] = "/run/address";

// Simulates runs whose chief is frozen or killed at a random instant, and has a standby.
class TakeoverTest : public ::testing::Test {
 protected:
  enum class Fault { kFreeze, kKill };
  // The workers know both addresses, or a file with the address of the chief that serves.
  enum class Master { kAddresses, kFile };
  // The times from the fault until the standby serves, and until it gives a worker the first token.
  struct Takeover {
    absl::Duration serves = absl::InfiniteDuration();
    absl::Duration continues = absl::InfiniteDuration();
  };

  static void SetUpTestSuite() { CaptureLogs(); }

  Takeover TakeOver(uint64_t seed, absl::Duration lease, Fault fault, Master master) {
    const Plan plan = DrawPlan(seed, /*with_faults=*/false);
    Takeover takeover;
    Instant struck = kNever;
    World::Options options;
    options.seed = seed;
    World world(options, &stacks_);
    Disk* const disk = world.AddDisk();
    EXPECT_TRUE(disk->memory()->CreateDirectory("/run").ok());
    ChiefRole role = NewRole(plan, lease);
    if (master == Master::kFile) role.address_file = kAddressFile;
    role.listen = "first:2222";
    Process* const chief = world.Start(world.AddHost("first"), "chief", disk,
                                       [role](Process* process) { return RunChief(process, role); });
    role.listen = "second:2222";
    role.standby = true;
    role.on_serving = [&](Process*, int64_t, int64_t) { takeover.serves = absl::Nanoseconds(world.now() - struck); };
    role.observer.on_reply = [&](Process*, const std::shared_ptr<Call>&, const StepReplyFrame& reply) {
      if (!reply.token) return;
      takeover.continues = std::min(takeover.continues, absl::Nanoseconds(world.now() - struck));
    };
    Host* const second = world.AddHost("second");
    world.scheduler()->At(absl::ToInt64Nanoseconds(absl::Milliseconds(100)), [&world, second, disk, role] {
      world.Start(second, "standby", disk, [role](Process* process) { return RunChief(process, role); });
    });
    for (int i = 0; i < plan.workers; ++i) StartWorker(absl::StrCat("worker-", i), master, &world, disk);
    world.scheduler()->At(absl::ToInt64Nanoseconds(world.random()->Between(absl::Seconds(1), absl::Seconds(2))),
                          [&, chief] {
                            struck = world.now();
                            fault == Fault::kFreeze ? world.Freeze(chief) : world.Kill(chief);
                          });
    const auto end = world.scheduler()->Run([&] { return takeover.continues < absl::InfiniteDuration(); },
                                            absl::ToInt64Nanoseconds(absl::Minutes(1)));
    EXPECT_EQ(end, LifeScheduler::End::kDone) << world.scheduler()->Describe();
    EXPECT_NE(struck, kNever) << "the standby did not wait";
    return takeover;
  }

 private:
  static ChiefRole NewRole(const Plan& plan, absl::Duration lease) {
    ChiefRole role;
    role.config = plan.config;
    role.config.mutable_cluster()->set_lease_seconds(absl::ToDoubleSeconds(lease));
    role.config.mutable_cluster()->set_chief_wait_seconds(60);
    config::v1::TrainingConfig* const training = role.config.mutable_training();
    training->clear_additional_steps();
    training->clear_unbounded();
    training->set_steps(1000000);
    role.logdir = "/logdir";
    role.beats = true;
    role.on_serving = [](Process*, int64_t, int64_t) {};
    role.on_waited = [](Process*, const absl::Status&, int64_t) {};
    role.observer.on_reply = [](Process*, const std::shared_ptr<Call>&, const StepReplyFrame&) {};
    role.observer.on_open_session = [](const std::string&) {};
    return role;
  }

  static void StartWorker(const std::string& name, Master master, World* world, Disk* disk) {
    WorkerRole role;
    role.name = name;
    role.master =
        master == Master::kFile ? absl::StrCat("file:", kAddressFile) : "grpc://first:2222,grpc://second:2222";
    role.slot_time = absl::Milliseconds(50);
    role.on_slot = [](Process*, const SlotKey&, VariableValues) {};
    role.on_ended = [](Process*, const absl::Status&) {};
    world->Start(world->AddHost(name), name, disk, [role](Process* process) { return RunWorker(process, role); });
  }

  StackPool stacks_;
};

TEST_F(TakeoverTest, AFrozenChiefIsReplacedAfterItsLease) {
  for (const Master master : {Master::kAddresses, Master::kFile}) {
    for (const absl::Duration lease : {absl::Milliseconds(200), absl::Seconds(1), absl::Seconds(5)}) {
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(absl::StrCat(master == Master::kFile ? "file" : "addresses", ", seed ", seed));
        const Takeover takeover = TakeOver(seed, lease, Fault::kFreeze, master);
        // The chief beats just before it freezes, and just after the standby has looked.
        EXPECT_LE(takeover.serves, lease + 2 * kPeriod);
        EXPECT_LE(takeover.continues, lease + kWorkersLimit);
      }
    }
  }
}

TEST_F(TakeoverTest, AKilledChiefIsReplacedAtOnce) {
  for (const Master master : {Master::kAddresses, Master::kFile}) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(absl::StrCat(master == Master::kFile ? "file" : "addresses", ", seed ", seed));
      const Takeover takeover = TakeOver(seed, absl::Seconds(5), Fault::kKill, master);
      EXPECT_LE(takeover.serves, kPeriod);
      EXPECT_LE(takeover.continues, kWorkersLimit);
    }
  }
}

}  // namespace
}  // namespace simulation
}  // namespace lockstep

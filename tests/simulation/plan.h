#ifndef LOCKSTEP_TESTS_SIMULATION_PLAN_H_
#define LOCKSTEP_TESTS_SIMULATION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"
#include "lockstep/tests/simulation/world/random.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// The time, turn or point at which a fault strikes.
struct Trigger {
  enum Kind { kTime, kTurn, kPoint };
  Kind kind = kTime;
  Instant time = 0;
  int64_t turn = 0;
  Point point = Point::kFile;
  int64_t nth = 1;
};

// The configuration and the faults of a life. They are drawn from its seed before it begins.
struct Plan {
  uint64_t seed = 0;
  config::v1::RunSpec config;
  // The configured number of steps, in whatever form it is specified. The rules may end the run earlier.
  int64_t steps = 0;
  RunRules rules;
  // If true, the life has a hundred or more steps and few faults.
  bool is_long = false;
  // If true, the number of workers was given. Otherwise there are at most five.
  bool many_workers = false;
  // The number of peers that join early and do not read.
  int64_t deaf_peers = 0;
  // Chief::Options.
  int64_t old_version_bytes = 0;
  // If true, the end of the run may be requested.
  bool may_be_ended = false;
  // If true, the run may be resumed with different settings.
  bool may_change = false;
  // If true, `lockstep run` restarts the processes. Otherwise the simulation restarts them after random delays.
  bool launcher = false;
  // If true, workers find the chief through an address file. Otherwise they have its address and that of a second
  // chief.
  bool address_file = false;
  // If true, all processes share one machine. Otherwise each has its own.
  bool one_host = false;
  // If true, some workers are programs with hooks.
  bool worker_programs = false;
  int workers = 1;
  // The longest time that a slot takes, by worker, and the shortest, as a fraction of it.
  std::vector<absl::Duration> slot_times;
  double least_part = 0.5;
  // The startup delays in steps, by worker. The first worker has none, so the run reaches these steps.
  std::vector<int64_t> startup_delays;
  LifeScheduler::Options scheduler;
  // If set, the last worker is slow or hangs, and the run must be almost as fast as without it (RunLife).
  struct SlowWorker {
    // The worker hangs at the first slot that it begins at or after this step, and then every 50 steps. If -1, it never
    // hangs. Heartbeats continue.
    int64_t hang_step = -1;
    absl::Duration hang_time;
  };
  absl::optional<SlowWorker> slow_worker;

  struct Fault {
    size_t kind = 0;  // in Faults()
    Trigger trigger;
  };
  std::vector<Fault> faults;
  // The time from which no fault strikes and all earlier faults are undone.
  Instant quiet_at = 0;

  std::string Describe() const;
};

// Draws the plan for a seed, with no faults unless `with_faults`. If `workers` is positive, the run has as many
// workers, and they compute slots: StreamLedger would have to try too many orders of arrival.
Plan DrawPlan(uint64_t seed, bool with_faults, int workers = 0);
// Draws a plan with a slow worker and no faults. DrawPlan does this for a few seeds.
Plan DrawSlowWorkerPlan(uint64_t seed);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_PLAN_H_

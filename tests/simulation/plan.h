#ifndef LOCKSTEP_TESTS_SIMULATION_PLAN_H_
#define LOCKSTEP_TESTS_SIMULATION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"
#include "lockstep/tests/simulation/world/random.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// When a fault strikes.
struct Trigger {
  enum Kind { kTime, kTurn, kPoint };
  Kind kind = kTime;
  Instant time = 0;
  int64_t turn = 0;
  Point point = Point::kFile;
  int64_t nth = 1;
};

// What is to happen in a life, drawn from its seed before it begins.
struct Plan {
  uint64_t seed = 0;
  config::v1::RunSpec config;
  // As configured, whatever form that has; the rules may end the run before.
  int64_t steps = 0;
  RunRules rules;
  // A hundred steps and more, with little else.
  bool is_long = false;
  // Chief::Options.
  int64_t old_version_bytes = 0;
  // Somebody may ask for the end of the run.
  bool may_be_ended = false;
  // The run may be resumed with other settings.
  bool may_change = false;
  // `lockstep run` keeps the processes alive; else somebody does, who has no rules.
  bool launcher = false;
  // Workers find the chief by an address file; else by its address, and that of a second chief.
  bool address_file = false;
  // One machine for all; else one for each.
  bool one_host = false;
  int workers = 1;
  std::vector<absl::Duration> slot_times;  // by worker
  // Of each worker but the first, which has none, so that the run gets there.
  std::vector<int64_t> startup_delays;
  LifeScheduler::Options scheduler;

  struct Fault {
    size_t kind = 0;  // in Faults()
    Trigger trigger;
  };
  std::vector<Fault> faults;
  // From then on nothing more happens to anybody, and all that was done is undone.
  Instant quiet_at = 0;

  std::string Describe() const;
};

// `with_faults`: else nothing happens to anybody.
Plan DrawPlan(uint64_t seed, bool with_faults);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_PLAN_H_

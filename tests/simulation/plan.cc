#include "lockstep/tests/simulation/plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/tests/simulation/faults.h"

namespace lockstep {
namespace simulation {
namespace {

// Fraction of lives that are long. A long life takes as much time as ten others.
constexpr double kLongLives = 0.015;
// Fraction of lives whose workers read input streams, half of them under ASYNC and half under FIRST_ARRIVALS.
constexpr double kStreamLives = 0.4;
// Fraction of lives with a slow worker. Each is two lives of a thousand steps.
constexpr double kSlowWorkerLives = 0.002;
// The longest time that one worker alone may need for a step of many slots.
constexpr absl::Duration kFirstStep = absl::Seconds(2);

config::v1::RunSpec DrawConfig(Random* random) {
  config::v1::RunSpec config;
  config.mutable_training()->set_steps(random->Between(5, 15));
  config.mutable_training()->set_replicas_to_aggregate(random->Chance(0.03) ? random->Between(5, 16)
                                                                            : random->Between(1, 4));
  config.mutable_training()->set_seed(random->Next() >> 32);
  config::v1::InputConfig* const input = config.mutable_input();
  input->set_batch_size(1);
  config::v1::InputConfig::Split* const split = input->add_split();
  split->set_name("train");
  split->mutable_synthetic()->set_examples(4096);
  split->mutable_synthetic()->add_shape(1);
  split->mutable_synthetic()->set_classes(2);
  if (random->Chance(0.3)) {
    config.mutable_optimizer()->mutable_adam();
  } else {
    config.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  }
  config.mutable_optimizer()->mutable_learning_rate()->set_initial(0.05f);
  auto* const checkpoint = config.mutable_checkpoint();
  checkpoint->set_every_seconds(random->Pick<double>({0, 0.05, 0.3, 600}));
  checkpoint->set_every_steps(random->Pick<int64_t>({0, 1, 1, 1, 2, 3, 5}));
  checkpoint->set_keep(random->Pick<int64_t>({0, 1, 2, 5}));
  checkpoint->set_stop_seconds(random->Pick<double>({2, 10, 30}));
  config.mutable_summary()->set_every_steps(random->Pick<int64_t>({0, 1, 100}));
  auto* const cluster = config.mutable_cluster();
  cluster->set_lease_seconds(random->Pick<double>({0.2, 0.5, 1, 3}));
  cluster->set_chief_wait_seconds(random->Pick<double>({0.5, 2, 10, 60}));
  cluster->set_linger_seconds(random->Pick<double>({0, 0, 0, 1}));
  cluster->set_shared_memory(false);
  ApplyDefaults(&config);
  return config;
}

// Draws a rule that ends the run before its configured number of steps, or no rule.
void DrawEnd(Random* random, Plan* plan) {
  config::v1::TrainingConfig* const training = plan->config.mutable_training();
  const int64_t slots = training->replicas_to_aggregate();
  const int64_t step = random->Between(1, plan->steps - 1);
  const int64_t slot = random->Between(0, slots - 1);
  RunRules* const rules = &plan->rules;
  switch (random->Below(8)) {
    case 0:
      rules->batches = random->Between(slots, plan->steps * slots);
      if (random->Chance(0.5)) {
        training->clear_steps();
        training->set_unbounded(true);
      }
      break;
    case 1:
      rules->stop_step = step;
      rules->stop_slot = slot;
      break;
    case 2:
      rules->non_finite_step = step;
      rules->non_finite_slot = slot;
      rules->skips_non_finite = random->Chance(0.5);
      training->set_end_on_non_finite(!rules->skips_non_finite);
      training->set_skip_non_finite(rules->skips_non_finite);
      break;
    default:
      if (random->Chance(0.8)) break;
      training->clear_steps();
      training->set_additional_steps(plan->steps);
  }
}

void DrawProgram(Random* random, const std::vector<absl::Duration>& slot_times, Plan* plan) {
  RunRules* const rules = &plan->rules;
  rules->followed = true;
  rules->hook_time = random->Pick<absl::Duration>({absl::ZeroDuration(), slot_times[0] / 4, 2 * slot_times[0]});
  rules->on_stop = random->Pick<RunRules::OnStop>(
      {RunRules::OnStop::kNothing, RunRules::OnStop::kLeaves, RunRules::OnStop::kRequestsEnd});
  if (random->Chance(0.3) && !rules->skips_non_finite) {
    rules->patience = random->Between(1, 3);
    rules->check_every = random->Between(1, 2);
  }
  if (random->Chance(0.4)) {
    for (int64_t i = random->Between(1, 3); i > 0; --i) {
      rules->assign_at.push_back(random->Between(1, plan->steps - 1));
    }
    if (random->Chance(0.2)) rules->assign_every = 1;
    rules->assigns_by_chance = random->Chance(0.5);
  }
  if (random->Chance(0.3)) {
    for (int64_t i = random->Between(1, 3); i > 0; --i) {
      rules->change_at.push_back(random->Between(1, plan->steps - 1));
    }
    if (random->Chance(0.2)) rules->change_every = 1;
  }
}

// Draws a life with many steps: one with a change every few steps, with peers that do not read, or with hooks that fall
// behind.
void DrawLongLife(Random* random, Plan* plan) {
  plan->is_long = true;
  plan->steps = random->Between(100, 200);
  config::v1::TrainingConfig* const training = plan->config.mutable_training();
  training->Clear();
  training->set_steps(plan->steps);
  training->set_replicas_to_aggregate(random->Between(1, 3));
  training->set_seed(random->Next() >> 32);
  plan->workers = static_cast<int>(random->Between(1, 3));
  plan->slot_times.assign(plan->workers, random->Between(absl::Microseconds(200), absl::Milliseconds(10)));
  plan->startup_delays.assign(plan->workers, 0);
  plan->launcher = plan->address_file = plan->may_be_ended = plan->may_change = false;
  // Without this, a life with a change after each step would not end in time.
  plan->scheduler.longest_stall = std::min(plan->scheduler.longest_stall, absl::Milliseconds(50));
  plan->rules = RunRules();
  RunRules* const rules = &plan->rules;
  rules->followed = true;
  switch (random->Below(4)) {
    case 0:
      rules->assign_every = random->Pick<int64_t>({1, 1, 2, 5});
      break;
    case 1:
      rules->change_every = random->Pick<int64_t>({1, 2, 5});
      // After each change, a worker that is a program loses its session, and may take up to 10 s to open another.
      plan->worker_programs = false;
      break;
    case 2:
      plan->deaf_peers = random->Between(1, 3);
      plan->old_version_bytes = 0;
      plan->scheduler.stall_chance = 0;
      break;
    default:
      rules->hook_time = 8 * plan->slot_times[0] * training->replicas_to_aggregate();
  }
}

// Draws a run whose workers read input streams, with neither a program nor a rule that ends it.
void DrawStreams(Random* random, Plan* plan) {
  plan->steps = random->Between(5, 25);
  plan->rules = RunRules();
  plan->may_change = false;
  plan->config.clear_audit();
  plan->config.mutable_cluster()->clear_max_partial_sums();
  plan->config.mutable_cluster()->set_max_staged_contributions(random->Pick<int64_t>({0, 1, 1, 2}));
  config::v1::TrainingConfig* const training = plan->config.mutable_training();
  training->Clear();
  training->set_steps(plan->steps);
  training->set_seed(random->Next() >> 32);
  if (random->Chance(0.5)) {
    training->mutable_async();
    if (random->Chance(0.5)) training->mutable_async()->set_max_staleness(random->Between(0, 3));
  } else {
    training->set_replicas_to_aggregate(random->Between(1, 3));
    training->mutable_first_arrivals()->set_total_replicas(random->Between(1, 4));
    plan->startup_delays.assign(plan->startup_delays.size(), 0);
  }
  ApplyDefaults(&plan->config);
}

void DrawSlotTimes(Random* random, absl::Duration slot_time, Plan* plan) {
  plan->slot_times.clear();
  plan->startup_delays.clear();
  for (int i = 0; i < plan->workers; ++i) {
    plan->slot_times.push_back(slot_time * (random->Chance(0.2) ? 3 : 1));
    plan->startup_delays.push_back(
        i > 0 && random->Chance(0.2) ? random->Between(1, plan->config.training().steps() - 1) : 0);
  }
}

// Returns the most turns that a life with this many workers may take. A step takes O(W log W).
int64_t MaxTurns(int workers) {
  return LifeScheduler::Options().max_turns + static_cast<int64_t>(5000 * workers * std::log2(workers));
}

// Gives the plan this many workers. In half of the lives, each worker has a slot of every step.
void DrawManyWorkers(Random* random, int workers, Plan* plan) {
  plan->many_workers = true;
  plan->workers = workers;
  const int64_t slots = random->Chance(0.5) ? workers : random->Between(1, workers);
  plan->config.mutable_training()->set_replicas_to_aggregate(slots);
  // The first worker computes the first step alone.
  const absl::Duration longest = std::min(absl::Milliseconds(30), kFirstStep / slots);
  DrawSlotTimes(random, random->Between(longest / 10, longest), plan);
  // Threads of all workers stall, and a step waits for each of them.
  plan->scheduler.stall_chance /= workers;
  plan->scheduler.max_turns = MaxTurns(workers);
}

// Returns a number between 1 and 2^most; all orders of magnitude are equally likely.
int64_t DrawMagnitude(Random* random, int64_t most) {
  return random->Between(1, int64_t{1} << random->Between(0, most));
}

Trigger DrawTrigger(Random* random, Instant horizon, Point often_at) {
  Trigger trigger;
  if (random->Chance(0.4)) {
    trigger.kind = Trigger::kPoint;
    trigger.point = often_at;
    trigger.nth = random->Chance(0.5) ? random->Between(1, 200) : DrawMagnitude(random, 9);
    return trigger;
  }
  switch (random->Below(8)) {
    case 0:
    case 1:
      trigger.kind = Trigger::kTurn;
      trigger.turn = DrawMagnitude(random, 14);
      break;
    case 2:
    case 3:
    case 4:
      trigger.kind = Trigger::kPoint;
      trigger.point = static_cast<Point>(random->Below(static_cast<uint64_t>(Point::kNumPoints)));
      trigger.nth = DrawMagnitude(random, trigger.point == Point::kCall ? 5 : 9);
      break;
    default:
      trigger.time = static_cast<Instant>(random->Below(static_cast<uint64_t>(horizon)));
  }
  return trigger;
}

}  // namespace

Plan DrawSlowWorkerPlan(uint64_t seed) {
  Random random(seed ^ 0x5107);
  Plan plan;
  plan.seed = seed;
  plan.config = DrawConfig(&random);
  plan.steps = 1000;
  config::v1::TrainingConfig* const training = plan.config.mutable_training();
  training->set_steps(plan.steps);
  training->set_replicas_to_aggregate(random.Pick<int64_t>({1, 4}));
  if (random.Chance(0.5)) {
    plan.config.mutable_audit()->set_fraction(0.2);
    plan.config.mutable_audit()->set_on_mismatch(config::v1::AuditConfig::FAIL);
  }
  plan.config.mutable_checkpoint()->set_every_steps(0);
  plan.config.mutable_checkpoint()->set_every_seconds(600);
  plan.config.mutable_cluster()->set_lease_seconds(random.Pick<double>({1, 5}));
  plan.workers = static_cast<int>(random.Between(2, 4));
  // The run takes at least 30 seconds. With a smaller part, the faster of two copies would hide what the worker costs.
  plan.least_part = 0.9;
  plan.slot_times.assign(plan.workers, random.Between(absl::Milliseconds(34), absl::Milliseconds(100)));
  plan.startup_delays.assign(plan.workers, 0);
  plan.quiet_at = absl::ToInt64Nanoseconds(plan.steps * training->replicas_to_aggregate() * plan.slot_times[0]);
  plan.scheduler.locks_between_switches = 200;
  plan.scheduler.max_turns = 20 * LifeScheduler::Options().max_turns;
  Plan::SlowWorker slow;
  switch (random.Below(5)) {
    case 0:
      slow = {random.Chance(0.3) ? 0 : random.Between(1, 100), /*hang_time=*/absl::Hours(1)};
      break;
    case 1:
      slow = {random.Chance(0.3) ? 0 : random.Between(1, 50), random.Between(absl::Seconds(1), absl::Seconds(10))};
      break;
    default:
      plan.slot_times.back() /= random.Pick<double>({0.05, 0.1, 0.5});
  }
  plan.slow_worker = slow;
  return plan;
}

Plan DrawPlan(uint64_t seed, bool with_faults, int workers) {
  if (Random slow(seed ^ 0x510); with_faults && workers == 0 && slow.Chance(kSlowWorkerLives)) {
    return DrawSlowWorkerPlan(seed);
  }
  Random random(seed ^ 0x5eed);
  Plan plan;
  plan.seed = seed;
  plan.config = DrawConfig(&random);
  if (Random audited(seed ^ 0xa0d1); audited.Chance(0.3)) {
    config::v1::AuditConfig* const audit = plan.config.mutable_audit();
    audit->set_fraction(audited.Pick<double>({0, 0.3, 1}));
    // All workers compute the same values, so a difference is the chief's mistake, and the judge notices that the chief
    // fails.
    audit->set_on_mismatch(config::v1::AuditConfig::FAIL);
  }
  // Allows either two old versions, or as many as the tiny model may have.
  if (Random versions(seed ^ 0x01d); versions.Chance(0.5)) plan.old_version_bytes = SyncReplicas::kOldVersionBytes;
  plan.launcher = random.Chance(0.2);
  plan.address_file = !plan.launcher && random.Chance(0.3);
  plan.one_host = plan.launcher || random.Chance(0.2);
  plan.workers = static_cast<int>(random.Between(1, 5));
  const absl::Duration slot_time =
      random.Between(absl::Microseconds(200), random.Chance(0.3) ? absl::Milliseconds(1) : absl::Milliseconds(30));
  DrawSlotTimes(&random, slot_time, &plan);
  plan.scheduler.locks_between_switches = random.Pick<int64_t>({2, 8, 30, 200});
  plan.scheduler.stall_chance = random.Pick<double>({0, 0.01, 0.1, 0.1});
  plan.scheduler.longest_stall =
      random.Pick<absl::Duration>({absl::Milliseconds(1), absl::Milliseconds(50), absl::Milliseconds(200)});
  plan.steps = plan.config.training().steps();
  if (Random many(seed ^ 0x3a9); workers > 0) DrawManyWorkers(&many, workers, &plan);
  // Allows so few partial sums that contributions have to wait. With 1, 2 or 4 slots, none waits: no order of arrival
  // needs more sums than the smallest bound.
  if (Random sums(seed ^ 0x5035); sums.Chance(0.5)) {
    config::v1::TrainingConfig* const training = plan.config.mutable_training();
    if (workers == 0 && sums.Chance(0.5)) training->set_replicas_to_aggregate(sums.Pick<int64_t>({3, 3, 3, 5, 6, 7}));
    plan.config.mutable_cluster()->set_max_partial_sums(LeastPartialSums(training->replicas_to_aggregate()));
  }
  Random library(seed ^ 0x11b);
  DrawEnd(&library, &plan);
  if (!plan.launcher && !plan.address_file && library.Chance(0.5)) DrawProgram(&library, plan.slot_times, &plan);
  plan.may_be_ended = library.Chance(0.15);
  plan.may_change = library.Chance(0.2);
  if (Random programs(seed ^ 0x3092); !plan.launcher) plan.worker_programs = programs.Chance(0.25);
  if (Random lengths(seed ^ 0x1046); workers == 0 && lengths.Chance(kLongLives)) DrawLongLife(&lengths, &plan);
  if (Random policies(seed ^ 0x9011); workers == 0 && !plan.is_long && policies.Chance(kStreamLives)) {
    DrawStreams(&policies, &plan);
  }
  const int64_t slots = plan.config.training().replicas_to_aggregate();
  int64_t slots_in_turn = plan.steps * ((slots + plan.workers - 1) / plan.workers + 1);
  if (plan.many_workers) slots_in_turn += slots;  // of the first step
  const Instant horizon = absl::ToInt64Nanoseconds(slots_in_turn * plan.slot_times[0]);
  plan.quiet_at = horizon;
  if (!with_faults) return plan;
  plan.quiet_at += absl::ToInt64Nanoseconds(random.Chance(0.15) ? absl::Seconds(20) : absl::Seconds(2));
  std::vector<size_t> choices;
  for (size_t i = 0; i < Faults().size(); ++i) {
    if (!Faults()[i].applies(plan)) continue;
    choices.insert(choices.end(), static_cast<size_t>(Faults()[i].weight), i);
  }
  const int64_t faults = random.Between(0, plan.is_long ? 4 : 9);
  // Makes two kinds of faults more frequent, because two faults together may reveal what one does not.
  const std::vector<size_t> favourites = {random.Pick(choices), random.Pick(choices)};
  for (int64_t i = 0; i < faults; ++i) {
    const size_t kind = random.Pick(random.Chance(0.5) ? favourites : choices);
    Trigger trigger = DrawTrigger(&random, horizon, Faults()[kind].often_at);
    if (plan.many_workers) {
      const int64_t most = std::max(1, workers / 3);  // three workers are usual
      trigger.turn *= random.Between(1, most);
      if (trigger.point != Point::kFile && trigger.point != Point::kLook) trigger.nth *= random.Between(1, most);
    }
    plan.faults.push_back({kind, trigger});
  }
  return plan;
}

std::string Plan::Describe() const {
  std::string text = absl::StrCat(
      "seed ", seed, ": ", steps, config.training().additional_steps() > 0 ? " more" : "", " steps",
      config.training().unbounded() ? " at most" : "", ", R ", config.training().replicas_to_aggregate(),
      ReadsStreams(config.training()) ? absl::StrCat(", ", PolicyName(config.training())) : "",
      config.training().async().has_max_staleness()
          ? absl::StrCat(", max_staleness ", config.training().async().max_staleness())
          : "",
      config.optimizer().has_adam() ? ", Adam" : "", ", ", workers, " workers", launcher ? ", launcher" : "",
      address_file ? ", address file" : "", one_host ? ", one host" : "", worker_programs ? ", workers with hooks" : "",
      ", lease ", config.cluster().lease_seconds(), " s",
      config.cluster().max_partial_sums() > 0 ? absl::StrCat(", partial sums ", config.cluster().max_partial_sums())
                                              : "",
      ", chief_wait ", config.cluster().chief_wait_seconds(), " s, saves every ", config.checkpoint().every_steps(),
      " steps and ", config.checkpoint().every_seconds(), " s, keep ", config.checkpoint().keep(),
      old_version_bytes > 0 ? "" : ", two old versions",
      deaf_peers > 0 ? absl::StrCat(", ", deaf_peers, " peers do not read") : "",
      config.has_audit() ? absl::StrCat(", audits ", config.audit().fraction()) : "", rules.Describe(),
      may_be_ended ? ", may be ended" : "", may_change ? ", may be changed" : "", "\n");
  if (slow_worker) {
    absl::StrAppend(&text, "  worker-", workers - 1, " needs up to ", absl::FormatDuration(slot_times.back()),
                    " for a slot, the others ", absl::FormatDuration(slot_times[0]), "\n");
    if (slow_worker->hang_step >= 0) {
      absl::StrAppend(&text, "  worker-", workers - 1, " hangs for ", absl::FormatDuration(slow_worker->hang_time),
                      " at step ", slow_worker->hang_step, " and every 50 steps\n");
    }
  }
  for (size_t i = 0; i < startup_delays.size(); ++i) {
    if (startup_delays[i] > 0) absl::StrAppend(&text, "  worker-", i, " waits for step ", startup_delays[i], "\n");
  }
  for (const Fault& fault : faults) {
    absl::StrAppend(&text, "  ", Faults()[fault.kind].name, " ");
    switch (fault.trigger.kind) {
      case Trigger::kTime:
        absl::StrAppend(&text, "at ", absl::FormatDuration(absl::Nanoseconds(fault.trigger.time)), "\n");
        break;
      case Trigger::kTurn:
        absl::StrAppend(&text, "before turn ", fault.trigger.turn, "\n");
        break;
      case Trigger::kPoint: {
        static constexpr const char* kPoints[] = {"change of files", "look at files", "frame", "reply", "call"};
        absl::StrAppend(&text, "at the ", fault.trigger.nth, ". ", kPoints[static_cast<int>(fault.trigger.point)],
                        "\n");
        break;
      }
    }
  }
  return text;
}

}  // namespace simulation
}  // namespace lockstep

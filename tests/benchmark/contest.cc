#include "lockstep/tests/benchmark/contest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/benchmark/spread.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int kLeastRounds = 5;

// Adds the name of the contestant whose processes failed to the error message.
absl::Status Named(const std::string& name, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

}  // namespace

absl::Status Contest::Enter(const std::string& name, const Exchange& exchange, const ExchangeSpec& spec, int every) {
  Contestant contestant;
  contestant.name = name;
  contestant.workers = spec.workers;
  contestant.every = every;
  ExchangeSpec named = spec;
  named.name = name;
  auto processes = ProcessGroup::Start(exchange, named);
  RETURN_IF_ERROR(Named(name, processes.status()));
  contestant.processes = *std::move(processes);
  double seconds_per_step = 0;
  // Doubles the steps until a turn is long enough for an estimate.
  for (double turn = 0; turn < turn_seconds_ / 3; turn = seconds_per_step * contestant.steps_per_turn) {
    if (turn > 0) contestant.steps_per_turn *= 2;
    const auto timing = contestant.processes->Run(1, contestant.steps_per_turn);
    RETURN_IF_ERROR(Named(name, timing.status()));
    seconds_per_step = timing->seconds_per_step;
  }
  contestant.steps_per_turn = std::max(1, static_cast<int>(std::lround(turn_seconds_ / seconds_per_step)));
  contestants_.push_back(std::move(contestant));
  return absl::OkStatus();
}

absl::Status Contest::TakeTurns(double seconds) {
  double spent = 0;
  // A turn starts more slowly after a contestant that left a processor asleep, ran on the same processor, or left other
  // data in the caches. Shuffling averages out these effects, which do not occur in a real run.
  std::vector<int> order(contestants_.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random;
  for (int round = 0; round < kLeastRounds || spent < seconds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int turn_of : order) {
      Contestant& contestant = contestants_[turn_of];
      if (round % contestant.every != 0) continue;
      // A slow contestant needs only one warm-up step.
      const int warm_up = contestant.every > 1 ? 1 : std::max(1, contestant.steps_per_turn / 2);
      const auto timing = contestant.processes->Run(warm_up, contestant.steps_per_turn);
      RETURN_IF_ERROR(Named(contestant.name, timing.status()));
      spent += timing->seconds_per_step * (contestant.steps_per_turn + warm_up);
      Turn turn;
      turn.round = round;
      turn.milliseconds = timing->seconds_per_step * 1e3;
      turn.server_cpu_milliseconds = timing->server_cpu_per_step * 1e3;
      turn.cpu_milliseconds = (timing->server_cpu_per_step + contestant.workers * timing->worker_cpu_per_step) * 1e3;
      turn.bytes = timing->bytes_per_step;
      contestant.turns.push_back(turn);
    }
  }
  return absl::OkStatus();
}

void Contest::Fill(Side ours, Side theirs, Quantity quantity, Row* row) const {
  std::vector<double> our_series, their_series;
  const std::vector<Turn>& others = contestants_[theirs.contestant].turns;
  size_t other = 0;
  for (const Turn& turn : contestants_[ours.contestant].turns) {
    while (other < others.size() && others[other].round < turn.round) ++other;
    if (other == others.size()) break;
    if (others[other].round != turn.round) continue;
    our_series.push_back(quantity(turn) * ours.factor + ours.allowance);
    their_series.push_back(quantity(others[other]) * theirs.factor + theirs.allowance);
  }
  Compare(our_series, their_series, row);
}

}  // namespace benchmark
}  // namespace lockstep

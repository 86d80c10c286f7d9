#ifndef LOCKSTEP_TESTS_BENCHMARK_CONTEST_H_
#define LOCKSTEP_TESTS_BENCHMARK_CONTEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/process_group.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

// The measurements of a contestant's turn, per step.
struct Turn {
  int round = 0;
  double milliseconds = 0;
  // The processor time of all processes together, and of the server alone.
  double cpu_milliseconds = 0;
  double server_cpu_milliseconds = 0;
  // The bytes that the workers received, if ExchangeSpec::counts_bytes is set.
  double bytes = 0;
};

// Compares several ways of doing a step. The contestants take turns, in a different order in each round, so that all of
// them run under the same conditions. Each has its own processes, which sleep while the others run. Not thread-safe.
class Contest {
 public:
  // A turn lasts about `turn_seconds`, which should be long compared with a wake-up but short compared with other
  // activity on the machine.
  explicit Contest(double turn_seconds) : turn_seconds_(turn_seconds) {}

  // Starts the processes and calibrates the number of steps in a turn. If `every` is above 1, as for a slow contestant,
  // it takes part only in every `every`-th round.
  absl::Status Enter(const std::string& name, const Exchange& exchange, const ExchangeSpec& spec, int every = 1);
  // Runs rounds for about this many seconds, but at least five rounds.
  absl::Status TakeTurns(double seconds);

  // Contestants are numbered in the order of Enter.
  int size() const { return static_cast<int>(contestants_.size()); }
  const std::string& name(int contestant) const { return contestants_[contestant].name; }

  // Sets ours, theirs and ratio in `row` from the rounds in which both took part. Each value of a turn is multiplied by
  // its side's factor, and then the side's allowance is added.
  using Quantity = double (*)(const Turn&);
  struct Side {
    int contestant = 0;
    double factor = 1;
    double allowance = 0;
  };
  void Fill(Side ours, Side theirs, Quantity quantity, Row* row) const;

 private:
  struct Contestant {
    std::string name;
    std::unique_ptr<ProcessGroup> processes;
    int workers = 1;
    int steps_per_turn = 1;
    int every = 1;
    std::vector<Turn> turns;
  };

  const double turn_seconds_;
  std::vector<Contestant> contestants_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_CONTEST_H_

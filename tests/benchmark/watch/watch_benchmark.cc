#include "lockstep/tests/benchmark/watch/watch_benchmark.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"
#include "lockstep/tests/benchmark/exchange/process_group.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"
#include "lockstep/tests/benchmark/spread.h"
#include "lockstep/tests/benchmark/watch/watchers.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int kImages = 8192;
// The bars: the maximum ratio of processor times, and the minimum ratio of steps per second.
constexpr double kWatcherBar = 1.01;
constexpr double kEverythingBar = 0.95;

// Returns how many steps take about this long.
absl::StatusOr<int> StepsIn(double seconds, ProcessGroup* processes) {
  int steps = 1;
  double took = 0;
  while (took < seconds / 8) {
    if (took > 0) steps *= 2;
    ASSIGN_OR_RETURN(const ProcessGroup::Timing timing, processes->Run(/*warm_up=*/1, steps));
    took = timing.seconds_per_step * steps;
  }
  return std::max(1, static_cast<int>(std::lround(steps * seconds / took)));
}

using Quantity = double (*)(const ProcessGroup::Timing&);

// Fills in the row from rounds in which the same processes run with and without the watchers.
absl::Status TakeTurns(const WatchBenchmarkOptions& options, const Exchange& exchange, const ExchangeSpec& spec,
                       Watchers::Options watching, Quantity quantity, Row* row) {
  ASSIGN_OR_RETURN(const auto processes, ProcessGroup::Start(exchange, spec));
  watching.address = processes->address();
  ASSIGN_OR_RETURN(const int steps, StepsIn(options.seconds, processes.get()));
  std::vector<double> with, without;
  for (int turn = 0; turn < 2 * options.rounds; ++turn) {
    // Each side is the first of every second round.
    const bool watched = turn % 4 == 0 || turn % 4 == 3;
    std::unique_ptr<Watchers> watchers;
    if (watched) {
      ASSIGN_OR_RETURN(watchers, Watchers::Start(watching));
    }
    ASSIGN_OR_RETURN(const ProcessGroup::Timing timing, processes->Run(/*warm_up=*/steps / 10, steps));
    if (watched) RETURN_IF_ERROR(watchers->Check());
    (watched ? with : without).push_back(quantity(timing));
  }
  row->set_group("watching");
  Compare(with, without, row);
  return absl::OkStatus();
}

absl::Status MeasureWatcher(const WatchBenchmarkOptions& options, Report* report) {
  ExchangeSpec spec;
  v1::VariableSpec* const variable = spec.model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->add_shape(1);
  variable->set_trainable(true);
  spec.one_processor = true;
  Row* const row = report->add_row();
  row->set_what("4 B, 1 worker, tcp, one watcher");
  row->set_unit("CPU ms");
  row->set_against("no watcher");
  row->set_at_most(kWatcherBar);
  const Quantity cpu_milliseconds = [](const ProcessGroup::Timing& timing) {
    return (timing.server_cpu_per_step + timing.worker_cpu_per_step) * 1e3;
  };
  return TakeTurns(options, LockstepExchange(), spec, Watchers::Options(), cpu_milliseconds, row);
}

absl::Status MeasureEverythingOn(const WatchBenchmarkOptions& options, const TrainingSpec& training, ExchangeSpec spec,
                                 const std::string& what, Report* report) {
  spec.workers = 2;
  spec.logdir = absl::StrCat(options.directory, "/", what);
  Watchers::Options watching;
  watching.tls_dir = spec.viewer_tls_dir;
  watching.calls = 49;
  watching.page_program = options.page_program;
  watching.page_log = absl::StrCat(options.directory, "/page.log");
  Row* const row = report->add_row();
  row->set_what(absl::StrCat("MLP, batch 64, 2 workers, TLS, ", what, ", everything on"));
  row->set_unit("steps/s");
  row->set_against("page off");
  row->set_at_least(kEverythingBar);
  const Quantity steps_per_second = [](const ProcessGroup::Timing& timing) { return 1 / timing.seconds_per_step; };
  return TakeTurns(options, TrainingExchange(training), spec, watching, steps_per_second, row);
}

}  // namespace

absl::Status MeasureWatching(const WatchBenchmarkOptions& options, Report* report) {
  if (options.page_program.empty()) return absl::InvalidArgumentError("LOCKSTEP_BINARY does not name the program");
  RETURN_IF_ERROR(MeasureWatcher(options, report));
  ExchangeSpec spec;
  RETURN_IF_ERROR(MakeKits(absl::StrCat(options.directory, "/watched"), &spec));
  WriteImages(options.directory, kImages);
  TrainingSpec training;
  training.hidden = {512, 512};
  training.images = absl::StrCat(options.directory, "/images");
  training.labels = absl::StrCat(options.directory, "/labels");
  // An audit needs slots that any worker may compute, and only other runs have an order of arrival.
  TrainingSpec audited = training, recorded = training;
  audited.audit = 0.01;
  recorded.policy = config::v1::TrainingConfig::kFirstArrivals;
  recorded.record_order = true;
  RETURN_IF_ERROR(MeasureEverythingOn(options, audited, spec, "audit", report));
  return MeasureEverythingOn(options, recorded, spec, "record_order", report);
}

}  // namespace benchmark
}  // namespace lockstep

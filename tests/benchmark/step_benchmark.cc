#include "tests/benchmark/step_benchmark.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/quantity.h"
#include "common/base/status_macros.h"
#include "tests/benchmark/exchange.h"
#include "tests/benchmark/process_group.h"
#include "tests/benchmark/spread.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int64_t kMlpBytes = 2678824;
constexpr int64_t kMegabyte = 1000000;
// A turn of one contestant lasts about this long: long against a wake-up, short against what else the machine does.
constexpr double kTurnSeconds = 0.03;
// The bars of DESIGN: against raw sockets, against raw sockets at 100 MiB, against a bare round trip.
constexpr double kRawBar = 1.25;
constexpr double kLargeRawBar = 1.2;
constexpr double kRoundTripBar = 1.3;

void AddVariable(const std::string& name, std::vector<int64_t> shape, ModelSpec* model) {
  VariableSpec* const variable = model->add_variables();
  variable->set_name(name);
  variable->set_dtype(DT_FLOAT);
  for (const int64_t dimension : shape) variable->add_shape(dimension);
  variable->set_trainable(true);
}

ModelSpec ModelOfSize(int64_t bytes) {
  ModelSpec model;
  if (bytes == kMlpBytes) {
    const int64_t units[] = {784, 512, 512, 10};
    for (int i = 0; i < 3; ++i) {
      AddVariable(absl::StrCat("dense", i, "/kernel"), {units[i], units[i + 1]}, &model);
      AddVariable(absl::StrCat("dense", i, "/bias"), {units[i + 1]}, &model);
    }
  } else {
    AddVariable("w", {bytes / static_cast<int64_t>(sizeof(float))}, &model);
  }
  return model;
}

// One way of doing the exchange, and what it took, turn by turn.
struct Contestant {
  std::string name;
  std::unique_ptr<ProcessGroup> processes;
  int steps_per_turn = 1;
  // Takes part in every so many rounds.
  int every = 1;
  std::vector<double> milliseconds;
  // The first contestant's in the same rounds.
  std::vector<double> first_milliseconds;
  // Processor time of all processes together.
  std::vector<double> cpu_milliseconds;
  std::vector<double> first_cpu_milliseconds;
};

absl::StatusOr<Contestant> Enter(const std::string& name, const Exchange& exchange, const ExchangeSpec& spec) {
  Contestant contestant;
  contestant.name = name;
  ASSIGN_OR_RETURN(contestant.processes, ProcessGroup::Start(exchange, spec));
  ProcessGroup::Timing timing;
  // Until the turn is long enough to be a guide.
  for (double turn = 0; turn < kTurnSeconds / 3; turn = timing.seconds_per_step * contestant.steps_per_turn) {
    if (turn > 0) contestant.steps_per_turn *= 2;
    ASSIGN_OR_RETURN(timing, contestant.processes->Run(1, contestant.steps_per_turn));
  }
  contestant.steps_per_turn = std::max(1, static_cast<int>(std::lround(kTurnSeconds / timing.seconds_per_step)));
  return contestant;
}

absl::Status TakeTurns(double seconds, int workers, std::vector<Contestant>* contestants) {
  double spent = 0;
  for (int round = 0; round < 5 || spent < seconds; ++round) {
    double first = 0, first_cpu = 0;
    for (Contestant& contestant : *contestants) {
      if (round % contestant.every != 0) continue;
      ASSIGN_OR_RETURN(const auto timing, contestant.processes->Run(1, contestant.steps_per_turn));
      spent += timing.seconds_per_step * (contestant.steps_per_turn + 1);
      const double milliseconds = timing.seconds_per_step * 1e3;
      if (&contestant == &contestants->front()) first = milliseconds;
      contestant.milliseconds.push_back(milliseconds);
      contestant.first_milliseconds.push_back(first);
      const double cpu = (timing.server_cpu_per_step + workers * timing.worker_cpu_per_step) * 1e3;
      if (&contestant == &contestants->front()) first_cpu = cpu;
      contestant.cpu_milliseconds.push_back(cpu);
      contestant.first_cpu_milliseconds.push_back(first_cpu);
    }
  }
  return absl::OkStatus();
}

void SetBar(int64_t bytes, const std::string& against, int workers, Row* row) {
  if (against == "raw sockets" && bytes >= kMegabyte)
    row->set_at_most(bytes >= 100 * kMegabyte ? kLargeRawBar : kRawBar);
  if (against == "gRPC round trip" && bytes <= 4096 && workers == 1) row->set_at_most(kRoundTripBar);
}

absl::Status MeasureOne(const StepBenchmarkOptions& options, int64_t bytes, int workers, bool unix_socket,
                        Report* report) {
  ExchangeSpec spec;
  spec.model = ModelOfSize(bytes);
  spec.workers = workers;
  spec.unix_socket = unix_socket;
  spec.directory = options.directory;
  spec.step_threads = options.step_threads;
  std::vector<Contestant> contestants;
  const auto enter = [&](const std::string& name, const Exchange& exchange) {
    auto contestant = Enter(name, exchange, spec);
    if (contestant.ok()) contestants.push_back(*std::move(contestant));
    return contestant.status();
  };
  RETURN_IF_ERROR(enter("lockstep", LockstepExchange()));
  if (!options.alone) RETURN_IF_ERROR(enter("raw sockets", RawExchange()));
  if (!options.alone && bytes < kMegabyte) RETURN_IF_ERROR(enter("gRPC round trip", RoundTripExchange()));
  if (!options.alone && options.naive) {
    RETURN_IF_ERROR(enter("protobuf stub", NaiveExchange()));
    contestants.back().every = 3;
  }
  RETURN_IF_ERROR(TakeTurns(options.seconds, workers, &contestants));
  for (size_t i = options.alone ? 0 : 1; i < contestants.size(); ++i) {
    const Contestant& other = contestants[i];
    Row* const row = report->add_row();
    row->set_group("step");
    row->set_what(absl::StrCat(BytesText(bytes), ", ", CountText(workers, "worker"), unix_socket ? ", unix" : ", tcp"));
    row->set_unit("ms");
    row->set_against(i == 0 ? "" : other.name);
    Compare(other.first_milliseconds, other.milliseconds, row);
    Row* const cpu = report->add_row();
    *cpu = *row;
    cpu->set_unit("CPU ms");
    Compare(other.first_cpu_milliseconds, other.cpu_milliseconds, cpu);
    SetBar(bytes, other.name, workers, row);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureSteps(const StepBenchmarkOptions& options, Report* report) {
  for (const bool unix_socket : options.unix_socket) {
    for (const int64_t bytes : options.sizes) {
      for (const int workers : options.workers)
        RETURN_IF_ERROR(MeasureOne(options, bytes, workers, unix_socket, report));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureChiefCpu(const StepBenchmarkOptions& options, Report* report) {
  for (const int64_t bytes : options.sizes) {
    std::vector<Contestant> contestants;
    std::vector<int> workers = {1, 2, 4, 8, 16};
    for (const int n : workers) {
      ExchangeSpec spec;
      spec.model = ModelOfSize(bytes);
      spec.workers = n;
      spec.step_threads = options.step_threads;
      ASSIGN_OR_RETURN(Contestant contestant, Enter(CountText(n, "worker"), LockstepExchange(), spec));
      contestants.push_back(std::move(contestant));
    }
    std::vector<std::vector<double>> per_worker(workers.size());
    double spent = 0;
    for (int round = 0; round < 5 || spent < options.seconds; ++round) {
      for (size_t i = 0; i < workers.size(); ++i) {
        ASSIGN_OR_RETURN(const auto timing, contestants[i].processes->Run(1, contestants[i].steps_per_turn));
        spent += timing.seconds_per_step * (contestants[i].steps_per_turn + 1);
        per_worker[i].push_back(timing.server_cpu_per_step * 1e3 / workers[i]);
      }
    }
    for (size_t i = 0; i < workers.size(); ++i) {
      Row* const row = report->add_row();
      row->set_group("chief CPU");
      row->set_what(absl::StrCat(BytesText(bytes), ", ", contestants[i].name));
      row->set_unit("ms/step/worker");
      row->set_against("1 worker");
      Compare(per_worker[i], per_worker[0], row);
    }
  }
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

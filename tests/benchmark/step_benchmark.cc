#include "lockstep/tests/benchmark/step_benchmark.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/tests/benchmark/contest.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"

namespace lockstep {
namespace benchmark {
namespace {

using Wire = StepBenchmarkOptions::Wire;

constexpr int64_t kMlpBytes = 2678824;
constexpr int64_t kMegabyte = 1000000;
// The duration of a contestant's turn: long compared with a wake-up, short compared with other activity on the machine.
constexpr double kTurnSeconds = 0.03;
// The bars (maximum ratios), relative to raw sockets, to raw sockets at 100 MiB, and to a bare round trip.
constexpr double kRawBar = 1.25;
constexpr double kLargeRawBar = 1.2;
constexpr double kRoundTripBar = 1.3;
// The Python package relative to a C++ worker, in shared memory and over TCP. The milliseconds that a loop may add to
// each slot.
constexpr double kPythonSharedBar = 1.5;
constexpr double kPythonTcpBar = 1.3;
constexpr double kLoopAllowance = 0.06;
// TLS costs about 0.5 ns per byte at each end.
constexpr double kTlsCpuBar = 3.2;
// Constant variables are sent only once, so they should cost nothing in a step. The bar allows for noise.
constexpr int64_t kFrozenBytes = 100 * kMegabyte;
constexpr double kFrozenBar = 1.1;
// Applies only to large models, because the number of frames per step varies, and a frame's header is 0.1 % of a small
// model.
constexpr double kFrozenBytesBar = 1.001;

void AddVariable(const std::string& name, std::vector<int64_t> shape, v1::ModelSpec* model) {
  v1::VariableSpec* const variable = model->add_variables();
  variable->set_name(name);
  variable->set_dtype(v1::DT_FLOAT);
  for (const int64_t dimension : shape) variable->add_shape(dimension);
  variable->set_trainable(true);
}

v1::ModelSpec ModelOfSize(int64_t bytes) {
  v1::ModelSpec model;
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

double Milliseconds(const Turn& turn) { return turn.milliseconds; }
double CpuMilliseconds(const Turn& turn) { return turn.cpu_milliseconds; }
double ServerCpuMilliseconds(const Turn& turn) { return turn.server_cpu_milliseconds; }
double Bytes(const Turn& turn) { return turn.bytes; }

void SetBar(int64_t bytes, const std::string& against, int workers, Row* row) {
  if (against == "raw sockets" && bytes >= kMegabyte)
    row->set_at_most(bytes >= 100 * kMegabyte ? kLargeRawBar : kRawBar);
  if (against == "gRPC round trip" && bytes <= 4096 && workers == 1) row->set_at_most(kRoundTripBar);
}

const char* NameOf(Wire wire) { return wire == Wire::kTcp ? "tcp" : wire == Wire::kUnix ? "unix" : "shared memory"; }

absl::Status MeasureOne(const StepBenchmarkOptions& options, int64_t bytes, int workers, Wire wire, Report* report) {
  ExchangeSpec spec;
  spec.model = ModelOfSize(bytes);
  spec.workers = workers;
  spec.unix_socket = wire == Wire::kUnix;
  spec.share_memory = wire == Wire::kSharedMemory;
  spec.one_processor = bytes < kMegabyte && workers == 1;
  spec.directory = options.directory;
  spec.step_threads = options.step_threads;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("lockstep", LockstepExchange(), spec));
  if (!options.alone) RETURN_IF_ERROR(contest.Enter("raw sockets", RawExchange(), spec));
  if (!options.alone && bytes < kMegabyte) {
    RETURN_IF_ERROR(contest.Enter("gRPC round trip", RoundTripExchange(), spec));
  }
  if (!options.alone) RETURN_IF_ERROR(contest.Enter("bare gRPC stream", StreamExchange(), spec));
  if (!options.alone && options.naive) RETURN_IF_ERROR(contest.Enter("protobuf stub", NaiveExchange(), spec, 3));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  for (int i = options.alone ? 0 : 1; i < contest.size(); ++i) {
    Row* const row = report->add_row();
    row->set_group("step");
    row->set_what(absl::StrCat(BytesText(bytes), ", ", CountText(workers, "worker"), ", ", NameOf(wire)));
    row->set_unit("ms");
    row->set_against(i == 0 ? "" : contest.name(i));
    SetBar(bytes, contest.name(i), workers, row);
    contest.Fill({0}, {i}, Milliseconds, row);
    Row* const cpu = report->add_row();
    cpu->set_group("step CPU");
    cpu->set_what(row->what());
    cpu->set_unit("CPU ms");
    cpu->set_against(row->against());
    contest.Fill({0}, {i}, CpuMilliseconds, cpu);
  }
  return absl::OkStatus();
}

absl::Status MeasureOnePython(const StepBenchmarkOptions& options, const Peers& peers, int64_t bytes, Wire wire,
                              Report* report) {
  ExchangeSpec spec;
  spec.model = ModelOfSize(bytes);
  spec.share_memory = wire == Wire::kSharedMemory;
  spec.one_processor = bytes < kMegabyte;
  spec.directory = options.directory;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("C++ worker", LockstepExchange(), spec));
  RETURN_IF_ERROR(contest.Enter("worker.run(function)", PythonExchange(peers, PythonSlots::kFunction), spec));
  RETURN_IF_ERROR(contest.Enter("for slot in worker", PythonExchange(peers, PythonSlots::kLoop), spec));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  const auto add_row = [&](int contestant, const std::string& against) {
    Row* const row = report->add_row();
    row->set_group("python");
    row->set_what(absl::StrCat(BytesText(bytes), ", 1 worker, ", NameOf(wire), ", ", contest.name(contestant)));
    row->set_unit("ms");
    row->set_against(against);
    return row;
  };
  Row* const function = add_row(1, contest.name(0));
  function->set_at_most(spec.share_memory ? kPythonSharedBar : kPythonTcpBar);
  contest.Fill({1}, {0}, Milliseconds, function);
  Row* const loop = add_row(2, absl::StrCat(contest.name(1), " and ", kLoopAllowance, " ms"));
  loop->set_at_most(1);
  contest.Fill({2}, {1, 1, kLoopAllowance}, Milliseconds, loop);
  return absl::OkStatus();
}

absl::Status MeasureOneFrozen(const StepBenchmarkOptions& options, int64_t bytes, Wire wire, Report* report) {
  ExchangeSpec without;
  without.model = ModelOfSize(bytes);
  without.unix_socket = wire == Wire::kUnix;
  without.share_memory = wire == Wire::kSharedMemory;
  without.one_processor = bytes < kMegabyte;
  without.counts_bytes = !without.share_memory;  // values in shared memory are not sent
  without.directory = options.directory;
  without.step_threads = options.step_threads;
  ExchangeSpec with = without;
  AddVariable("frozen", {kFrozenBytes / static_cast<int64_t>(sizeof(float))}, &with.model);
  with.model.mutable_variables(with.model.variables_size() - 1)->set_trainable(false);
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("with 100 MB frozen", LockstepExchange(), with));
  RETURN_IF_ERROR(contest.Enter("without", LockstepExchange(), without));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  const auto add_row = [&](const char* unit, Contest::Quantity quantity) {
    Row* const row = report->add_row();
    row->set_group("frozen");
    row->set_what(absl::StrCat(BytesText(bytes), " and 100 MB frozen, ", NameOf(wire)));
    row->set_unit(unit);
    row->set_against(contest.name(1));
    contest.Fill({0}, {1}, quantity, row);
    return row;
  };
  add_row("ms", Milliseconds)->set_at_most(kFrozenBar);
  add_row("chief's CPU ms", ServerCpuMilliseconds)->set_at_most(kFrozenBar);
  if (!without.counts_bytes) return absl::OkStatus();
  Row* const sent = add_row("bytes", Bytes);
  if (bytes >= kMegabyte) sent->set_at_most(kFrozenBytesBar);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureSteps(const StepBenchmarkOptions& options, Report* report) {
  for (const Wire wire : options.wires) {
    for (const int64_t bytes : options.sizes) {
      for (const int workers : options.workers) RETURN_IF_ERROR(MeasureOne(options, bytes, workers, wire, report));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasurePython(const StepBenchmarkOptions& options, const Peers& peers, Report* report) {
  for (const Wire wire : {Wire::kSharedMemory, Wire::kTcp}) {
    for (const int64_t bytes : options.sizes) {
      RETURN_IF_ERROR(MeasureOnePython(options, peers, bytes, wire, report));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureTls(const StepBenchmarkOptions& options, Report* report) {
  ExchangeSpec spec;
  RETURN_IF_ERROR(MakeKits(options.directory, &spec));
  spec.step_threads = options.step_threads;
  for (const int64_t bytes : options.sizes) {
    spec.model = ModelOfSize(bytes);
    ExchangeSpec plain = spec;
    plain.chief_tls_dir = plain.worker_tls_dir = "";
    Contest contest(kTurnSeconds);
    RETURN_IF_ERROR(contest.Enter("TLS", LockstepExchange(), spec));
    RETURN_IF_ERROR(contest.Enter("plain text", LockstepExchange(), plain));
    RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
    for (const auto& [unit, measure] : {std::pair{"ms", &Milliseconds}, std::pair{"CPU ms", &CpuMilliseconds}}) {
      Row* const row = report->add_row();
      row->set_group("TLS");
      row->set_what(absl::StrCat(BytesText(bytes), ", 1 worker, tcp"));
      row->set_unit(unit);
      row->set_against(contest.name(1));
      if (measure == &CpuMilliseconds && bytes >= kMegabyte) row->set_at_most(kTlsCpuBar);
      contest.Fill({0}, {1}, measure, row);
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureFrozen(const StepBenchmarkOptions& options, Report* report) {
  for (const Wire wire : options.wires) {
    for (const int64_t bytes : options.sizes) RETURN_IF_ERROR(MeasureOneFrozen(options, bytes, wire, report));
  }
  return absl::OkStatus();
}

absl::Status MeasureChiefCpu(const StepBenchmarkOptions& options, Report* report) {
  for (const int64_t bytes : options.sizes) {
    Contest contest(kTurnSeconds);
    for (const int workers : options.workers) {
      ExchangeSpec spec;
      spec.model = ModelOfSize(bytes);
      spec.workers = workers;
      spec.step_threads = options.step_threads;
      RETURN_IF_ERROR(contest.Enter(CountText(workers, "worker"), LockstepExchange(), spec));
    }
    RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
    for (int i = 0; i < contest.size(); ++i) {
      Row* const row = report->add_row();
      row->set_group("chief CPU");
      row->set_what(absl::StrCat(BytesText(bytes), ", ", contest.name(i)));
      row->set_unit("ms/step/worker");
      row->set_against(contest.name(0));
      contest.Fill({i, 1.0 / options.workers[i]}, {0, 1.0 / options.workers[0]}, ServerCpuMilliseconds, row);
    }
  }
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

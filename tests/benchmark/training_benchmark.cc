#include "lockstep/tests/benchmark/training_benchmark.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/tests/benchmark/contest.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr double kTurnSeconds = 0.1;
// A slot is audited every fifty steps, so a turn must be long enough for several audited slots. The number of turns
// stays the same.
constexpr double kAuditTurnSeconds = 0.5;
constexpr int kImages = 8192;
// The bars (minimum ratios). In one process, training is compared with a bare loop. The examples per second of two
// workers are compared with those of one process, with those of two independent processes running in parallel (the
// maximum for two processors), and with those of the better peer. ASYNC is compared with the two independent processes,
// FIRST_ARRIVALS with the peer that has the same rule.
constexpr double kBareLoopBar = 0.98;
constexpr double kTwoWorkersBar = 1;
constexpr double kSoftmaxSideBySideBar64 = 0.45;
constexpr double kSoftmaxSideBySideBar256 = 0.75;
constexpr double kMlpSideBySideBar64 = 0.80;
constexpr double kMlpSideBySideBar256 = 0.95;
constexpr double kMlpAsyncBar256 = 0.9;
// The allowed cost of digests and of audits. With one audited slot in a hundred, one step in fifty takes twice as long.
constexpr double kDigestsBar = 1.02;
constexpr double kAuditBar = 0.98 / 1.02;
// Minimum ratio of the steps per second with hooks that do nothing to those without hooks. Applies both to hooks that
// gate each step and to hooks that only observe.
constexpr double kGateBar = 0.97;
// Steps per second with hooks that change the learning rate or set a bias after each step, relative to hooks that only
// gate.
constexpr double kRateBar = 0.9;
constexpr double kAssignBar = 0.5;
constexpr double kSoftmaxPeerBar64 = 8;
constexpr double kSoftmaxPeerBar256 = 5;
constexpr double kMlpPeerBar64 = 2;
constexpr double kMlpPeerBar256 = 1.6;
constexpr double kTorchTcpBar = 0.9;
// A step of the convolutional network takes about 0.05 s.
constexpr double kTorchTurnSeconds = 0.3;

double StepsPerSecond(const Turn& turn) { return 1e3 / turn.milliseconds; }
double CpuMilliseconds(const Turn& turn) { return turn.cpu_milliseconds; }

struct Workload {
  std::string name;
  TrainingSpec training;
};

std::vector<Workload> Workloads(const TrainingBenchmarkOptions& options) {
  WriteImages(options.directory, kImages);
  std::vector<Workload> workloads;
  for (const bool mlp : {false, true}) {
    for (const int64_t batch : options.batches) {
      Workload workload;
      workload.name = absl::StrCat(mlp ? "MLP" : "softmax", ", batch ", batch);
      if (mlp) workload.training.hidden = {512, 512};
      workload.training.batch = batch;
      workload.training.images = absl::StrCat(options.directory, "/images");
      workload.training.labels = absl::StrCat(options.directory, "/labels");
      workloads.push_back(workload);
    }
  }
  return workloads;
}

ExchangeSpec SpecOf(const TrainingBenchmarkOptions& options, int workers) {
  ExchangeSpec spec;
  spec.workers = workers;
  // Worker processes started by `./lockstep run` have the same settings.
  spec.share_memory = options.share_memory;
  spec.unix_socket = options.share_memory;
  spec.directory = options.directory;
  return spec;
}

Row* AddRow(const std::string& what, const std::string& unit, const std::string& against, Report* report) {
  Row* const row = report->add_row();
  row->set_what(what);
  row->set_unit(unit);
  row->set_against(against);
  return row;
}

double PeerBar(const TrainingSpec& training) {
  if (training.hidden.empty()) return training.batch == 64 ? kSoftmaxPeerBar64 : kSoftmaxPeerBar256;
  return training.batch == 64 ? kMlpPeerBar64 : kMlpPeerBar256;
}

double SideBySideBar(const TrainingSpec& training) {
  if (training.hidden.empty()) return training.batch == 64 ? kSoftmaxSideBySideBar64 : kSoftmaxSideBySideBar256;
  return training.batch == 64 ? kMlpSideBySideBar64 : kMlpSideBySideBar256;
}

absl::Status MeasureWorkload(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  const TrainingSpec& training = workload.training;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("one process", InProcessExchange(training), SpecOf(options, 1)));
  RETURN_IF_ERROR(contest.Enter("bare Eigen loop", EigenExchange(training), SpecOf(options, 1)));
  for (const int workers : options.workers) {
    RETURN_IF_ERROR(contest.Enter(CountText(workers, "worker"), TrainingExchange(training), SpecOf(options, workers)));
  }
  const int side_by_side = contest.size();
  RETURN_IF_ERROR(contest.Enter("2 lone processes", InProcessExchange(training), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  Row* const bare = AddRow(absl::StrCat(workload.name, ", ", contest.name(0)), "steps/s", contest.name(1), report);
  bare->set_group("training");
  bare->set_at_least(kBareLoopBar);
  contest.Fill({0}, {1}, StepsPerSecond, bare);
  for (size_t i = 0; i < options.workers.size(); ++i) {
    const int contestant = static_cast<int>(i) + 2;
    const auto batch = static_cast<double>(training.batch);
    Row* const row =
        AddRow(absl::StrCat(workload.name, ", ", contest.name(contestant)), "examples/s", contest.name(0), report);
    row->set_group("training");
    if (options.workers[i] == 2 && training.batch == 64 && !training.hidden.empty()) row->set_at_least(kTwoWorkersBar);
    contest.Fill({contestant, batch * options.workers[i]}, {0, batch}, StepsPerSecond, row);
    if (options.workers[i] != 2) continue;
    Row* const beside = AddRow(row->what(), "steps/s", contest.name(side_by_side), report);
    beside->set_group("training");
    beside->set_at_least(SideBySideBar(training));
    contest.Fill({contestant}, {side_by_side}, StepsPerSecond, beside);
  }
  return absl::OkStatus();
}

// Measures the cost of computing digests of all gradients.
absl::Status MeasureDigests(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  TrainingSpec digested = workload.training;
  digested.digests = true;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("digests of all", InProcessExchange(digested), SpecOf(options, 1)));
  RETURN_IF_ERROR(contest.Enter("no digests", InProcessExchange(workload.training), SpecOf(options, 1)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  Row* const digests =
      AddRow(absl::StrCat(workload.name, ", ", contest.name(0)), "ms CPU/step", contest.name(1), report);
  digests->set_group("training");
  digests->set_at_most(kDigestsBar);
  contest.Fill({0}, {1}, CpuMilliseconds, digests);
  return absl::OkStatus();
}

// Measures the cost of computing slots twice and comparing them.
absl::Status MeasureAudit(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  TrainingSpec audited = workload.training;
  audited.audit = 0.01;
  Contest contest(kAuditTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("2 workers, audit of 1 %", TrainingExchange(audited), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, no audit", TrainingExchange(workload.training), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds * kAuditTurnSeconds / kTurnSeconds));
  Row* const audit = AddRow(absl::StrCat(workload.name, ", ", contest.name(0)), "steps/s", contest.name(1), report);
  audit->set_group("training");
  audit->set_at_least(kAuditBar);
  contest.Fill({0}, {1}, StepsPerSecond, audit);
  return absl::OkStatus();
}

// Compares two workers whose contributions are applied in order of arrival with two processes that share nothing.
absl::Status MeasurePolicies(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  TrainingSpec async = workload.training, first_arrivals = workload.training;
  async.policy = config::v1::TrainingConfig::kAsync;
  first_arrivals.policy = config::v1::TrainingConfig::kFirstArrivals;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("2 workers, ASYNC", TrainingExchange(async), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, FIRST_ARRIVALS", TrainingExchange(first_arrivals), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 lone processes", InProcessExchange(workload.training), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  // Each step of a contestant covers two batches, one per worker, because under ASYNC each worker counts only its own
  // contributions.
  const double examples = 2 * static_cast<double>(workload.training.batch);
  for (const int contestant : {0, 1}) {
    Row* const row =
        AddRow(absl::StrCat(workload.name, ", ", contest.name(contestant)), "examples/s", contest.name(2), report);
    row->set_group("training");
    if (contestant == 0 && workload.training.batch == 256) row->set_at_least(kMlpAsyncBar256);
    contest.Fill({contestant, examples}, {2, examples}, StepsPerSecond, row);
  }
  return absl::OkStatus();
}

// Measures the cost of a program that follows the run.
absl::Status MeasureFollowers(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  TrainingSpec looked_at = workload.training, gated = workload.training;
  looked_at.follower = Follower::kLooks;
  gated.follower = Follower::kGates;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("2 workers, hooks that gate", TrainingExchange(gated), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, hooks that look", TrainingExchange(looked_at), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, no hooks", TrainingExchange(workload.training), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  for (const int contestant : {0, 1}) {
    Row* const row =
        AddRow(absl::StrCat(workload.name, ", ", contest.name(contestant)), "steps/s", contest.name(2), report);
    row->set_group("training");
    row->set_at_least(kGateBar);
    contest.Fill({contestant}, {2}, StepsPerSecond, row);
  }
  return absl::OkStatus();
}

// Measures the cost of hooks that change the run at every step.
absl::Status MeasureChanges(const TrainingBenchmarkOptions& options, const Workload& workload, Report* report) {
  TrainingSpec gated = workload.training, rates = workload.training, assigns = workload.training;
  gated.follower = Follower::kGates;
  rates.follower = Follower::kChangesRate;
  assigns.follower = Follower::kAssigns;
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("2 workers, rate of each step", TrainingExchange(rates), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, bias set after each step", TrainingExchange(assigns), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.Enter("2 workers, hooks that gate", TrainingExchange(gated), SpecOf(options, 2)));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  for (const int contestant : {0, 1}) {
    Row* const row =
        AddRow(absl::StrCat(workload.name, ", ", contest.name(contestant)), "steps/s", contest.name(2), report);
    row->set_group("training");
    row->set_at_least(contestant == 0 ? kRateBar : kAssignBar);
    contest.Fill({contestant}, {2}, StepsPerSecond, row);
  }
  return absl::OkStatus();
}

absl::Status MeasureWorkloadOfPeers(const TrainingBenchmarkOptions& options, const Peers& peers,
                                    const Workload& workload, Report* report) {
  const TrainingSpec& training = workload.training;
  TrainingSpec first_arrivals = training;
  first_arrivals.policy = config::v1::TrainingConfig::kFirstArrivals;
  const ExchangeSpec two = SpecOf(options, 2);
  const TorchTraining torch = {training.hidden.empty() ? "softmax" : "mlp", training.batch};
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("Lockstep", TrainingExchange(training), two));
  RETURN_IF_ERROR(contest.Enter("PyTorch DDP", DdpExchange(peers, torch), two));
  RETURN_IF_ERROR(contest.Enter("TensorFlow PS", SyncReplicasExchange(peers, training), two));
  RETURN_IF_ERROR(contest.Enter("PyTorch alone", DdpExchange(peers, torch), SpecOf(options, 1)));
  RETURN_IF_ERROR(contest.Enter("FIRST_ARRIVALS", TrainingExchange(first_arrivals), two));
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  for (const int peer : {1, 2}) {
    Row* const row = AddRow(absl::StrCat(workload.name, ", 2 workers"), "steps/s", contest.name(peer), report);
    row->set_group("peers");
    row->set_at_least(PeerBar(training));
    contest.Fill({0}, {peer}, StepsPerSecond, row);
  }
  Row* const original =
      AddRow(absl::StrCat(workload.name, ", 2 workers, ", contest.name(4)), "steps/s", contest.name(2), report);
  original->set_group("peers");
  if (training.batch == 64) original->set_at_least(PeerBar(training));
  contest.Fill({4}, {2}, StepsPerSecond, original);
  const auto batch = static_cast<double>(training.batch);
  Row* const alone =
      AddRow(absl::StrCat(workload.name, ", PyTorch DDP with 2 workers"), "examples/s", contest.name(3), report);
  alone->set_group("peers");
  contest.Fill({1, 2 * batch}, {3, batch}, StepsPerSecond, alone);
  return absl::OkStatus();
}

// A model that PyTorch trains, and the bar for its steps per second in shared memory.
struct TorchCase {
  TorchTraining training;
  std::string name;
  double bar = 0;
};

absl::Status MeasureTorchCase(const TrainingBenchmarkOptions& options, const Peers& peers, const TorchCase& torch,
                              Report* report) {
  const ExchangeSpec two = SpecOf(options, 2);
  ExchangeSpec tcp = two;
  tcp.share_memory = tcp.unix_socket = false;
  const bool also_tcp = torch.training.model == "mlp" && torch.training.batch == 64;
  Contest contest(kTorchTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("PyTorch DDP", DdpExchange(peers, torch.training), two));
  RETURN_IF_ERROR(contest.Enter("lockstep.torch", TorchRunExchange(peers, torch.training), two));
  if (also_tcp) {
    RETURN_IF_ERROR(contest.Enter("lockstep.torch over TCP", TorchRunExchange(peers, torch.training), tcp));
  }
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  for (int contestant = 1; contestant < contest.size(); ++contestant) {
    Row* const row = AddRow(absl::StrCat(torch.name, ", 2 workers, ", contest.name(contestant),
                                         torch.training.deterministic ? ", deterministic()" : ""),
                            "steps/s", contest.name(0), report);
    row->set_group("torch");
    if (!torch.training.deterministic) row->set_at_least(contestant == 1 ? torch.bar : kTorchTcpBar);
    contest.Fill({contestant}, {0}, StepsPerSecond, row);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureTraining(const TrainingBenchmarkOptions& options, Report* report) {
  for (const Workload& workload : Workloads(options)) {
    RETURN_IF_ERROR(MeasureWorkload(options, workload, report));
    if (!workload.training.hidden.empty()) {
      RETURN_IF_ERROR(MeasureDigests(options, workload, report));
      RETURN_IF_ERROR(MeasureAudit(options, workload, report));
      RETURN_IF_ERROR(MeasurePolicies(options, workload, report));
    }
    RETURN_IF_ERROR(MeasureFollowers(options, workload, report));
    RETURN_IF_ERROR(MeasureChanges(options, workload, report));
  }
  return absl::OkStatus();
}

absl::Status MeasurePeers(const TrainingBenchmarkOptions& options, const Peers& peers, Report* report) {
  for (const Workload& workload : Workloads(options)) {
    RETURN_IF_ERROR(MeasureWorkloadOfPeers(options, peers, workload, report));
  }
  return absl::OkStatus();
}

absl::Status MeasureTorch(const TrainingBenchmarkOptions& options, const Peers& peers, Report* report) {
  const TorchCase cases[] = {{{"softmax", 64}, "softmax, batch 64", 2},
                             {{"mlp", 64}, "MLP, batch 64", 1.3},
                             {{"mlp", 256}, "MLP, batch 256", 1.3},
                             {{"cnn", 64}, "CNN, batch 64", 1.05}};
  for (const bool deterministic : {false, true}) {
    for (TorchCase torch : cases) {
      if (!absl::c_linear_search(options.batches, torch.training.batch)) continue;
      torch.training.deterministic = deterministic;
      RETURN_IF_ERROR(MeasureTorchCase(options, peers, torch, report));
    }
  }
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

#include "lockstep/tests/benchmark/straggler_benchmark.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/tests/benchmark/spread.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {
namespace benchmark {
namespace {

using config::v1::TrainingConfig;

constexpr int kWorkers = 8;
constexpr int kMostBackups = 3;
constexpr int kWindows = 5;
// Initial fraction of the time that is not measured, because workers are still joining.
constexpr double kWarmUp = 0.1;
// A run that completes no step within this time is considered stuck.
constexpr absl::Duration kStuck = absl::Seconds(30);
// The delays have a Pareto distribution, P(delay > x) = (kShortest / x) ^ kShape, cut off at kLongest. The mean delay
// is 27 ms; the longest of eight delays is 86 ms on average.
constexpr absl::Duration kShortest = absl::Milliseconds(10);
constexpr absl::Duration kLongest = absl::Milliseconds(500);
constexpr double kShape = 1.5;
constexpr uint64_t kSeed = 29;

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
  input { split { name: "train" synthetic { examples: 64 shape: 4 classes: 2 } } batch_size: 1 }
  optimizer { sgd {} learning_rate { initial: 0.01 } }
  training { unbounded: true }
)";

// Returns the n-th delay of a worker. The delays are the same under each policy.
absl::Duration DelayOf(int worker, uint64_t n) {
  const double uniform = Philox::ToUniform(Philox(kSeed, static_cast<uint64_t>(worker)).At(n)[0]);
  return std::min(kLongest, kShortest * std::pow(1 - uniform, -1 / kShape));
}

absl::Duration MeanDelay() {
  const double cut = std::pow(absl::FDivDuration(kShortest, kLongest), kShape - 1);
  return kShortest * (1 + (1 - cut) / (kShape - 1));
}

// Wraps another model and delays each computation of gradients.
class DelayedModel : public ForwardingModel {
 public:
  DelayedModel(std::unique_ptr<Model> model, int worker) : ForwardingModel(std::move(model)), worker_(worker) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    absl::SleepFor(DelayOf(worker_, computed_++));
    return ForwardingModel::ComputeGradients(values, batch, key, sink);
  }

 private:
  const int worker_;
  uint64_t computed_ = 0;
};

// Returns the configuration of a run with `replicas` batches per step.
config::v1::RunSpec RunOf(TrainingConfig::PolicyCase policy, int replicas) {
  config::v1::RunSpec config;
  CHECK(google::protobuf::TextFormat::ParseFromString(kRun, &config));
  TrainingConfig* const training = config.mutable_training();
  training->set_replicas_to_aggregate(replicas);
  if (policy == TrainingConfig::kFirstArrivals) training->mutable_first_arrivals()->set_total_replicas(kWorkers);
  if (policy == TrainingConfig::kAsync) training->mutable_async();
  ApplyDefaults(&config);
  return config;
}

struct Commit {
  int64_t step = 0;
  absl::Time time;
};

// Waits for the next step to be committed.
absl::StatusOr<Commit> AwaitCommit(const SyncReplicas& sync) {
  const int64_t before = sync.step();
  const absl::Time deadline = absl::Now() + kStuck;
  while (sync.step() == before) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no step after step ", before, " within ", absl::FormatDuration(kStuck)));
    }
    absl::SleepFor(absl::Microseconds(200));
  }
  return Commit{sync.step(), absl::Now()};
}

// Runs a cluster, and appends the steps per second of each window to `rates`.
absl::Status MeasureRates(const config::v1::RunSpec& config, absl::Duration duration, std::vector<double>* rates) {
  TestCluster::Options options;
  options.config = config;
  options.local = true;
  options.with_logdir = false;
  options.housekeeping_period = Chief::Options().housekeeping_period;
  options.change_workload = [](int worker, Workload* workload) {
    workload->model = std::make_unique<DelayedModel>(std::move(workload->model), worker);
  };
  TestCluster cluster(options);
  RETURN_IF_ERROR(cluster.StartChief());
  for (int i = 0; i < kWorkers; ++i) cluster.StartWorker();
  RETURN_IF_ERROR(cluster.chief()->AwaitModel());
  const SyncReplicas& sync = *cluster.chief()->training()->sync();
  absl::SleepFor(duration * kWarmUp);
  ASSIGN_OR_RETURN(Commit begin, AwaitCommit(sync));
  for (int i = 0; i < kWindows; ++i) {
    absl::SleepFor(duration * (1 - kWarmUp) / kWindows);
    ASSIGN_OR_RETURN(const Commit end, AwaitCommit(sync));
    rates->push_back(static_cast<double>(end.step - begin.step) / absl::ToDoubleSeconds(end.time - begin.time));
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status MeasurePolicy(const StragglerBenchmarkOptions& options, TrainingConfig::PolicyCase policy, int backups,
                           Report* report) {
  const bool is_async = policy == TrainingConfig::kAsync;
  const int replicas = is_async ? 1 : kWorkers - backups;
  const config::v1::RunSpec config = RunOf(policy, replicas);
  std::vector<double> steps;
  RETURN_IF_ERROR(MeasureRates(config, absl::Seconds(options.seconds), &steps));
  std::string what = absl::StrCat(PolicyName(config.training()), ", ", CountText(kWorkers, "worker"));
  if (!is_async) absl::StrAppend(&what, ", ", CountText(backups, "backup"));

  const double most = kWorkers / absl::ToDoubleSeconds(MeanDelay());
  std::vector<double> batches, milliseconds;
  for (const double rate : steps) {
    batches.push_back(rate * replicas);
    milliseconds.push_back(1e3 / rate);
  }
  Row* const row = report->add_row();
  row->set_group("stragglers");
  row->set_what(what);
  row->set_unit("batches/s");
  row->set_against(absl::StrCat(kWorkers, " workers that never wait"));
  Compare(batches, std::vector<double>(batches.size(), most), row);
  Row* const time = report->add_row();
  time->set_group("stragglers");
  time->set_what(what);
  time->set_unit("ms/step");
  *time->mutable_ours() = SpreadOf(milliseconds);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureStragglers(const StragglerBenchmarkOptions& options, Report* report) {
  for (const auto policy : {TrainingConfig::kDeterministic, TrainingConfig::kFirstArrivals}) {
    for (int backups = 0; backups <= kMostBackups; ++backups) {
      RETURN_IF_ERROR(MeasurePolicy(options, policy, backups, report));
    }
  }
  return MeasurePolicy(options, TrainingConfig::kAsync, 0, report);
}

}  // namespace benchmark
}  // namespace lockstep

#include "lockstep/tests/testing/test_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/server/local/local_chief_client.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

// A batch source that calls `before` before it returns each batch.
class ObservedBatches : public BatchSource {
 public:
  ObservedBatches(std::unique_ptr<BatchSource> source, std::function<void(int64_t)> before)
      : source_(std::move(source)), before_(std::move(before)) {}
  const ExampleSpec& spec() const override { return source_->spec(); }
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    before_(step);
    return source_->Get(step, slot);
  }
  void Prefetch(int64_t step, int64_t slot) override { source_->Prefetch(step, slot); }

 private:
  const std::unique_ptr<BatchSource> source_;
  const std::function<void(int64_t)> before_;
};

}  // namespace

constexpr char TestCluster::kLogdir[];

config::v1::RunSpec SmallRunSpec(int64_t steps, int64_t slots) {
  config::v1::RunSpec config;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(
    model {
      layer { name: "hidden" dense { units: 24 } }
      layer { name: "norm" batch_norm { activation: RELU } }
      layer { name: "drop" dropout { rate: 0.25 } }
      layer { name: "logits" dense { units: 4 } }
      loss { softmax_cross_entropy {} }
    }
    input {
      split { name: "train" synthetic { kind: CLASSIFICATION examples: 500 shape: 12 classes: 4 } }
      batch_size: 8
    }
    optimizer { adam {} learning_rate { initial: 0.01 } }
    training { seed: 7 }
    cluster { lease_seconds: 2 }
  )",
                                                      &config));
  config.mutable_training()->set_steps(steps);
  config.mutable_training()->set_replicas_to_aggregate(slots);
  ApplyDefaults(&config);
  return config;
}

TestCluster::TestCluster(Options options) : options_(std::move(options)), address_(options_.server.address) {}

TestCluster::~TestCluster() {
  for (const auto& worker : workers_) worker->worker->RequestStop();
  KillChief();
  JoinWorkers();
}

absl::Status TestCluster::StartChief() {
  Chief::Options chief;
  chief.fs = &fs_;
  chief.clock = options_.clock;
  if (options_.with_logdir) chief.logdir = kLogdir;
  chief.config = options_.config;
  chief.machine.host = "host-chief";
  chief.share_memory = options_.share_memory;
  chief.housekeeping_period = options_.housekeeping_period;
  ASSIGN_OR_RETURN(chief_, Chief::Create(std::move(chief)));
  if (options_.local) return absl::OkStatus();
  ChiefServer::Options server = options_.server;
  server.address = address_;
  ASSIGN_OR_RETURN(server_, ChiefServer::Start(server, chief_.get()));
  address_ = server_->address();
  return absl::OkStatus();
}

void TestCluster::KillChief() {
  server_.reset();
  if (options_.local) {
    // Workers without sockets call the chief directly, so they must end before the chief is destroyed.
    for (const auto& worker : workers_) worker->worker->RequestStop();
    JoinWorkers();
  }
  chief_.reset();
}

std::unique_ptr<ChiefClient> TestCluster::NewClient() {
  if (options_.local) return NewLocalChiefClient(chief_.get());
  // The address of a Unix socket is already a master string.
  const std::string chief =
      IsUnixAddress(address_) ? address_ : absl::StrReplaceAll(options_.master, {{"CHIEF", address_}});
  const auto master = ParseMasterAddress(chief);
  CHECK(master.ok()) << master.status();
  return GrpcConnector(&fs_, options_.client).Connect(*master).value();
}

int TestCluster::StartWorker(int compute_threads) {
  auto worker = std::make_unique<Worker>();
  worker->client = NewClient();
  TrainingWorker::Options options;
  const auto index = static_cast<int>(workers_.size());
  options.name = absl::StrCat("worker-", index);
  options.host = absl::StrCat("host-", index);
  options.clock = Clock::Real();
  options.chief_address = address_;
  options.make_workload = [this, index,
                           compute_threads](const config::v1::RunSpec& config) -> absl::StatusOr<Workload> {
    WorkloadOptions workload_options;
    workload_options.fs = options_.data;
    workload_options.compute_threads = compute_threads;
    ASSIGN_OR_RETURN(Workload workload, LoadWorkload(config, workload_options));
    if (options_.before_batch) {
      workload.batches = std::make_unique<ObservedBatches>(std::move(workload.batches), options_.before_batch);
    }
    if (options_.change_workload) options_.change_workload(index, &workload);
    return workload;
  };
  worker->worker = std::make_unique<TrainingWorker>(std::move(options), worker->client.get());
  Worker* const started = worker.get();
  worker->thread = std::thread([started] { started->status = started->worker->Run(); });
  workers_.push_back(std::move(worker));
  return index;
}

void TestCluster::KillWorker(int index) {
  // The second call cuts short the disconnect that the first one has started.
  for (int i = 0; i < 2; ++i) workers_[index]->worker->RequestStop();
  if (workers_[index]->thread.joinable()) workers_[index]->thread.join();
}

absl::Status TestCluster::JoinWorker(int index) {
  if (workers_[index]->thread.joinable()) workers_[index]->thread.join();
  return workers_[index]->status;
}

absl::Status TestCluster::Wait() { return chief_->ends()->Wait(); }

std::vector<absl::Status> TestCluster::JoinWorkers() {
  std::vector<absl::Status> statuses;
  for (size_t i = 0; i < workers_.size(); ++i) statuses.push_back(JoinWorker(static_cast<int>(i)));
  return statuses;
}

absl::StatusOr<std::string> TestCluster::Digest() {
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest, LatestCheckpoint(&fs_, kLogdir));
  if (!newest) return absl::NotFoundError("no checkpoint");
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(&fs_, *newest));
  return CheckpointDigest(*reader);
}

absl::StatusOr<std::string> TrainAndDigest(const TestCluster::Options& options, int workers) {
  TestCluster cluster(options);
  RETURN_IF_ERROR(cluster.StartChief());
  for (int i = 0; i < workers; ++i) cluster.StartWorker();
  RETURN_IF_ERROR(cluster.Wait());
  for (const absl::Status& status : cluster.JoinWorkers()) RETURN_IF_ERROR(status);
  return cluster.Digest();
}

}  // namespace lockstep

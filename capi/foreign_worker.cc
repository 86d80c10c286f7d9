#include "lockstep/capi/foreign_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/capi/tls_api.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/worker/session/initial_values.h"

namespace lockstep {
namespace {

uint64_t SeedOf(uint64_t seed, int64_t step, int64_t slot) {
  const Philox::Block block = Philox::ForSlot(seed, "program", step, slot).At(0);
  return static_cast<uint64_t>(block[1]) << 32 | block[0];
}

absl::Status CheckInitializers(const v1::ModelSpec& model) {
  for (const v1::VariableSpec& variable : model.variables()) {
    RETURN_IF_ERROR(ValidateInitializer(variable));
  }
  return absl::OkStatus();
}

absl::Status OnlyTrains() { return absl::UnimplementedError("the program's model can only be trained here"); }

}  // namespace

// A model that hands each slot to the exchange, for the program to compute.
class ForeignWorker::ForeignModel : public Model {
 public:
  // `worker` must outlive this object.
  ForeignModel(ForeignWorker* worker, absl::optional<ExampleOrder> order)
      : worker_(*worker), order_(std::move(order)) {}

  const v1::ModelSpec& spec() const override { return worker_.options_.model; }
  std::vector<Part> Fingerprint() const override { return worker_.options_.parts; }

  absl::Status ComputeGradients(VariableValues values, const Batch&, const SlotKey& key, GradientSink* sink) override {
    ForeignSlot slot;
    slot.key = key;
    slot.seed = SeedOf(key.seed, key.step, key.slot);
    slot.canary = !worker_.in_block_;
    slot.fresh = std::exchange(worker_.fresh_, false);
    slot.values = values;
    std::vector<int64_t> indices;
    if (order_) {
      ASSIGN_OR_RETURN(indices, order_->Indices(key.step, key.slot));
      slot.indices = indices;
    }
    return worker_.exchange_.Compute(slot, sink);
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return OnlyTrains(); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return OnlyTrains(); }

 private:
  ForeignWorker& worker_;
  const absl::optional<ExampleOrder> order_;
};

ForeignWorker::ForeignWorker(Options options, ParameterLayout layout)
    : options_(std::move(options)), layout_(std::move(layout)), exchange_(&layout_) {}

absl::StatusOr<std::unique_ptr<ForeignWorker>> ForeignWorker::Create(Options options) {
  if (options.replay) options.master = options.replay->logdir();  // for messages
  for (v1::VariableSpec& variable : *options.model.mutable_variables()) {
    variable.set_dtype(VariableType(variable.dtype()));
  }
  ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(options.model));
  RETURN_IF_ERROR(CheckInitializers(options.model));
  if (options.framework.name().empty()) {
    return absl::InvalidArgumentError("framework has no name; it takes what computes, such as name: \"PyTorch\"");
  }
  if (options.name.empty()) options.name = ProcessName("worker");
  std::map<std::string, Tensor> initial_values = std::exchange(options.initial_values, {});
  std::unique_ptr<ForeignWorker> worker(new ForeignWorker(std::move(options), std::move(layout)));
  RETURN_IF_ERROR(worker->options_.replay ? worker->PrepareReplay() : worker->CreateWorker(std::move(initial_values)));
  worker->thread_ = Executor::Threads()->TryStart("lockstep worker",
                                                  [worker = worker.get()] { worker->exchange_.Close(worker->Run()); });
  if (worker->thread_ == nullptr) return absl::ResourceExhaustedError("the system has no thread left for the worker");
  return worker;
}

absl::Status ForeignWorker::CreateWorker(std::map<std::string, Tensor> initial_values) {
  ASSIGN_OR_RETURN(const MasterAddress address, ParseMasterAddress(options_.master));
  if (address.in_process()) {
    return absl::InvalidArgumentError("master is empty; it takes the chief's address, such as grpc://127.0.0.1:2222");
  }
  GrpcClientOptions client;
  ASSIGN_OR_RETURN(client.credentials, LibraryCredentials());
  ASSIGN_OR_RETURN(client_, GrpcConnector(FileSystem::Real(), client).Connect(address));
  TrainingWorker::Options training;
  training.name = options_.name;
  training.clock = Clock::Real();
  training.chief_address = options_.master;
  training.max_wait = options_.chief_wait;
  if (!initial_values.empty()) {
    training.initial_values = std::make_shared<const InitialValues>(std::move(initial_values));
    initial_digest_ = training.initial_values->digest();
  }
  training.observer = this;
  training.make_workload = [this](const config::v1::RunSpec& config) { return MakeWorkload(config); };
  worker_ = std::make_unique<TrainingWorker>(training, client_.get());
  return absl::OkStatus();
}

absl::Status ForeignWorker::PrepareReplay() {
  RETURN_IF_ERROR(options_.replay->Claim());
  // The replay itself reports a record that is absent or damaged.
  const auto record = ReadRunRecord(FileSystem::Real(), options_.replay->logdir());
  if (record.ok() && *record) replayed_digest_ = (*record)->initial_values().digest();
  in_block_ = fresh_ = true;
  return absl::OkStatus();
}

absl::Status ForeignWorker::Run() {
  if (worker_ != nullptr) return worker_->Run();
  options_.replay->Compute([this](const config::v1::RunSpec& config) { return MakeWorkload(config); });
  return absl::CancelledError("the replay is over");
}

void ForeignWorker::End() {
  if (thread_ == nullptr) return;
  // The first call lets a contribution that is in progress finish. The second call aborts it.
  if (worker_ != nullptr) worker_->RequestStop();
  exchange_.Cancel();
  if (worker_ != nullptr) worker_->RequestStop();
  thread_->Join();
}

void ForeignWorker::RequestStop() {
  if (worker_ != nullptr) worker_->RequestStop();
  exchange_.Stop();
}

BlockObserver::Decision ForeignWorker::BeforeBlock(const v1::Token&, BlockAdditions*) {
  in_block_ = true;
  return Decision::kCompute;
}

absl::StatusOr<Workload> ForeignWorker::MakeWorkload(const config::v1::RunSpec& config) {
  absl::optional<ExampleOrder> order;
  if (options_.data) {
    ASSIGN_OR_RETURN(order, ExampleOrder::Create(options_.data->examples(), config.input(), TrainingBatches(config)));
  }
  {
    MutexLock lock(&mutex_);
    // Checks only the first configuration, since a program may change the run's settings later.
    if (!config_ && options_.run) {
      config::v1::RunSpec theirs = WeightsConfig(config), own = WeightsConfig(*options_.run);
      // If the program configures no warm start, it accepts the run's.
      if (own.checkpoint().warm_start().empty()) {
        theirs.clear_checkpoint();
        own.clear_checkpoint();
      }
      const std::string difference = FirstDifference(theirs, own);
      if (!difference.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the run at ", options_.master, " is not the one that this program declares: ", difference));
      }
    }
    config_ = config;
    order_ = order;
  }
  Workload workload;
  workload.model = std::make_unique<ForeignModel>(this, std::move(order));
  workload.data = options_.data;
  workload.framework = options_.framework;
  return workload;
}

absl::StatusOr<config::v1::RunSpec> ForeignWorker::Spec() {
  MutexLock lock(&mutex_);
  if (!config_) return absl::FailedPreconditionError("the worker has not heard from a chief yet");
  return *config_;
}

absl::StatusOr<ForeignWorker::InitialDigests> ForeignWorker::initial_digests() {
  RETURN_IF_ERROR(Spec().status());
  return InitialDigests{initial_digest_, worker_ == nullptr ? replayed_digest_ : worker_->initial_values_digest()};
}

absl::StatusOr<std::vector<int64_t>> ForeignWorker::Indices(int64_t step, int64_t slot) {
  MutexLock lock(&mutex_);
  if (!config_) return absl::FailedPreconditionError("the worker has not heard from a chief yet");
  if (!order_) return absl::FailedPreconditionError("the worker was made without a number of examples");
  return order_->Indices(step, slot);
}

absl::StatusOr<uint64_t> ForeignWorker::Seed(int64_t step, int64_t slot) {
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, Spec());
  return SeedOf(config.training().seed(), step, slot);
}

}  // namespace lockstep

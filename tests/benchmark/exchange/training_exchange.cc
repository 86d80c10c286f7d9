#include "lockstep/tests/benchmark/exchange/training_exchange.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/local/local_chief_client.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"
#include "lockstep/worker/session/block/block_computer.h"
#include "lockstep/worker/session/block/block_gradients.h"
#include "lockstep/worker/session/workload/configured_workload.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {
namespace benchmark {
namespace {

// A worker that computes a step in the same way as a worker process, from the token to the gradients, and with the same
// classes.
class TrainingExchangeWorker : public ExchangeWorker {
 public:
  explicit TrainingExchangeWorker(const TrainingSpec& training)
      : digests_(training.digests), is_async_(training.policy == config::v1::TrainingConfig::kAsync) {}

  // Opens a session through `client`, and waits until every worker has a slot.
  absl::Status Start(const config::v1::RunSpec& config, std::unique_ptr<ChiefClient> client, int index) {
    ASSIGN_OR_RETURN(workload_, LoadWorkload(config, {}));
    ASSIGN_OR_RETURN(layout_, ParameterLayout::Create(workload_.model->spec()));
    gradients_ = std::make_unique<BlockGradients>(&*layout_, &wanted_);
    ASSIGN_OR_RETURN(session_,
                     LockstepSession::Open(std::move(client), workload_.model->spec(), index,
                                           [batches = workload_.batches.get()] { return batches->PrepareIfBrief(); }));
    compute_ = [this](const StepChannel::Assignment& assignment) { return ComputeBlock(assignment); };
    return session_->AwaitTheOthers(compute_);
  }

  absl::Status Step(int n) override {
    return is_async_ ? session_->Contribute(n, compute_) : session_->Step(n, compute_);
  }
  absl::Status HelpOthers() override { return is_async_ ? absl::OkStatus() : session_->TakePendingStep(compute_); }

 private:
  absl::Status ComputeBlock(const StepChannel::Assignment& assignment) {
    v1::Token token = assignment.token;
    if (digests_) token.set_digest(true);
    const int64_t end = token.first_slot() + token.slot_count();
    gradients_->BeginBlock(session_->channel(), token);
    for (int64_t slot = token.first_slot(); slot < end; ++slot) {
      SlotKey key;
      key.step = token.has_stream() ? token.position() : token.step();
      key.slot = token.has_stream() ? token.stream() : slot;
      ASSIGN_OR_RETURN(const Batch batch, workload_.batches->Get(key.step, key.slot));
      PrefetchFollowing(token, slot, workload_.batches.get());
      gradients_->BeginSlot(slot);
      RETURN_IF_ERROR(workload_.model->ComputeGradients(assignment.values, batch, key, gradients_.get()));
      RETURN_IF_ERROR(gradients_->status());
    }
    gradients_->EndBlock();
    return gradients_->status();
  }

  const bool digests_;
  const bool is_async_;
  Workload workload_;
  absl::optional<ParameterLayout> layout_;
  const std::atomic<bool> wanted_{true};
  std::unique_ptr<BlockGradients> gradients_;
  LockstepSession::Compute compute_;
  std::unique_ptr<LockstepSession> session_;
};

// A worker with a chief in the same process.
class InProcessWorker : public ExchangeWorker {
 public:
  explicit InProcessWorker(const TrainingSpec& training) : worker_(training) {}

  absl::Status Start(const config::v1::RunSpec& config) {
    Chief::Options options;
    options.clock = Clock::Real();
    options.config = config;
    ASSIGN_OR_RETURN(chief_, Chief::Create(std::move(options)));
    return worker_.Start(config, NewLocalChiefClient(chief_.get()), 0);
  }

  absl::Status Step(int n) override { return worker_.Step(n); }

 private:
  std::unique_ptr<Chief> chief_;
  TrainingExchangeWorker worker_;
};

class NoServer : public ExchangeServer {
  std::string address() const override { return ""; }
};

void SetPolicy(const TrainingSpec& spec, int slots, config::v1::TrainingConfig* training) {
  if (spec.policy == config::v1::TrainingConfig::kFirstArrivals) {
    training->mutable_first_arrivals()->set_total_replicas(slots);
    training->mutable_first_arrivals()->set_initial_tokens(slots);
  } else if (spec.policy == config::v1::TrainingConfig::kAsync) {
    training->mutable_async();
    training->set_replicas_to_aggregate(1);
  }
}

}  // namespace

void WriteImages(const std::string& directory, int count) {
  std::vector<uint32_t> bits(static_cast<size_t>(count * kPixels / 4));
  Philox(1, 1).FillBits(0, absl::MakeSpan(bits));
  const absl::string_view pixels(reinterpret_cast<const char*>(bits.data()), bits.size() * sizeof(uint32_t));
  std::string labels(static_cast<size_t>(count), '\0');
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<char>(bits[i] % kClasses);
  const auto n = static_cast<uint32_t>(count);
  const auto write = [&directory](const std::string& name, absl::string_view contents) {
    const absl::Status status = WriteFileAtomically(FileSystem::Real(), JoinPath(directory, name), contents);
    CHECK(status.ok()) << status;
  };
  write("images", Gzip(EncodeIdx({n, 28, 28}, pixels)));
  write("labels", Gzip(EncodeIdx({n}, labels)));
}

config::v1::RunSpec TrainingConfig(const TrainingSpec& spec, int slots) {
  config::v1::RunSpec config = EndlessRun(slots);
  SetPolicy(spec, slots, config.mutable_training());
  config.mutable_training()->set_record_order(spec.record_order);
  if (spec.audit) config.mutable_audit()->set_fraction(*spec.audit);
  config::v1::ModelConfig* const model = config.mutable_model();
  const auto add = [model](const std::string& name) {
    config::v1::Layer* const layer = model->add_layer();
    layer->set_name(name);
    return layer;
  };
  add("flatten")->mutable_flatten();
  for (size_t i = 0; i < spec.hidden.size(); ++i) {
    auto* const dense = add(absl::StrCat("hidden", i))->mutable_dense();
    dense->set_units(spec.hidden[i]);
    dense->set_activation(config::v1::RELU);
  }
  add("logits")->mutable_dense()->set_units(kClasses);
  model->add_loss()->mutable_softmax_cross_entropy();
  config::v1::InputConfig::Split* const split = config.mutable_input()->add_split();
  split->set_name("train");
  split->mutable_idx()->set_images(spec.images);
  split->mutable_idx()->set_labels(spec.labels);
  config.mutable_input()->set_batch_size(spec.batch);
  return config;
}

Exchange TrainingExchange(const TrainingSpec& training) {
  return {[training](const ExchangeSpec& spec) {
            return ServeLockstep(TrainingConfig(training, spec.workers), spec, training.follower);
          },
          [training](const ExchangeSpec& spec, const std::string& address,
                     int index) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
            auto worker = std::make_unique<TrainingExchangeWorker>(training);
            GrpcClientOptions client;
            client.credentials = Credentials(spec.worker_tls_dir);
            RETURN_IF_ERROR(
                worker->Start(TrainingConfig(training, spec.workers), NewGrpcChiefClient(address, client), index));
            return std::unique_ptr<ExchangeWorker>(std::move(worker));
          }};
}

Exchange InProcessExchange(const TrainingSpec& training) {
  return {ServeNothing,
          [training](const ExchangeSpec&, const std::string&, int) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
            auto worker = std::make_unique<InProcessWorker>(training);
            RETURN_IF_ERROR(worker->Start(TrainingConfig(training, 1)));
            return std::unique_ptr<ExchangeWorker>(std::move(worker));
          }};
}

absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeNothing(const ExchangeSpec&) {
  return std::unique_ptr<ExchangeServer>(std::make_unique<NoServer>());
}

}  // namespace benchmark
}  // namespace lockstep

#include "lockstep/tests/benchmark/exchange/lockstep_session.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/certificate_authority.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/chief_server.h"

namespace lockstep {
namespace benchmark {
namespace {

class LockstepServer : public ExchangeServer {
 public:
  LockstepServer(std::unique_ptr<Chief> chief, std::unique_ptr<ChiefServer> server, Follower follower)
      : chief_(std::move(chief)), server_(std::move(server)) {
    if (follower != Follower::kNone) thread_ = std::thread([this, follower] { Follow(follower); });
  }
  ~LockstepServer() override {
    chief_->ends()->RequestStop();
    chief_->ends()->Wait().IgnoreError();  // wakes the follower
    if (thread_.joinable()) thread_.join();
  }
  std::string address() const override { return server_->address(); }

 private:
  void Follow(Follower follower) {
    if (!chief_->AwaitModel().ok()) return;
    Training* const training = chief_->training();
    // Limits how far the run may get ahead of the program, as HookedSession does.
    const int64_t ahead = follower == Follower::kLooks ? 64 : 0;
    int64_t allowed = -1;
    for (int64_t step = 0;;) {
      if (allowed <= step + ahead - ahead / 4) {
        allowed = step + ahead;
        training->sync()->SetLimit(SyncReplicas::Limiter::kFollower, allowed);
      }
      const auto commit = training->log()->Await(step, absl::InfiniteFuture());
      if (!commit.ok()) return;
      step = commit->step();
      if (!Change(follower, step).ok()) return;
    }
  }

  absl::Status Change(Follower follower, int64_t step) {
    if (follower == Follower::kChangesRate) {
      SettingsChange change;
      change.learning_rate = step % 2 == 0 ? 0.01f : 0.02f;
      return chief_->changes()->ChangeSettings(change, ChangedBy::kHook);
    }
    if (follower != Follower::kAssigns) return absl::OkStatus();
    const std::vector<float> bias(10, static_cast<float>(step % 2));
    return chief_->changes()->Assign({{"logits/bias", Tensor::FromValues<float>({10}, bias)}}, ChangedBy::kHook);
  }

  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefServer> server_;
  std::thread thread_;
};

}  // namespace

config::v1::RunSpec EndlessRun(int slots) {
  config::v1::RunSpec config;
  config.mutable_optimizer()->mutable_sgd();
  config.mutable_optimizer()->mutable_learning_rate()->set_initial(0.01f);
  config.mutable_training()->set_steps(int64_t{1} << 40);
  config.mutable_training()->set_replicas_to_aggregate(slots);
  config.mutable_cluster()->set_lease_seconds(3600);
  return config;
}

absl::Status MakeKits(const std::string& directory, ExchangeSpec* spec) {
  FileSystem* const fs = FileSystem::Real();
  const absl::Time now = Clock::Real()->WallTime();
  const ValidityPeriod validity = {now - absl::Hours(1), now + absl::Hours(24)};
  const std::string authority = absl::StrCat(directory, "/ca");
  RETURN_IF_ERROR(CreateAuthority(fs, authority, "bench", validity));
  spec->chief_tls_dir = absl::StrCat(directory, "/chief-kit");
  spec->worker_tls_dir = absl::StrCat(directory, "/worker-kit");
  spec->viewer_tls_dir = absl::StrCat(directory, "/viewer-kit");
  RETURN_IF_ERROR(IssueKit(fs, authority, {PeerRole::kChief, "", {}, validity}, spec->chief_tls_dir));
  RETURN_IF_ERROR(IssueKit(fs, authority, {PeerRole::kWorker, "", {}, validity}, spec->worker_tls_dir));
  return IssueKit(fs, authority, {PeerRole::kViewer, "", {}, validity}, spec->viewer_tls_dir);
}

absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeLockstep(const config::v1::RunSpec& config,
                                                              const ExchangeSpec& spec, Follower follower) {
  Chief::Options options;
  options.followed = follower != Follower::kNone;
  options.clock = Clock::Real();
  options.config = config;
  options.share_memory = spec.share_memory;
  options.logdir = spec.logdir;
  options.write_journal = !spec.logdir.empty();
  ASSIGN_OR_RETURN(auto chief, Chief::Create(std::move(options)));
  ChiefServer::Options rpc;
  rpc.step_threads = spec.step_threads;
  rpc.credentials = Credentials(spec.chief_tls_dir);
  // Several servers may run at the same time, each in its own process.
  if (spec.unix_socket) rpc.address = absl::StrCat("unix:", spec.directory, "/chief-", getpid());
  ASSIGN_OR_RETURN(auto server, ChiefServer::Start(rpc, chief.get()));
  return std::unique_ptr<ExchangeServer>(
      std::make_unique<LockstepServer>(std::move(chief), std::move(server), follower));
}

absl::StatusOr<std::unique_ptr<LockstepSession>> LockstepSession::Open(std::unique_ptr<ChiefClient> client,
                                                                       const v1::ModelSpec& model, int index,
                                                                       std::function<bool()> idle) {
  std::unique_ptr<LockstepSession> self(new LockstepSession());
  self->client_ = std::move(client);
  v1::OpenSessionRequest request;
  request.set_worker(absl::StrCat("worker-", index));
  request.set_incarnation(static_cast<uint64_t>(index) + 1);
  *request.mutable_model() = model;
  *request.mutable_build() = ThisBuildInfo();
  // Declares the same arbitrary canary digests for every worker, so that none has to compute the canary.
  for (const v1::VariableSpec& variable : model.variables()) {
    if (variable.trainable()) request.add_canary_digest(1);
  }
  for (int i = 0; i < model.update_ops_size(); ++i) request.add_canary_digest(1);
  auto session = self->client_->OpenSession(request);
  while (absl::IsUnavailable(session.status())) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    session = self->client_->OpenSession(request);
  }
  RETURN_IF_ERROR(session.status());
  ChiefClient::StepOptions options;
  options.session_id = session->session_id();
  options.generation = session->generation();
  if (session->has_shared_memory()) options.chief_memory = session->shared_memory();
  options.idle = std::move(idle);
  ASSIGN_OR_RETURN(self->channel_, self->client_->OpenStepChannel(options, model));
  self->heartbeat_.set_session_id(session->session_id());
  self->heartbeat_.set_generation(session->generation());
  PeriodicTask::Options periodic;
  periodic.clock = Clock::Real();
  periodic.period = absl::Seconds(1);
  LockstepSession* const raw = self.get();
  self->heartbeats_ = std::make_unique<PeriodicTask>(
      periodic, [raw] { raw->client_->Heartbeat(raw->heartbeat_).status().IgnoreError(); });
  return self;
}

absl::Status LockstepSession::AwaitTheOthers(const Compute& compute) {
  ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
  while (assignment_.token.slot_count() > 1) {
    RETURN_IF_ERROR(compute(assignment_));
    ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
  }
  target_ = assignment_.token.step();
  return absl::OkStatus();
}

absl::Status LockstepSession::TakePendingStep(const Compute& compute) {
  target_ = assignment_.token.step();
  return Step(1, compute);
}

absl::StatusOr<int64_t> LockstepSession::BytesSent() const {
  ASSIGN_OR_RETURN(const v1::RunStatus status, client_->GetStatus());
  int64_t bytes = 0;
  for (const v1::WorkerStatus& worker : status.worker()) bytes += worker.bytes_sent();
  return bytes;
}

absl::Status LockstepSession::Step(int n, const Compute& compute) {
  target_ += n;
  while (assignment_.token.step() < target_) {
    RETURN_IF_ERROR(compute(assignment_));
    ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
  }
  return absl::OkStatus();
}

absl::Status LockstepSession::Contribute(int n, const Compute& compute) {
  for (int i = 0; i < n; ++i) {
    RETURN_IF_ERROR(compute(assignment_));
    ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
  }
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

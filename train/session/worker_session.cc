#include "lockstep/train/session/worker_session.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/train/session/end/run_end_client.h"
#include "lockstep/train/session/local_workers.h"
#include "lockstep/train/session/read_variables.h"

namespace lockstep::train {
namespace {

constexpr absl::Duration kFarewellLimit = absl::Seconds(5);
// Maximum size of RequestEndRequest.reason.
constexpr size_t kMaxReasonBytes = 256;
// Leaves room for the numbers in an AddSummaryRequest.
constexpr size_t kMaxSummary = kMaxSummaryRequestBytes - 64;
// The time that AddSummary waits for a new stream before it tries again.
constexpr absl::Duration kSummaryRetry = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerSession>> WorkerSession::Open(SessionOptions options,
                                                                   const TrainingWorker::Options& machine,
                                                                   Connector* connector) {
  std::unique_ptr<WorkerSession> session(new WorkerSession(std::move(options)));
  RETURN_IF_ERROR(session->Start(machine, connector));
  return session;
}

WorkerSession::WorkerSession(SessionOptions options) : options_(std::move(options)) {}

absl::Status WorkerSession::Start(TrainingWorker::Options worker, Connector* connector) {
  ASSIGN_OR_RETURN(const MasterAddress master, ParseMasterAddress(options_.master));
  if (master.in_process()) {
    return absl::InvalidArgumentError("a worker's master is the address of its chief, such as grpc://127.0.0.1:2222");
  }
  GrpcClientOptions client_options;
  const std::string tls_dir = options_.tls_dir.empty() ? TlsDirOfEnvironment() : options_.tls_dir;
  ASSIGN_OR_RETURN(client_options.credentials, LoadClientCredentials(options_.fs, tls_dir, /*token_file=*/""));
  GrpcConnector grpc(options_.fs, client_options);
  ASSIGN_OR_RETURN(client_, (connector == nullptr ? &grpc : connector)->Connect(master));
  if (!options_.logdir.empty()) {
    RunEndClient::Options end;
    end.fs = options_.fs;
    end.clock = options_.clock;
    end.logdir = options_.logdir;
    client_ = std::make_unique<RunEndClient>(std::move(end), std::move(client_));
  }
  worker.name = options_.name.empty() ? ProcessName("worker") : options_.name;
  worker.clock = options_.clock;
  worker.chief_address = options_.master;
  static_cast<WorkerWaits&>(worker) = options_;
  worker.make_workload = WorkloadFactoryOf(options_);
  worker.observer = this;
  worker_ = std::make_unique<TrainingWorker>(worker, client_.get());
  if (options_.stop != nullptr) stop_listener_ = options_.stop->Add([this] { Leave(); });
  thread_ = worker.executor->Start("worker", [this] {
    absl::Status status = worker_->Run();
    MutexLock lock(&mutex_);
    state_.ended = std::move(status);
    changed_.SignalAll();
  });
  MutexLock lock(&mutex_);
  while (state_.sessions == 0 && !state_.ended) changed_.Wait(&mutex_);
  state_.known_sessions = state_.sessions;
  if (!state_.ended) return absl::OkStatus();
  return state_.ended->ok() ? absl::OutOfRangeError("the run is over") : *state_.ended;
}

WorkerSession::~WorkerSession() {
  if (thread_ != nullptr) {
    Leave();
    thread_->Join();
  }
  if (options_.stop != nullptr) options_.stop->Remove(stop_listener_);
}

void WorkerSession::Leave() {
  {
    MutexLock lock(&mutex_);
    state_.leaving = true;
    changed_.SignalAll();
  }
  worker_->RequestStop();
}

absl::Status WorkerSession::WhyNot() {
  if (state_.ended) return state_.ended->ok() ? absl::OutOfRangeError("the run is over") : *state_.ended;
  state_.known_sessions = state_.sessions;
  changed_.SignalAll();
  return absl::AbortedError("the chief was restarted, or the connection with it was lost; the session is open again");
}

absl::StatusOr<int64_t> WorkerSession::NextStep() {
  MutexLock lock(&mutex_);
  ++state_.asking;
  state_.hold_until.reset();
  changed_.SignalAll();
  while (!state_.step && !state_.ended && state_.sessions == state_.known_sessions) changed_.Wait(&mutex_);
  --state_.asking;
  if (state_.sessions != state_.known_sessions || !state_.step) return WhyNot();
  return *state_.step;
}

void WorkerSession::LimitHold(absl::Duration limit) {
  MutexLock lock(&mutex_);
  if (!state_.step) return;
  state_.hold_until = options_.clock->Now() + limit;
  changed_.SignalAll();
}

absl::StatusOr<StepResult> WorkerSession::Run(const TrainOp& op) {
  RETURN_IF_ERROR(CheckSameOp(options_.op, op, &checked_op_));
  bool send_stop = false;
  StepResult result;
  {
    MutexLock lock(&mutex_);
    state_.result.reset();
    state_.computed.reset();
    state_.hold_until.reset();
    state_.running = true;
    changed_.SignalAll();
    while (!state_.result && !state_.ended && state_.sessions == state_.known_sessions) changed_.Wait(&mutex_);
    state_.running = false;
    if (!state_.result) return WhyNot();
    result = *state_.result;
    state_.last_step = result.global_step;
    send_stop = state_.stop_travels && result.outcome != v1::CONTRIBUTION_ACCEPTED;
  }
  if (send_stop) {
    // The slot keeps its first report, which may have been another worker's, so the stop request is sent separately. If
    // that fails now, the next block carries the request.
    const absl::Status sent = SendStop();
    LOG_IF(WARNING, !sent.ok()) << "asking for the end of the run: " << sent.message();
  }
  return result;
}

absl::Status WorkerSession::SendStop() {
  std::string reason;
  {
    MutexLock lock(&mutex_);
    if (!state_.stop || state_.over || state_.ended) return absl::OkStatus();
    reason = *state_.stop;
  }
  RETURN_IF_ERROR(worker_->RequestFinish(reason));
  MutexLock lock(&mutex_);
  state_.stop.reset();
  return absl::OkStatus();
}

bool WorkerSession::ShouldStop() {
  MutexLock lock(&mutex_);
  return state_.leaving || state_.over || state_.ended.has_value();
}

void WorkerSession::OnSession(bool goes_on) {
  MutexLock lock(&mutex_);
  if (!goes_on) {
    ++state_.sessions;
  }
  ++state_.streams;
  // The first token of this session carries no verdict on the previous block. If the chief ended the previous session
  // only because it set values, it has received that block, and Run returns the block's result. An interrupted block is
  // computed again.
  if (goes_on && state_.computed) state_.result = std::exchange(state_.computed, absl::nullopt);
  state_.computed.reset();
  changed_.SignalAll();
}

bool WorkerSession::RunWaits() const {
  return state_.running && state_.sessions == state_.known_sessions && !state_.result;
}

BlockObserver::Decision WorkerSession::BeforeBlock(const v1::Token& token, BlockAdditions* additions) {
  MutexLock lock(&mutex_);
  state_.step = token.step();
  state_.hold_until.reset();
  changed_.SignalAll();
  bool kept = true;
  // Waits until the caller knows of the new session and wants a block.
  while (kept && !RunWaits() && !state_.leaving && !state_.over) {
    if (!state_.hold_until) {
      changed_.Wait(&mutex_);
    } else {
      kept = !options_.clock->WaitUntil(&changed_, &mutex_, *state_.hold_until) || RunWaits();
    }
  }
  state_.step.reset();
  state_.hold_until.reset();
  if (state_.leaving) return Decision::kStop;
  if (!kept && !state_.over) return Decision::kGiveBack;
  // Attaches the stop request even if an earlier block already carried it: that this token was sent shows that the run
  // has not ended, because the slot already had another report, the stream broke, or the step is not committed yet.
  // Does not attach it to steps before `stop_step`, since a restored chief repeats steps.
  additions->stop = state_.stop_travels = state_.stop && token.step() >= state_.stop_step;
  return Decision::kCompute;
}

bool WorkerSession::AwaitDemand() {
  MutexLock lock(&mutex_);
  while (!state_.running && state_.asking == 0 && !state_.leaving && !state_.over) changed_.Wait(&mutex_);
  return !state_.leaving;
}

void WorkerSession::AfterBlock(const v1::Token& token, double mean_loss) {
  MutexLock lock(&mutex_);
  state_.computed.emplace();
  state_.computed->global_step = token.step() + 1;
  state_.computed->loss = mean_loss;
}

void WorkerSession::OnResult(v1::ContributionResult result) {
  MutexLock lock(&mutex_);
  if (!state_.computed) return;
  state_.result = std::exchange(state_.computed, absl::nullopt);
  state_.result->outcome = result;
  changed_.SignalAll();
}

void WorkerSession::OnRunOver() {
  MutexLock lock(&mutex_);
  state_.over = true;
  changed_.SignalAll();
}

absl::StatusOr<int64_t> WorkerSession::GlobalStep() {
  ASSIGN_OR_RETURN(const v1::RunStatus status, client_->GetStatus());
  return status.global_step();
}

absl::StatusOr<ReadResult> WorkerSession::Read(absl::Span<const std::string> names) {
  return ReadVariables(client_.get(), names);
}

absl::Status WorkerSession::Assign(absl::Span<const NamedTensor>) {
  return absl::FailedPreconditionError("variables are set by the chief's program");
}

absl::Status WorkerSession::ChangeSettings(const SettingsChange&) {
  return absl::FailedPreconditionError("settings are changed by the chief's program");
}

absl::StatusOr<config::v1::RunSpec> WorkerSession::Settings() {
  ASSIGN_OR_RETURN(v1::GetRunSpecReply run, client_->GetRunSpec());
  return std::move(*run.mutable_spec());
}

absl::StatusOr<std::vector<std::string>> WorkerSession::Uninitialized() { return std::vector<std::string>(); }

absl::StatusOr<std::string> WorkerSession::Save() {
  return absl::FailedPreconditionError("checkpoints are saved by the chief's program");
}

absl::Status WorkerSession::AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  const size_t bytes = summary.ByteSizeLong();
  if (bytes > kMaxSummary) {
    return absl::InvalidArgumentError(
        absl::StrCat("a summary has ", bytes, " bytes, at most ", kMaxSummary, " are allowed from a worker"));
  }
  while (true) {
    int streams = 0;
    {
      MutexLock lock(&mutex_);
      if (state_.ended && !state_.ended->ok()) return *state_.ended;
      if (state_.ended) return absl::OutOfRangeError("the run is over: the summary is dropped");
      if (state_.leaving) return absl::CancelledError("this process leaves the run: the summary is dropped");
      if (!global_step) global_step = state_.last_step;
      streams = state_.streams;
    }
    const absl::Status added = worker_->AddSummary(summary, global_step);
    if (!absl::IsUnavailable(added) && !absl::IsAborted(added)) return added;
    // The worker's thread searches for the chief. A block that waits for Run is given back, since it may come from a
    // chief that is gone.
    MutexLock lock(&mutex_);
    state_.hold_until = options_.clock->Now();
    changed_.SignalAll();
    ++state_.asking;
    const absl::Time retry = options_.clock->Now() + kSummaryRetry;
    while (state_.streams == streams && !state_.leaving && !state_.ended &&
           !options_.clock->WaitUntil(&changed_, &mutex_, retry)) {
    }
    --state_.asking;
  }
}

absl::Status WorkerSession::RequestStop(const std::string& reason) {
  const std::string sent = ToUtf8(reason, kMaxReasonBytes);
  {
    MutexLock lock(&mutex_);
    if (state_.step) {
      if (!state_.stop) state_.stop_step = *state_.step;
      state_.stop = sent;
      return absl::OkStatus();
    }
  }
  return worker_->RequestFinish(sent);
}

absl::Status WorkerSession::Close() {
  // No further block can carry a pending stop request.
  const absl::Status stopped = SendStop();
  {
    // If the run is over, waits for the chief to report how it ended.
    MutexLock lock(&mutex_);
    const absl::Time deadline = options_.clock->Now() + kFarewellLimit;
    while (state_.over && !state_.ended && !options_.clock->WaitUntil(&changed_, &mutex_, deadline)) {
    }
  }
  Leave();
  thread_->Join();
  MutexLock lock(&mutex_);
  // Cancelled is the normal result of leaving, unless the process was stopped.
  const bool left = absl::IsCancelled(*state_.ended) && (options_.stop == nullptr || !options_.stop->requested());
  return left ? stopped : *state_.ended;
}

}  // namespace lockstep::train

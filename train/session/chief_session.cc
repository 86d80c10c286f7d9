#include "lockstep/train/session/chief_session.h"

#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/server/local/local_connector.h"
#include "lockstep/train/session/end/reject_out_of_range.h"
#include "lockstep/train/session/read_variables.h"

namespace lockstep::train {
namespace {

absl::StatusOr<std::vector<AssignedValue>> CallInitFunction(const InitFunction& init_fn, const v1::ModelSpec& model) {
  ASSIGN_OR_RETURN(InitialValues initial, CatchExceptions([&] { return init_fn(model); }));
  if (!initial.report.empty()) LOG(INFO) << initial.report;
  std::vector<AssignedValue> values;
  for (NamedTensor& tensor : initial.values) values.push_back({std::move(tensor.name), std::move(tensor.value)});
  return values;
}

void SetSecurity(const SessionOptions& options, ChiefHost::Options* host) {
  if (options.listen.empty()) return;
  host->security.tls_dir = options.tls_dir.empty() ? TlsDirOfEnvironment() : options.tls_dir;
  host->security.insecure = options.insecure || IsInsecureByEnvironment();
  if (host->security.tls_dir.empty()) return;
  ServeOptions serve;
  serve.security = host->security;
  host->serve = ServeOverGrpc(serve);
}

ChiefHost::Options BaseHostOptions(const SessionOptions& options, const SessionMachine& machine) {
  ChiefHost::Options host;
  host.watch_signals = false;
  host.listen = options.listen;
  host.serve = machine.serve;
  SetSecurity(options, &host);
  host.port_file = options.port_file;
  host.address_file.path = options.address_file;
  host.address_file.advertise = options.advertise;
  host.predecessor_limit = options.predecessor_limit;
  static_cast<ProgramOptions&>(host.chief) = options;
  host.chief.machine = machine;
  host.chief.config = options.op.spec;
  ApplyPolicyDefaults(host.chief.config.mutable_training());
  // If gradient summaries are not written, workers need not compute them.
  if (!WritesSummaries(options)) host.chief.config.mutable_summary()->clear_gradients_every_steps();
  host.chief.share_memory = !options.listen.empty() && options.op.spec.cluster().shared_memory();
  host.chief.followed = true;
  config::v1::ClusterConfig* const cluster = host.chief.config.mutable_cluster();
  if (options.listen.empty()) {
    cluster->clear_linger_seconds();  // no other process can connect
  } else if (cluster->linger_seconds() <= 0) {
    cluster->set_linger_seconds(absl::ToDoubleSeconds(options.linger));
  }
  return host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefSession>> ChiefSession::Open(SessionOptions options,
                                                                 const SessionMachine& machine) {
  std::unique_ptr<ChiefSession> session(new ChiefSession(std::move(options), machine));
  RETURN_IF_ERROR(session->Start(machine));
  return session;
}

ChiefSession::ChiefSession(SessionOptions options, const SessionMachine& machine)
    : options_(std::move(options)), host_(HostOptions(machine)) {}

ChiefHost::Options ChiefSession::HostOptions(const SessionMachine& machine) {
  ChiefHost::Options host = BaseHostOptions(options_, machine);
  host.chief.model = [make = WorkloadFactoryOf(options_), spec = options_.op.spec]() -> absl::StatusOr<v1::ModelSpec> {
    ASSIGN_OR_RETURN(const Workload workload, make(spec));
    return workload.model->spec();
  };
  host.chief.on_save_failed = [this](absl::Status why) { Fail(std::move(why)); };
  if (!options_.init_fn) return host;
  host.chief.initialize = [this](const v1::ModelSpec& model) -> absl::StatusOr<std::vector<AssignedValue>> {
    auto values = CallInitFunction(options_.init_fn, model);
    if (values.ok()) return values;
    const std::string why = absl::StrCat("init_fn: ", values.status().message());
    Fail(RejectOutOfRange(absl::Status(values.status().code(), why)));
    // Unavailable makes the worker that declared the model wait for a successor of this chief.
    return absl::UnavailableError(absl::StrCat("the chief's program has failed: ", why));
  };
  return host;
}

absl::Status ChiefSession::Create() {
  if (options_.stop == nullptr) return host_.Create();
  // Until the chief exists, for instance while a large checkpoint is being restored, all state is on disk.
  options_.stop->set_loses_nothing(true);
  const auto created = absl::MakeCleanup([this] { options_.stop->set_loses_nothing(false); });
  return host_.Create();
}

absl::Status ChiefSession::Start(const SessionMachine& machine) {
  if (options_.stop != nullptr)
    stop_listener_ = options_.stop->Add([this] { host_.RequestStop(); }, [this] { host_.RequestSave(); });
  const absl::Status created = Create();
  const absl::Status failed = result_.failure();
  if (!created.ok()) return failed.ok() ? WithExitCode(created, host_.ExitCode(created)) : failed;
  finisher_ = machine.executor->Start("finisher", [this] {
    const absl::Status ended = host_.Wait();
    // Once the last step is saved, nothing is lost even if the program does not end in time.
    if (options_.stop != nullptr) options_.stop->set_loses_nothing(ended.ok() || absl::IsCancelled(ended));
    if (ended.ok()) host_.LogFinish();
    result_.Set(ended);
  });
  client_ = LocalConnector(host_.chief()).Connect(MasterAddress()).value();
  if (!options_.listen.empty()) RETURN_IF_ERROR(host_.Serve());
  LocalWorkers::Options local;
  local.clock = options_.clock;
  local.workers = options_.local_workers;
  local.name = [only = local.workers == 1](int i) { return only ? "chief" : absl::StrCat("chief-", i); };
  local.make_workload = WorkloadFactoryOf(options_);
  workers_ = std::make_unique<LocalWorkers>(local, client_.get(), [this](absl::Status why) { Fail(std::move(why)); });
  RETURN_IF_ERROR(result_.Explain(host_.chief()->AwaitModel()));
  SeekTo(training()->sync()->step());
  return absl::OkStatus();
}

ChiefSession::~ChiefSession() {
  if (finisher_ != nullptr) {
    ChiefSession::Stop().IgnoreError();
    finisher_->Join();
  }
  if (options_.stop != nullptr) options_.stop->Remove(stop_listener_);
  EndIfWorkerHangs();
  workers_.reset();  // its callback uses members that are destroyed before it
}

void ChiefSession::EndIfWorkerHangs() {
  if (workers_ == nullptr || options_.stop == nullptr || !options_.stop->requested()) return;
  const absl::Status ended = result_.Explain(result_.Await());
  if (!ended.ok() && !absl::IsCancelled(ended)) return;
  if (workers_->StopWithin(kHungWorkerLimit)) return;
  LOG(ERROR) << "chief: the last step is saved; a worker of this process hangs, which ends without it";
  std::_Exit(host_.ExitCode(ended));
}

void ChiefSession::Fail(absl::Status why) {
  result_.Fail(std::move(why));
  host_.StopRun();
}

absl::StatusOr<StepResult> ChiefSession::Run(const TrainOp& op) {
  RETURN_IF_ERROR(CheckSameOp(options_.op, op, &checked_op_));
  const auto next = training()->log()->Await(last_seen(), absl::InfiniteFuture());
  if (!next.ok()) return result_.Explain(next.status());
  const v1::StepCommit& commit = *next;
  SeekTo(commit.step());
  StepResult result;
  result.global_step = commit.step();
  result.loss = commit.mean_loss();
  result.outcome = v1::CONTRIBUTION_ACCEPTED;
  result.skipped = commit.skipped();
  return result;
}

bool ChiefSession::ShouldStop() {
  if (result_.finish_requested()) return true;
  // The caller still has to see steps that are already committed.
  const absl::Status next = training()->log()->Await(last_seen(), absl::InfinitePast()).status();
  return !next.ok() && !absl::IsDeadlineExceeded(next);
}

absl::StatusOr<int64_t> ChiefSession::GlobalStep() { return training()->sync()->step(); }

absl::StatusOr<ReadResult> ChiefSession::Read(absl::Span<const std::string> names) {
  // Unlike other processes, the chief always reads the newest step, even while others read.
  return ReadSnapshot(training()->sync()->TakeSnapshot(), names);
}

absl::Status ChiefSession::AssignAs(ChangedBy by, absl::Span<const NamedTensor> tensors) {
  std::vector<AssignedValue> values;
  for (const NamedTensor& tensor : tensors) values.push_back({tensor.name, tensor.value});
  return result_.Explain(host_.chief()->changes()->Assign(values, by));
}

absl::Status ChiefSession::ChangeAs(ChangedBy by, const SettingsChange& change) {
  return result_.Explain(host_.chief()->changes()->ChangeSettings(change, by));
}

absl::StatusOr<config::v1::RunSpec> ChiefSession::Settings() { return host_.chief()->sessions()->GetRunSpec().spec(); }

absl::StatusOr<std::vector<std::string>> ChiefSession::Uninitialized() { return std::vector<std::string>(); }

absl::StatusOr<std::string> ChiefSession::Save() {
  RETURN_IF_ERROR(training()->Save());
  return training()->checkpoint();
}

absl::Status ChiefSession::AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  const int64_t step = global_step ? *global_step : last_seen();
  return options_.summary_writer ? options_.summary_writer(summary, step) : training()->AddSummary(summary, step);
}

void ChiefSession::TakeStop() {
  // A signal may reach other parts of the process first. Their reaction must not end the run as if it were finished.
  if (options_.stop != nullptr && options_.stop->requested()) host_.chief()->ends()->RequestStop();
}

absl::Status ChiefSession::RequestFinish(const std::string& reason, const v1::SessionState* last_state) {
  TakeStop();
  absl::Status status = host_.chief()->ends()->RequestFinish(reason, last_state);
  if (status.ok() || absl::IsUnknown(status)) result_.RequestFinish();
  return result_.Explain(std::move(status));
}

absl::Status ChiefSession::AwaitEnd() {
  absl::Status ended = result_.Await();
  host_.chief()->ends()->EndFollowersEvents();
  host_.MarkEnd(ended);
  return ended;
}

absl::Status ChiefSession::Close() {
  TakeStop();
  const absl::Status ends = host_.chief()->ends()->RequestFinish("the chief's program left its loop");
  // If the end cannot be recorded, stops the run instead, so that the next chief can continue it.
  if (!ends.ok() && !absl::IsUnknown(ends)) host_.chief()->ends()->RequestStop();
  AllowThrough(StepMachine::kNoLimit);
  const absl::Status status = result_.Explain(AwaitEnd());
  return absl::IsCancelled(status) && !ends.ok() && !absl::IsCancelled(ends) ? ends : status;
}

absl::Status ChiefSession::Stop() {
  host_.chief()->ends()->RequestStopUnlessOver();
  const absl::Status ended = AwaitEnd();
  return absl::IsCancelled(ended) ? absl::OkStatus() : ended;
}

void ChiefSession::AllowThrough(int64_t limit) {
  training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, limit);
}

void ChiefSession::SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) {
  training()->log()->SetState(step, std::move(hooks));
}

absl::Status ChiefSession::EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) {
  v1::SessionState last_state;
  last_state.set_step(step);
  *last_state.mutable_hook() = {hooks.begin(), hooks.end()};
  return RequestFinish(reason, &last_state);
}

void ChiefSession::SeekTo(int64_t step) {
  MutexLock lock(&mutex_);
  last_seen_ = step;
}

int64_t ChiefSession::last_seen() const {
  MutexLock lock(&mutex_);
  return last_seen_;
}

v1::SessionState ChiefSession::restored() const { return training()->log()->restored(); }

absl::Status ChiefSession::failure() const {
  const int64_t never = std::numeric_limits<int64_t>::max();
  const absl::Status ended = result_.Explain(training()->log()->Await(never, absl::InfinitePast()).status());
  const bool failed = !absl::IsDeadlineExceeded(ended) && !absl::IsOutOfRange(ended) && !absl::IsCancelled(ended);
  return failed ? ended : absl::OkStatus();
}

}  // namespace lockstep::train

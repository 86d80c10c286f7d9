#ifndef LOCKSTEP_SERVER_CHIEF_CHIEF_H_
#define LOCKSTEP_SERVER_CHIEF_CHIEF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/periodic_task.h"
#include "common/base/system_random.h"
#include "common/io/file_system.h"
#include "common/summary/event_queue.h"
#include "common/tensor/shared_memory.h"
#include "proto/chief.pb.h"
#include "proto/config.pb.h"
#include "server/chief/run_contract.h"
#include "server/chief/run_directory.h"
#include "server/chief/saver.h"
#include "server/chief/sync_replicas.h"
#include "server/ps/variable_store.h"

namespace lockstep {

// Owns one run: the model's variables, the global step, the workers' sessions, checkpoints and events.
// Life: Create (restores what the logdir has), serve until Wait returns, Stop. First start, resume and
// recovery are the same path. Thread-safe.
class Chief {
 public:
  struct Options {
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    // Empty: no checkpoints and no events.
    std::string logdir;
    // Validated, with defaults filled in.
    RunConfig config;
    // Workers on this machine may share memory with the chief.
    bool share_memory = false;
    // Draws the id of a session, which nobody may guess.
    std::function<uint64_t()> draw_session_id = SystemRandom64;
    // How often leases, timers and log lines are looked after; zero: by Housekeep alone (tests).
    absl::Duration housekeeping_period = absl::Milliseconds(100);
  };

  // Errors: FailedPrecondition when another chief holds the logdir or the logdir's run has another configuration;
  // DataLoss when no checkpoint of the logdir can be read; InvalidArgument for a wrong model or optimizer.
  static absl::StatusOr<std::unique_ptr<Chief>> Create(Options options);
  ~Chief();

  // The calls of proto/chief.proto.
  GetRunReply GetRun() const;
  // May take long the first time (initial values, restore); concurrent callers get Unavailable meanwhile.
  absl::StatusOr<OpenSessionReply> OpenSession(const OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  RunStatus GetStatus() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the session one that was just used. Errors: Aborted for an unknown session or an old epoch.
  absl::Status CheckSession(uint64_t session_id, int64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether ValuePath::kShared is possible.
  bool shares_memory() const { return shared_memory_ != nullptr; }
  // The Step stream of a session; see SyncReplicas::Connect. Errors: Aborted for an unknown session or an old epoch.
  absl::StatusOr<std::shared_ptr<StepConnection>> OpenStep(uint64_t session_id, int64_t epoch, ValuePath value_path,
                                                           std::shared_ptr<StepListener> listener)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the last step is applied and saved and the workers have been told (OK), the run failed (its error), or
  // RequestStop was called: then no further step is committed, and the last one is saved at once (Cancelled; its
  // message says where). Workers that do not say goodbye are waited for two seconds, and cluster.linger_seconds are
  // stayed for those that start after the end; RequestStop ends that. Errors of saving: those of the files, or
  // DeadlineExceeded when the disk has not taken the step within checkpoint.stop_seconds of RequestStop. After that one
  // end the process: destroying the chief would wait for the disk. FailedPrecondition when another chief was found to
  // have taken over the logdir: nothing is saved there any more.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Wait return; callable from any thread. Only the first call counts.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Saves the last committed step at once and blocks until that is done; OK when it is saved already, or without a
  // logdir. Errors as those of Wait.
  absl::Status Save() ABSL_LOCKS_EXCLUDED(mutex_);

  // One round of what the housekeeping thread does.
  void Housekeep() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t epoch() const { return epoch_; }

 private:
  struct Session {
    std::string worker;
    uint64_t incarnation = 0;
    // By any call. Those without a stream expire.
    absl::Time last_used;
    // It had a stream once.
    bool streamed = false;
  };

  Chief(Options options, std::unique_ptr<RunDirectory> directory);

  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes store, saver and sync for a model, from the newest checkpoint or from the seed, and writes the record.
  absl::Status StartModel(std::shared_ptr<const RunContract> contract) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FillStore(VariableStore* store, bool* restored);
  // The caller's model and data are the run's, or become so when it is the first. Compares without a lock: both may be
  // large.
  absl::Status Agree(const OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // The data of a run whose record lacks them become those of `first`.
  absl::Status RecordData(const RunContract& recorded, const OpenSessionRequest& first) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteRecord(const RunContract& contract) const;
  SyncReplicas::Options SyncOptions();
  // The caller's session, a new one if need be. Unavailable when there are too many.
  absl::StatusOr<uint64_t> FindOrAddSession(const OpenSessionRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireSessions(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the session one that was just used. Aborted when it is unknown.
  absl::StatusOr<Session*> UseSession(uint64_t session_id, int64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCommit(const SyncReplicas::Committed& committed) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the logdir is still this chief's. FailedPrecondition when it is not, and then the chief stops.
  absl::Status CheckOwned() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnSaved(int64_t step, const std::string& prefix, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StopRun() ABSL_LOCKS_EXCLUDED(mutex_);
  // Save for a stop: what may pass, such as an I/O error or a full disk, is tried again until stop_deadline_.
  absl::Status SaveForStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // False when stop_deadline_ comes before the delay is over.
  bool SleepForStop(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FinishRun() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitGoodbyes(SyncReplicas* replicas) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the server answer for cluster.linger_seconds more; false when there are none or RequestStop ends them.
  bool Linger() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndEvents();
  // Null before the model is known.
  SyncReplicas* sync() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const int64_t total_steps_;
  const std::unique_ptr<RunDirectory> directory_;  // null without a logdir
  // For workers to find out whether they can map the chief's memory; null when none is shared.
  std::unique_ptr<SharedMemory> shared_memory_;
  int64_t epoch_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  RunStatus::Phase phase_ ABSL_GUARDED_BY(mutex_) = RunStatus::WAITING_FOR_MODEL;
  // A worker's model or data are becoming the run's.
  bool starting_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  // When saving has to be done, once a stop was requested.
  absl::Time stop_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Not OK when another chief has the logdir.
  absl::Status taken_over_ ABSL_GUARDED_BY(mutex_);
  // Null before the model is known.
  std::shared_ptr<const RunContract> contract_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  std::string checkpoint_ ABSL_GUARDED_BY(mutex_);
  int64_t saved_step_ ABSL_GUARDED_BY(mutex_) = -1;
  absl::Time next_save_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time next_idle_log_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_rate_time_ ABSL_GUARDED_BY(mutex_);
  int64_t last_rate_step_ ABSL_GUARDED_BY(mutex_) = 0;

  // Set once by StartModel, in this order of dependence; destroyed in the reverse one.
  std::unique_ptr<EventQueue> events_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<SyncReplicas> sync_;
  std::unique_ptr<PeriodicTask> housekeeping_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHIEF_H_

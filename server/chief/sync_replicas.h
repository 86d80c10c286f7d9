#ifndef LOCKSTEP_SERVER_CHIEF_SYNC_REPLICAS_H_
#define LOCKSTEP_SERVER_CHIEF_SYNC_REPLICAS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/client/step_frame.h"
#include "proto/chief.pb.h"
#include "proto/optimizer.pb.h"
#include "proto/status.pb.h"
#include "server/chief/estimate_feed.h"
#include "server/chief/incoming_contribution.h"
#include "server/chief/token_queue.h"
#include "server/chief/value_feed.h"
#include "server/chief/version_pins.h"
#include "server/ps/contribution_set.h"
#include "server/ps/variable_store.h"

namespace lockstep {

class SyncReplicas;

// The part of a session's id that people are shown: whoever knows all of it acts for the worker.
inline uint64_t ShortSessionId(uint64_t session) { return session & 0xffff; }

// Told when a connection may have a reply to send. Called without locks; must not block.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void OnReplyReady() = 0;
  // The chief has closed the connection: its stream is to end with `why`, after the reply that is being sent, or
  // `at_once`, since the worker does not take it. At most once.
  virtual void OnClosed(const absl::Status& why, bool at_once) = 0;
};

// How a worker gets the values of its token's step.
enum class ValuePath {
  // StepConnection::values(): in process. Gradients are float32 (rounded, if the run compresses them).
  kHandedOver,
  // In replies, piece by piece.
  kStreamed,
  // Replies name the memory that they lie in, which stays as it is until the worker ends its contribution, or loses its
  // stream.
  kShared,
};

// The chief's end of one worker's Step stream. Made by SyncReplicas::Connect. OnFrame is for one thread at a
// time, and so is NextReply; the two and Close may run side by side.
class StepConnection {
 public:
  // What a frame of the model's may hold at most.
  const StepFrameLimits& frame_limits() const { return frame_limits_; }
  // Takes one frame from the worker. An error ends the stream with that status; the run is unchanged.
  absl::Status OnFrame(const StepFrame& frame);
  // Fills the next frame for the worker; false when there is none now: StepListener tells when to ask again.
  bool NextReply(StepReplyFrame* reply);
  // The message of a reply is sent and has that many bytes.
  void CountSent(int64_t bytes);
  // The values at the step of the token that NextReply returned last, and the estimates of top-k compression.
  std::shared_ptr<const PublishedValues> values() const;
  std::shared_ptr<const VariableStore::Estimates> estimates() const;
  // The stream is gone; the worker's token is free. Idempotent. The listener is not called afterwards,
  // except by calls that are under way.
  void Close();

 private:
  friend class SyncReplicas;
  StepConnection(SyncReplicas* owner, uint64_t session, std::string name, const ParameterLayout* layout,
                 ValuePath value_path)
      : owner_(owner),
        session_(session),
        name_(std::move(name)),
        value_path_(value_path),
        incoming_(layout),
        feed_(layout) {}

  SyncReplicas* const owner_;
  const uint64_t session_;
  const std::string name_;
  const ValuePath value_path_;
  StepFrameLimits frame_limits_;

  // For OnFrame alone.
  IncomingContribution incoming_;
  bool first_frame_ = true;

  // All below is guarded by the owner's mutex.
  std::shared_ptr<StepListener> listener_;
  bool closed_ = false;
  int64_t not_before_step_ = 0;
  // The worker has ended its contribution and waits for a token.
  bool awaiting_ = false;
  // Its token's lease ended, and nothing was heard of it since.
  bool silent_ = false;
  bool pushing_ = false;
  // Of the contribution that began last.
  int64_t pushing_step_ = -1;
  // Given, not yet sent.
  absl::optional<Token> token_;
  // Given last, sent or not.
  absl::optional<Token> last_token_;
  absl::Time last_token_time_;
  absl::optional<SlotBlock> last_block_;
  Fate fate_ = FATE_NONE;
  bool finish_sent_ = false;
  ValueFeed feed_;
  EstimateFeed estimates_;
  std::shared_ptr<const PublishedValues> token_values_;
  std::shared_ptr<const VariableStore::Estimates> token_estimates_;
  WorkerStatus stats_;
  absl::Time last_heard_;
};

// The synchronous step: tokens out, contributions in, one update when all slots are covered, whoever
// covered them (docs/sync.md). Owns the connections; `store` must be initialized and outlive this.
// Thread-safe. Lock order: mutex_, then those of ContributionSet.
class SyncReplicas {
 public:
  struct Committed {
    int64_t step = 0;  // the global step after the update
    double mean_loss = 0;
  };
  struct Options {
    Clock* clock = nullptr;
    int64_t epoch = 0;
    int64_t slots = 1;  // replicas_to_aggregate
    int64_t total_steps = 0;
    absl::Duration lease = absl::Seconds(5);
    LearningRate learning_rate;
    // What workers that hang may keep of old versions of the values; of two, however large they are.
    int64_t old_version_bytes = 16 << 20;
    // A snapshot is taken at every multiple of this many steps; 0: only when requested.
    int64_t snapshot_every_steps = 0;
    // Called without locks, from the thread that committed; possibly side by side for two steps.
    std::function<void(const Committed&)> on_commit;
    std::function<void(VariableStore::Snapshot)> on_snapshot;
    // The run cannot go on: a loss, a gradient or an update value is not finite. Once.
    std::function<void(absl::Status)> on_failure;
    // The last connection was closed.
    std::function<void()> on_idle;
  };

  SyncReplicas(Options options, VariableStore* store);
  // All connections must be closed, and none be used afterwards.
  ~SyncReplicas();

  // Registers a stream. kShared is for a store that shares its values and compresses nothing. A second stream of a
  // session closes the first with Aborted.
  std::shared_ptr<StepConnection> Connect(uint64_t session, std::string name, ValuePath value_path,
                                          std::shared_ptr<StepListener> listener) ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews the lease of the session's token.
  void Heartbeat(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Voids expired leases and gives out what became free. To be called several times a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // The state at the last committed step.
  VariableStore::Snapshot TakeSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  // No further step is committed and no further token given: what was contributed to the step in progress is thrown
  // away, and so is what comes. Workers are told nothing; whoever goes on with the run has tokens for them.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // No further token is given; every worker is told that the run is over.
  void Finish(std::string message) ABSL_LOCKS_EXCLUDED(mutex_);
  // No worker is connected any more.
  bool idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool connected(uint64_t session) const ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t step() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills global_step, loss, steps_per_second, learning_rate, worker (by name) and the counters.
  void FillStatus(RunStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class StepConnection;
  using Listeners = std::vector<std::shared_ptr<StepListener>>;
  // Streams that the chief ends: the arguments of StepListener::OnClosed.
  struct Ending {
    std::shared_ptr<StepListener> listener;
    absl::Status why;
    bool at_once = false;
  };
  using Endings = std::vector<Ending>;

  absl::Status OnFrame(StepConnection* connection, const StepFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status BeginFrame(StepConnection* connection, const StepFrame& frame, std::shared_ptr<ContributionSet>* target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `target` is null when the step is over: then the frame is only checked. `failure` is set when the run must stop.
  absl::Status TakeContribution(StepConnection* connection, const StepFrame& frame, ContributionSet* target,
                                absl::Status* failure) ABSL_LOCKS_EXCLUDED(mutex_);
  // InvalidArgument when what was contributed to the frame's block is not finite.
  static absl::Status CheckFinite(const StepConnection& connection, const StepFrame& frame,
                                  const ContributionSet& target);
  absl::Status EndFrame(StepConnection* connection, const StepFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The piece travels as the run's gradients do; InvalidArgument names both ways. `piece` is checked otherwise.
  absl::Status CheckType(const StepConnection& connection, const StepPiece& piece) const;
  absl::Status CheckPiece(const StepConnection& connection, const StepFrame& frame, const StepPiece& piece,
                          const ContributionSet& target) const;
  // Adds what the worker lacks of the estimates for its token; true when that is all.
  bool FeedEstimates(StepConnection* connection, StepReplyFrame* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gradients travel as differences of each slot's from its estimate.
  bool sparse() const { return store_->compression().top_k > 0; }
  bool NextReply(StepConnection* connection, StepReplyFrame* reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts the token into the reply, and what its values lie in.
  void GiveToken(StepConnection* connection, StepReplyFrame* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The values go in replies: nothing is shared, or the system gave no shared memory for this version.
  bool StreamsValues(const StepConnection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To a worker with a token its step's values, to one that has sent its part of the step the next ones, as far as they
  // are final; to others none.
  void FeedValues(StepConnection* connection, StepReplyFrame* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(StepConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the connection out; returns its listener.
  std::shared_ptr<StepListener> Remove(StepConnection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StepFrameLimits FrameLimits() const;
  void StartStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Committed Commit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AssignTokens() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Assign(const SlotBlock& block, absl::Time now, StepConnection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How many take part; with `silent`, of those that are.
  int64_t CountWorkers(bool silent) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the global step has reached the connection's startup delay.
  bool HasStarted(const StepConnection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When every worker waits for the startup delay, the first of them does not: else the run would wait for itself.
  void StartOneIfAllAreDelayed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls the listeners. Called without the lock.
  void Wake(const Listeners& listeners);
  // NextReply would find something. Whoever has nothing to hear is not woken: each frame would cost all workers' wakes.
  bool HasReply(const StepConnection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A worker that has a token needs nothing of the next version before it has sent its contribution.
  bool MayRunAhead(const StepConnection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the connections that have a reply to send.
  Listeners Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out the connections whose worker does not read.
  Endings RemoveUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out those that keep more old versions of the values alive than may be. Nothing is lost: what they contribute
  // to those steps counts no more.
  Endings RemovePinning() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called without the lock.
  static void End(const Endings& endings);
  void UpdateRate(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const ParameterLayout& layout_;

  mutable Mutex mutex_;
  VariableStore* const store_;  // BeginUpdate, CommitUpdate and TakeSnapshot under mutex_
  std::map<uint64_t, std::shared_ptr<StepConnection>> connections_ ABSL_GUARDED_BY(mutex_);
  TokenQueue tokens_ ABSL_GUARDED_BY(mutex_);
  // Of values and estimates that leave the process.
  VersionPins pins_ ABSL_GUARDED_BY(mutex_);
  // The step in progress; null when the run is over or was stopped.
  std::shared_ptr<ContributionSet> current_ ABSL_GUARDED_BY(mutex_);
  // All segments of the current values, in the order in which they became final.
  std::vector<int> segment_order_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string finish_message_ ABSL_GUARDED_BY(mutex_);
  absl::optional<double> last_loss_ ABSL_GUARDED_BY(mutex_);
  float learning_rate_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t duplicate_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t rejected_ ABSL_GUARDED_BY(mutex_) = 0;
  // Over all connections, those that are gone too.
  int64_t bytes_received_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  // Rates: since a mark that moves on every few seconds, so that they are recent ones.
  struct Mark {
    absl::Time time;
    int64_t step = 0;
    int64_t bytes_received = 0;
    int64_t bytes_sent = 0;
  };
  Mark NewMark(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Mark marks_[2] ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SYNC_REPLICAS_H_

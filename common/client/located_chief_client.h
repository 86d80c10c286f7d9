#ifndef LOCKSTEP_COMMON_CLIENT_LOCATED_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_CLIENT_LOCATED_CHIEF_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// A client of a chief whose master address names one or several targets, or a file that contains the address.
// GetRunSpec, which opens every session, searches for the chief: it reads the file and tries the targets in order.
// GetStatus and the first call of a read search in the same way; later calls of a read go to the target where the last
// read began. All other calls go to the target that last answered GetRunSpec. While a heartbeat has had no reply for
// two thirds of the session's lease, looks for a chief of a later generation, at the other targets or, if there is only
// one, over a new connection (to the only target in a file, from a second after the lease on). The next search begins
// with the target where it answers. Thread-safe.
class LocatedChiefClient : public ChiefClient {
 public:
  // Makes a client of one target, which calls `on_silence`. Called without a lock. Two threads may call it for the same
  // target; one of the clients is then dropped.
  using Factory =
      std::function<std::unique_ptr<ChiefClient>(const std::string& target, const ChiefClient::OnSilence& on_silence)>;

  // `fs` must outlive this object. `address` must not be in_process().
  LocatedChiefClient(FileSystem* fs, MasterAddress address, Factory factory);

  // Additional errors: those of FindTargets; Unavailable, with the name of each target, if none answers.
  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override;
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override;
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override;
  absl::StatusOr<v1::RunStatus> GetStatus() override;
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override;
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override;
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override;
  void CancelConnecting() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Call = std::function<absl::Status(ChiefClient*)>;

  struct Place {
    std::string target;
    std::shared_ptr<ChiefClient> client;
  };

  // Returns the targets in the order in which to try them.
  absl::StatusOr<std::vector<std::string>> SearchOrder() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the call to each target in turn until one answers, and returns that target and its client.
  absl::StatusOr<Place> Search(const Call& call) ABSL_LOCKS_EXCLUDED(mutex_);
  std::unique_ptr<ChiefClient> NewClient(const std::string& target);
  absl::StatusOr<std::shared_ptr<ChiefClient>> ClientOf(const std::string& target) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the client that last answered GetRunSpec, or that of the only target; Unavailable before the first answer
  // of several.
  absl::StatusOr<std::shared_ptr<ChiefClient>> Found() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles the silence of the chief during a heartbeat. Errors: ChiefReplaced if a successor answers or the run is
  // over; Cancelled after CancelConnecting.
  absl::Status OnSilence(const v1::HeartbeatRequest& heartbeat, absl::Duration silence) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns ChiefReplaced if a chief of a generation after `generation` answers at `target`; Cancelled after
  // CancelConnecting.
  absl::Status LookForSuccessor(const std::string& target, int64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);

  FileSystem* const fs_;
  const MasterAddress address_;
  const Factory factory_;
  Mutex mutex_;
  // Clients by target. Clients of targets that are no longer in the file are kept, because a chief may move back.
  std::map<std::string, std::shared_ptr<ChiefClient>> clients_ ABSL_GUARDED_BY(mutex_);
  // The clients of searches for a successor.
  std::set<std::shared_ptr<ChiefClient>> candidates_ ABSL_GUARDED_BY(mutex_);
  // The place where GetRunSpec was last answered; empty before the first answer.
  Place found_ ABSL_GUARDED_BY(mutex_);
  // The target where a successor has answered. Empty if there is none, or if it answers no more.
  std::string successor_ ABSL_GUARDED_BY(mutex_);
  // The lease of the last session.
  absl::Duration lease_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  // The client where the last read began.
  std::shared_ptr<ChiefClient> read_from_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_LOCATED_CHIEF_CLIENT_H_

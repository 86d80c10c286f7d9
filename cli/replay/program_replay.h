#ifndef LOCKSTEP_CLI_REPLAY_PROGRAM_REPLAY_H_
#define LOCKSTEP_CLI_REPLAY_PROGRAM_REPLAY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/cli/replay/replay_request.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A replay that `lockstep replay -- PROGRAM` requests from the worker of the program that it starts. The request is in
// the program's environment. Immutable, thread-safe.
class ProgramReplay {
 public:
  // Returns a definition "LOCKSTEP_REPLAY=..." for the program's environment. Compute replaces the file `result`.
  static std::string Definition(const ReplayRequest& request, const std::string& result);
  // Returns the request in this process's environment, or nullopt if there is none. Returns InvalidArgument if the
  // variable does not come from Definition.
  static absl::StatusOr<absl::optional<ProgramReplay>> FromEnvironment();

  // Returns the path of the file that Claim makes. The command removes it.
  static std::string ClaimOf(const std::string& result);

  const std::string& logdir() const { return request_.logdir; }
  // Reserves the replay for this process, which may call this again. Returns FailedPrecondition if another process has
  // reserved it.
  absl::Status Claim() const;
  // Computes the replay with the program's workload. Prints results to stdout and errors to stderr, and writes the
  // command's exit code to the result file, unless the workload returns Cancelled because the program leaves.
  void Compute(const WorkloadFactory& make_workload) const;

 private:
  ReplayRequest request_;
  std::string result_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPLAY_PROGRAM_REPLAY_H_

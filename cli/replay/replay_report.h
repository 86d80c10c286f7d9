#ifndef LOCKSTEP_CLI_REPLAY_REPLAY_REPORT_H_
#define LOCKSTEP_CLI_REPLAY_REPLAY_REPORT_H_

#include <ostream>

#include "absl/status/status.h"
#include "lockstep/cli/replay/replay_request.h"
#include "lockstep/train/replay/run_replay.h"

namespace lockstep {

// Computes what is requested, and prints the results to `out` as they become known. Replaces the options that the
// request has. Errors: those of RunReplay; Internal if a step differs from the run's checkpoint; those of the file
// system for the dump.
absl::Status Replay(const ReplayRequest& request, RunReplay::Options options, std::ostream& out);

// Prints the error of Replay, if `status` is one, to `err`, and returns the exit code of the command.
int ReplayExitCode(const absl::Status& status, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPLAY_REPLAY_REPORT_H_

#ifndef LOCKSTEP_CLI_PAGE_RECORDED_VIEW_H_
#define LOCKSTEP_CLI_PAGE_RECORDED_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/cli/page/run_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// Returns a run's state from its logdir, without a chief: the record, the history and the newest checkpoint. Returns
// NotFound if there is no run in the directory, and errors from reading it.
absl::StatusOr<v1::WatchRunReply> ReadRecordedRun(FileSystem* fs, const std::string& logdir);

// Returns the scalars of the event files in the logdir's "eval" and "eval_SPLIT", by step. Omits files of more than 16
// MiB, everything after damage, and everything that is not a scalar.
std::vector<EvaluationPoint> ReadEvaluations(FileSystem* fs, const std::string& logdir);

// Returns the digest of a checkpoint (`lockstep inspect --digest`). Returns ResourceExhausted if it has more than
// `most_bytes` of data, which would take long to read, and errors from reading it.
absl::StatusOr<std::string> DigestOfCheckpoint(FileSystem* fs, const std::string& prefix, uint64_t most_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_RECORDED_VIEW_H_

#ifndef LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_
#define LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Returns an error that says that the run has ended and that clients need not look for its chief any more.
absl::Status EndOfRun(absl::StatusCode code, absl::string_view message);
// Returns true if `status` is FindTargets's report that the run has ended, whether the run succeeded or failed. The
// code alone is not enough, because a chief or a file system may return it too. A restarting chief removes the mark
// from the address file only once it owns the run, so the mark may be about to disappear.
bool IsEndOfRun(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_

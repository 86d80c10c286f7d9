#ifndef LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_
#define LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// An error that says that the run is over: nobody needs to look for its chief any more.
absl::Status EndOfRun(absl::StatusCode code, absl::string_view message);
// Whether this is FindTargets' word that the run is over, done or failed. The code alone does not say so: a chief or a
// file system may return it, too. A chief that starts again takes the mark away only when it owns the run, so one that
// was seen just now may be about to go.
bool IsEndOfRun(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_END_OF_RUN_H_

#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_CONTRIBUTION_COUNTS_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_CONTRIBUTION_COUNTS_H_

#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Returns the contributions since the chief's start by result, as scalars: "contributions/accepted", "/stale",
// "/duplicate" and "/rejected" for all workers, including those that have left, and "contributions/<worker>/accepted"
// and so on for each connected worker. If there are more than 64 workers, only the first ones by name are included.
v1::Summary ContributionCounts(const v1::RunStatus& status);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_CONTRIBUTION_COUNTS_H_

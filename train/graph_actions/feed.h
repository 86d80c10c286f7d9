#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_FEED_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_FEED_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep::train::graph_actions {

// The batch of a slot (0 to replicas_to_aggregate - 1) of the update from global step `step`: a function of the two
// alone, the same in every process, called by several threads. OutOfRange: the input has ended, and the run ends before
// the first step that lacks a batch.
using FeedFunction = std::function<absl::StatusOr<Batch>(int64_t step, int64_t slot)>;

// What `make` makes, with these batches in place of its own, which only say what examples look like.
WorkloadFactory Fed(WorkloadFactory make, FeedFunction feed);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_FEED_H_

#ifndef LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_
#define LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A running cluster's steps on the chief's timeline. Call Add for each of WatchRun's replies, which must be requested
// with `times`, and then Text. Not thread-safe.
class StepTrace {
 public:
  void Add(const v1::WatchRunReply& reply);
  // Returns the number of committed steps collected so far.
  size_t steps() const { return commits_.size(); }
  // Returns the newest `steps` steps as Chrome trace events (chrome://tracing, ui.perfetto.dev). There is a row for the
  // chief, with each step from its beginning to its commit, and a row for each worker, whose phases end when its
  // contribution arrives at the chief. Does not compare times of different machines.
  std::string Text(size_t steps) const;

 private:
  std::vector<v1::Contribution> contributions_;
  std::vector<v1::Commit> commits_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_

#ifndef LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_
#define LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The steps of a running cluster on one time line, that of the chief. Life cycle: Add the replies of WatchRun with
// `times`, then Text. Not thread-safe.
class StepTrace {
 public:
  void Add(const v1::WatchRunReply& reply);
  // The number of committed steps that were collected.
  size_t steps() const { return commits_.size(); }
  // Returns the newest `steps` steps as Chrome's trace events (chrome://tracing, ui.perfetto.dev): a row for the chief,
  // with each step from its beginning to its commit, and a row for each worker, whose phases end when its contribution
  // arrives at the chief. Times of different machines are not compared.
  std::string Text(size_t steps) const;

 private:
  std::vector<v1::Contribution> contributions_;
  std::vector<v1::Commit> commits_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_TRACE_TEXT_H_

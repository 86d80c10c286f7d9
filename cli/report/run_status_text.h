#ifndef LOCKSTEP_CLI_REPORT_RUN_STATUS_TEXT_H_
#define LOCKSTEP_CLI_REPORT_RUN_STATUS_TEXT_H_

#include <cstddef>
#include <string>

#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Formats a run's status. Pure functions.

// Returns one line of at most `columns` columns, without a line feed. Leaves out the least important parts if needed:
//   step 1200/4000  loss 0.412  310 steps/s  39.7k examples/s  2 workers  ETA 9s
std::string ProgressLine(const v1::RunStatus& status, size_t columns);

// Returns the output of `lockstep status`: a paragraph about the run and a table of its workers.
std::string StatusReport(const v1::RunStatus& status);

// Returns a JSON object with the field names of proto/lockstep/v1/status.proto, including fields that are 0. Ends with
// a line feed.
std::string StatusJson(const v1::RunStatus& status);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_RUN_STATUS_TEXT_H_

#include "lockstep/common/cluster/end_of_run.h"

#include "absl/strings/cord.h"

namespace lockstep {
namespace {

// Type of the payload that marks a status from EndOfRun. The statuses of calls do not have it.
constexpr absl::string_view kEndOfRun = "lockstep/end-of-run";

}  // namespace

absl::Status EndOfRun(absl::StatusCode code, absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kEndOfRun, absl::Cord());
  return status;
}

bool IsEndOfRun(const absl::Status& status) { return status.GetPayload(kEndOfRun).has_value(); }

}  // namespace lockstep

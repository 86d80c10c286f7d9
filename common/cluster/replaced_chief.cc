#include "lockstep/common/cluster/replaced_chief.h"

#include "absl/strings/cord.h"

namespace lockstep {
namespace {

// The payload that marks such a status. The statuses of calls do not have it.
constexpr absl::string_view kReplaced = "lockstep/chief-replaced";

}  // namespace

absl::Status ChiefReplaced(absl::string_view message) {
  absl::Status status = absl::AbortedError(message);
  status.SetPayload(kReplaced, absl::Cord());
  return status;
}

bool IsChiefReplaced(const absl::Status& status) { return status.GetPayload(kReplaced).has_value(); }

}  // namespace lockstep

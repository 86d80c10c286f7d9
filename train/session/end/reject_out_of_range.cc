#include "lockstep/train/session/end/reject_out_of_range.h"

#include "absl/strings/str_cat.h"

namespace lockstep::train {

absl::Status RejectOutOfRange(const absl::Status& status) {
  if (!absl::IsOutOfRange(status)) return status;
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(), " (OUT_OF_RANGE ends a run within its loop only)"));
}

}  // namespace lockstep::train

#ifndef LOCKSTEP_COMMON_CLUSTER_REPLACED_CHIEF_H_
#define LOCKSTEP_COMMON_CLUSTER_REPLACED_CHIEF_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Returns Aborted, as the error of a call whose chief is silent and has been replaced by another one. The silent chief
// cannot end the session's stream, so the worker must.
absl::Status ChiefReplaced(absl::string_view message);
// Returns true if `status` is from ChiefReplaced. The code alone is not enough, because chiefs return it too.
bool IsChiefReplaced(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_REPLACED_CHIEF_H_

#ifndef LOCKSTEP_TRAIN_SESSION_READ_VARIABLES_H_
#define LOCKSTEP_TRAIN_SESSION_READ_VARIABLES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/train/session/session.h"

namespace lockstep::train {

// Implements Session::Read for a snapshot. Returns InvalidArgument listing the names that do not exist.
absl::StatusOr<ReadResult> ReadSnapshot(const VariableSnapshot& snapshot, absl::Span<const std::string> names);

// Implements Session::Read with calls to the chief.
absl::StatusOr<ReadResult> ReadVariables(ChiefClient* client, absl::Span<const std::string> names);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_READ_VARIABLES_H_

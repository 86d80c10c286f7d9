#ifndef LOCKSTEP_COMMON_CLIENT_READ_ALL_H_
#define LOCKSTEP_COMMON_CLIENT_READ_ALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/variable_parts.h"

namespace lockstep {

struct ReadAllOptions {
  // The names to read, in this order. If empty, everything is read.
  std::vector<std::string> names;
  // Reads names, types and shapes, but no values.
  bool names_only = false;
  // Maximum number of attempts. The chief aborts a read that is too slow while other clients read from the run, and a
  // restart of the chief aborts it too.
  int attempts = 5;
};

// Reads variables from a running chief without a session, call by call (ReadVariables in
// proto/lockstep/v1/chief.proto). Blocks. Returns the chief's error from the last attempt, or Internal if its replies
// are inconsistent.
absl::StatusOr<VariablesAtStep> ReadAll(ChiefClient* client, const ReadAllOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_READ_ALL_H_

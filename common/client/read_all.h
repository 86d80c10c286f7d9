#ifndef LOCKSTEP_COMMON_CLIENT_READ_ALL_H_
#define LOCKSTEP_COMMON_CLIENT_READ_ALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/variable_parts.h"

namespace lockstep {

struct ReadAllOptions {
  // What to read, in this order; empty: all that there is.
  std::vector<std::string> names;
  // Everything but the values.
  bool names_only = false;
  // How often a read is begun that the chief ends before it is whole: because it is too slow for a run that others
  // read, too, or because the chief was started again.
  int attempts = 5;
};

// Reads variables from a running chief, call by call (ReadVariables in proto/lockstep/v1/chief.proto), without a
// session. Blocks. Errors: the chief's, of the last attempt; Internal when its replies do not fit together.
absl::StatusOr<VariablesAtStep> ReadAll(ChiefClient* client, const ReadAllOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_READ_ALL_H_

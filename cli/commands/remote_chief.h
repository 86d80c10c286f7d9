#ifndef LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_
#define LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {

// What the commands that ask a running chief have in common.

// The help of their --master.
extern const char kRemoteMasterHelp[];

// A chief of another process. InvalidArgument when `master` is empty or malformed.
absl::StatusOr<MasterAddress> ParseRemoteMaster(const std::string& master);

// Says why there is no answer, and returns the exit code; `otherwise` is that of a chief that is away.
int PrintNoAnswer(const std::string& command, const std::string& master, const absl::Status& status, int otherwise,
                  std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_

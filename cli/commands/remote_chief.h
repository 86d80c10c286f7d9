#ifndef LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_
#define LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {

// Code shared by the commands that call a running chief.

// The help text of the commands' --master flag.
extern const char kRemoteMasterHelp[];

// Parses the address of a chief in another process. Returns InvalidArgument if `master` is empty or malformed.
absl::StatusOr<MasterAddress> ParseRemoteMaster(const std::string& master);

// Prints why the chief did not answer, and returns the exit code, which is `otherwise` if the chief is absent.
int PrintNoAnswer(const std::string& command, const std::string& master, const absl::Status& status, int otherwise,
                  std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_REMOTE_CHIEF_H_

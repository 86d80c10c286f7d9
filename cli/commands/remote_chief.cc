#include "lockstep/cli/commands/remote_chief.h"

#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

const char kRemoteMasterHelp[] =
    "the chief; also unix:/path, several separated by commas, which are tried in their order, or file:PATH, a file "
    "that "
    "has the address";

absl::StatusOr<MasterAddress> ParseRemoteMaster(const std::string& master) {
  ASSIGN_OR_RETURN(MasterAddress address, ParseMasterAddress(master));
  if (address.in_process()) {
    return absl::InvalidArgumentError(
        "--master is missing: the chief's address, such as --master=grpc://127.0.0.1:2222");
  }
  return address;
}

int PrintNoAnswer(const std::string& command, const std::string& master, const absl::Status& status, int otherwise,
                  std::ostream& err) {
  // The address file says that the run is over, or the file is not an address file.
  if (absl::IsOutOfRange(status)) return PrintError(command, status.message(), kExitFailed, err);
  if (absl::IsFailedPrecondition(status)) {
    return PrintError(command, absl::StrCat("the run has failed: ", status.message()), kExitFailed, err);
  }
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    return PrintError(command, absl::StrCat("the chief at ", master, ": ", status.message()), kExitBadConfiguration,
                      err);
  }
  if (absl::IsInvalidArgument(status)) return PrintError(command, status.message(), kExitBadConfiguration, err);
  return PrintError(command, absl::StrCat("no chief answers at ", master, ": ", status.message()), otherwise, err);
}

}  // namespace lockstep

#ifndef LOCKSTEP_COMMON_CLUSTER_ADDRESS_FILE_H_
#define LOCKSTEP_COMMON_CLUSTER_ADDRESS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The file that the master address "file:PATH" names has one line:
//   grpc://10.0.0.5:2222      the chief's address; any master string but "" and "file:..."
//   finished                  the run has ended successfully
//   failed: MESSAGE           the run has failed
// The chief replaces the whole file (server/process/address_file.h), so that readers never see only part of it.

// These functions return the file's contents while the chief is at `master`, and after the run has ended with `status`.
std::string AddressLine(absl::string_view master);
std::string EndLine(const absl::Status& status);

// Returns the addresses to try now, in order: the targets of `address`, or those in its file. Errors: Unavailable if
// the file is absent or empty, because no chief has written it yet; OutOfRange if the file says that the run has
// finished; FailedPrecondition, with the message, if it says that the run has failed; InvalidArgument, with the name of
// the file, for any other content; file errors. `address` must not be in_process().
absl::StatusOr<std::vector<std::string>> FindTargets(FileSystem* fs, const MasterAddress& address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_ADDRESS_FILE_H_

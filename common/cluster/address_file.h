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

// The file behind the master "file:PATH". It has one line:
//   grpc://10.0.0.5:2222      where the chief is; any master string but "" and "file:..."
//   finished                  the run is over, and went well
//   failed: MESSAGE           the run is over, and failed
// The chief replaces it as a whole (server/process/address_file.h), so that readers never see a part of it.

// The contents for a chief at `master`, and for a run that has ended with `status`.
std::string AddressLine(absl::string_view master);
std::string EndLine(const absl::Status& status);

// Where to look for the chief now, in order: the targets of `address`, or those that its file has. Errors: Unavailable
// when the file is not there or empty: no chief has written it yet; OutOfRange when it says that the run is over;
// FailedPrecondition, with the message, when it says that the run has failed; InvalidArgument, naming the file, when
// it has anything else; or those of reading it. `address` must not be in_process().
absl::StatusOr<std::vector<std::string>> FindTargets(FileSystem* fs, const MasterAddress& address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_ADDRESS_FILE_H_

#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Returns the header of the index at `prefix`. Reads and verifies the index but no data. Errors: NotFound if there is
// no index; DataLoss if it is damaged; file system errors.
absl::StatusOr<v1::BundleHeaderProto> ReadBundleHeader(FileSystem* fs, const std::string& prefix);

// Returns true if a user's Saver wrote the checkpoint, false if it is damaged or absent. Fails only if the file system
// does.
absl::StatusOr<bool> IsWrittenBySaver(FileSystem* fs, const std::string& prefix);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_

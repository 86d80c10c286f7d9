#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// What the index at `prefix` says of the checkpoint as a whole. Reads and verifies the index, and no data.
// Errors: NotFound without an index; DataLoss when it is damaged; those of the file system.
absl::StatusOr<v1::BundleHeaderProto> ReadBundleHeader(FileSystem* fs, const std::string& prefix);

// Whether a user's Saver wrote the checkpoint. False as well for one that is damaged or absent; an error only when the
// file system does not answer.
absl::StatusOr<bool> IsWrittenBySaver(FileSystem* fs, const std::string& prefix);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_HEADER_H_

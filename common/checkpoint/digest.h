#ifndef LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_
#define LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"

namespace lockstep {

// Returns the SHA-256 of a checkpoint's content in lower-case hex. Two checkpoints have the same digest if and only if
// they hold the same variables bit for bit, regardless of file names, data files and partitions.
//
// The hash covers four fields of each variable, including slots and global_step, in the byte order of the names. Each
// field is preceded by its length in bytes, as 8 bytes little-endian:
//   the name; the type as NameOf gives it ("float32"); each dimension as 8 bytes little-endian; the elements,
//   row-major, little-endian (strings: as the data file encodes them).
// Also verifies every checksum. Returns errors of TensorReader::ReadInto.
absl::StatusOr<std::string> CheckpointDigest(const TensorReader& reader);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_

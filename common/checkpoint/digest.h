#ifndef LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_
#define LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"

namespace lockstep {

// SHA-256 of a checkpoint's content in lower-case hex: two checkpoints have the same digest when and only
// when they hold the same variables bit for bit, whatever their files, data files and partitions are.
//
// Hashed are, for each variable (slots and global_step included) in the byte order of the names, four fields,
// each preceded by its length in bytes as 8 bytes little-endian:
//   the name; the type as NameOf gives it ("float32"); each dimension as 8 bytes little-endian; the elements,
//   row-major, little-endian (strings: as the data file encodes them).
// Verifies every checksum on the way. Errors: those of TensorReader::ReadInto.
absl::StatusOr<std::string> CheckpointDigest(const TensorReader& reader);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_

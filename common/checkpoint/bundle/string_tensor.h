#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STRING_TENSOR_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STRING_TENSOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Verifies a tensor of strings as stored in a data file: the lengths as varints, the masked CRC32C of the lengths in 4
// bytes, then the strings. TensorFlow's checkpoints contain one such tensor, the object graph of tf.train.Checkpoint.
// `crc` is the unmasked checksum from the index, which covers the lengths as 4-byte numbers (8-byte numbers from 2^32
// on), the 4 bytes and the strings. InvalidArgument explains why the bytes are not `elements` strings with that
// checksum.
absl::Status CheckStrings(absl::string_view encoded, uint64_t elements, uint32_t crc);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STRING_TENSOR_H_

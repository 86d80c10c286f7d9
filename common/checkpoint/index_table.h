#ifndef LOCKSTEP_COMMON_CHECKPOINT_INDEX_TABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The sorted string table of a checkpoint's index file: a LevelDB table (docs/checkpoint.md).

// The table's bytes, the same that TensorFlow writes for these keys and values.
std::string EncodeIndexTable(const std::map<std::string, std::string>& entries);

// Reads any LevelDB table without compression and verifies all its checksums. Not LevelDB's own reader,
// because that trusts the lengths inside a block and in the footer; this one trusts nothing.
// Errors: DataLoss, with the byte where the damage is; Unimplemented for a compressed table.
absl::StatusOr<std::map<std::string, std::string>> DecodeIndexTable(absl::string_view table);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_INDEX_TABLE_H_

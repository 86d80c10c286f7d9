#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The sorted string table of a checkpoint's index file: a LevelDB table (docs/checkpoint.md).

// Tables with a longer key are rejected.
inline constexpr size_t kMostIndexKeyBytes = 64 << 10;

// Returns the bytes of the table, which are identical to TensorFlow's for these keys and values.
std::string EncodeIndexTable(const std::map<std::string, std::string>& entries);

// Reads any LevelDB table without compression, verifies all its checksums, and calls `visit` with each key and value in
// key order. The key and the value are valid only during the call. An error from `visit` ends the reading and is
// returned. LevelDB's own reader trusts the lengths in a block and in the footer, but this function trusts nothing. Its
// time is proportional to the table's size, because it rejects overlapping blocks, keys that are too long, and tables
// whose keys together have more than 64 times the table's bytes. Errors: DataLoss, with the position of the damage;
// Unimplemented for a compressed table.
absl::Status ReadIndexTable(absl::string_view table,
                            absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)> visit);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_

#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The sorted string table of a checkpoint's index file: a LevelDB table (docs/checkpoint.md).

// A table with a longer key is refused.
inline constexpr size_t kMostIndexKeyBytes = 64 << 10;

// The table's bytes, the same that TensorFlow writes for these keys and values.
std::string EncodeIndexTable(const std::map<std::string, std::string>& entries);

// Reads any LevelDB table without compression, verifies all its checksums, and calls `visit` with each key and value,
// in the order of the keys. Both are gone when it returns; its error ends the reading and is returned. Not LevelDB's
// own reader, because that trusts the lengths inside a block and in the footer; this one trusts nothing. It takes time
// in proportion to the table's size, and its keys together have at most 64 times the table's bytes: a table is refused
// if its blocks overlap, if a key is too long, or if keys share more with each other. Errors: DataLoss,
// with the byte where the damage is; Unimplemented for a compressed table.
absl::Status ReadIndexTable(absl::string_view table,
                            absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)> visit);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_INDEX_TABLE_H_

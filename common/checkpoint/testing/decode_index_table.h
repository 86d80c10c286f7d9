#ifndef LOCKSTEP_COMMON_CHECKPOINT_TESTING_DECODE_INDEX_TABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_TESTING_DECODE_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"

namespace lockstep {

// Returns all entries of a table. Returns the errors of ReadIndexTable.
inline absl::StatusOr<std::map<std::string, std::string>> DecodeIndexTable(absl::string_view table) {
  std::map<std::string, std::string> entries;
  RETURN_IF_ERROR(ReadIndexTable(table, [&entries](absl::string_view key, absl::string_view value) {
    entries.emplace_hint(entries.end(), key, value);
    return absl::OkStatus();
  }));
  return entries;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_TESTING_DECODE_INDEX_TABLE_H_

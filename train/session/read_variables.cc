#include "lockstep/train/session/read_variables.h"

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/read_all.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"

namespace lockstep::train {

absl::StatusOr<ReadResult> ReadSnapshot(const VariableSnapshot& snapshot, absl::Span<const std::string> names) {
  const std::vector<SnapshotEntry> entries = EntriesOf(snapshot);
  ReadResult result;
  result.global_step = snapshot.step;
  const auto add = [&](const SnapshotEntry& entry) {
    Tensor value(entry.dtype, entry.shape);
    const absl::string_view bytes = BytesOf(snapshot, entry);
    std::memcpy(value.data(), bytes.data(), bytes.size());
    result.values.push_back({entry.key, std::move(value)});
  };
  if (names.empty()) {
    for (const SnapshotEntry& entry : entries) add(entry);
    return result;
  }
  std::map<absl::string_view, const SnapshotEntry*> by_key;
  for (const SnapshotEntry& entry : entries) by_key[entry.key] = &entry;
  for (const std::string& name : names) {
    const auto it = by_key.find(name);
    if (it == by_key.end()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no variable or optimizer state ", name));
    }
    add(*it->second);
  }
  return result;
}

absl::StatusOr<ReadResult> ReadVariables(ChiefClient* client, absl::Span<const std::string> names) {
  ReadAllOptions options;
  const std::set<std::string> distinct(names.begin(), names.end());
  options.names.assign(distinct.begin(), distinct.end());
  ASSIGN_OR_RETURN(VariablesAtStep read, ReadAll(client, options));
  ReadResult result;
  result.global_step = read.step;
  if (names.empty()) {
    for (VariablesAtStep::Variable& variable : read.variables) {
      result.values.push_back({std::move(variable.name), std::move(variable.value)});
    }
    return result;
  }
  std::map<absl::string_view, const Tensor*> by_name;
  for (const VariablesAtStep::Variable& variable : read.variables) by_name[variable.name] = &variable.value;
  for (const std::string& name : names) {
    const auto it = by_name.find(name);
    if (it == by_name.end()) return absl::InternalError(absl::StrCat("the chief has not sent ", name));
    result.values.push_back({name, *it->second});
  }
  return result;
}

}  // namespace lockstep::train

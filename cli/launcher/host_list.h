#ifndef LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_
#define LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The maximum number of hosts in a list. Slurm has the same limit for one range.
inline constexpr int kMaxHosts = 65536;

// Returns the hosts in a list in Slurm's format, as in SLURM_STEP_NODELIST: "n[1-3,07],login" is n1, n2, n3, n07 and
// login. The order is that of `scontrol show hostnames`. A host may appear twice. Commas or blanks separate items.
// Brackets hold numbers and ranges, padded to the width of a range's first number. No text may follow the last bracket
// of an item. Returns InvalidArgument naming the item and the problem.
absl::StatusOr<std::vector<std::string>> ParseHostList(absl::string_view list);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_

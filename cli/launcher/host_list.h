#ifndef LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_
#define LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The most hosts that a list may have; Slurm has the same limit for one range.
inline constexpr int kMaxHosts = 65536;

// Returns the hosts of a list as Slurm writes it, such as SLURM_STEP_NODELIST: "n[1-3,07],login" is n1, n2, n3, n07 and
// login. The order is that of `scontrol show hostnames`; a host may appear twice. Items are separated by commas or
// blanks. Brackets hold numbers and ranges, padded to the width of a range's first number; after the last bracket of a
// name nothing may follow. Errors: InvalidArgument names the item and what is wrong with it.
absl::StatusOr<std::vector<std::string>> ParseHostList(absl::string_view list);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_HOST_LIST_H_

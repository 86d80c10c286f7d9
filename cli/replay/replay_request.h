#ifndef LOCKSTEP_CLI_REPLAY_REPLAY_REQUEST_H_
#define LOCKSTEP_CLI_REPLAY_REPLAY_REQUEST_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"

namespace lockstep {

// The name of the command, for messages.
inline constexpr char kReplayCommand[] = "lockstep replay";

// The arguments of `lockstep replay`, other than a program. A value type.
struct ReplayRequest {
  std::string logdir;
  // The steps after the first number, up to the second one. Absent if one slot is requested.
  absl::optional<std::pair<int64_t, int64_t>> steps;
  // The slot, and the global step after its update.
  int64_t step = 0;
  int64_t slot = 0;
  // The prefix of the checkpoint to write. Empty if none is requested.
  std::string dump;
  // Overrides of the recorded configuration.
  std::vector<std::string> set;

  // Parses a command line. Returns nullopt on success, or the exit code as CommandLine::Parse does.
  absl::optional<int> Parse(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
  // Returns the command line of the same request, with absolute paths, for another process.
  std::vector<std::string> ToWords() const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPLAY_REPLAY_REQUEST_H_

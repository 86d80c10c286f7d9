#include "lockstep/cli/replay/program_replay.h"

#include <iostream>
#include <sstream>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/replay/replay_report.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {
namespace {

// The first line is the path of the result file. The others are the words of the request.
constexpr char kVariable[] = "LOCKSTEP_REPLAY";

}  // namespace

std::string ProgramReplay::Definition(const ReplayRequest& request, const std::string& result) {
  return absl::StrCat(kVariable, "=", result, "\n", absl::StrJoin(request.ToWords(), "\n"));
}

absl::StatusOr<absl::optional<ProgramReplay>> ProgramReplay::FromEnvironment() {
  const absl::optional<std::string> variable = Environment(kVariable);
  if (!variable) return {absl::nullopt};
  std::vector<std::string> words = absl::StrSplit(*variable, '\n');
  ProgramReplay replay;
  replay.result_ = words.front();
  words.erase(words.begin());
  std::ostringstream errors;
  if (replay.request_.Parse(words, errors, errors)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kVariable, " is wrong: ", absl::StripTrailingAsciiWhitespace(errors.str())));
  }
  return {replay};
}

void ProgramReplay::Compute(const WorkloadFactory& make_workload) const {
  const absl::Status status = Replay(FileSystem::Real(), request_, make_workload, std::cout);
  if (absl::IsCancelled(status)) return;
  const int exit_code = ReplayExitCode(status, std::cerr);
  const absl::Status written = WriteFileAtomically(FileSystem::Real(), result_, absl::StrCat(exit_code));
  LOG_IF(ERROR, !written.ok()) << written;
}

}  // namespace lockstep

#include "lockstep/cli/replay/program_replay.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/replay/replay_report.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/replay/run_replay.h"

namespace lockstep {
namespace {

// The first part is the path of the result file. The others are the words of the request.
constexpr char kVariable[] = "LOCKSTEP_REPLAY";
// A path or an override may contain line breaks.
constexpr char kSeparator[] = "\x1f";

}  // namespace

std::string ProgramReplay::Definition(const ReplayRequest& request, const std::string& result) {
  return absl::StrCat(kVariable, "=", result, kSeparator, absl::StrJoin(request.ToWords(), kSeparator));
}

absl::StatusOr<absl::optional<ProgramReplay>> ProgramReplay::FromEnvironment() {
  const absl::optional<std::string> variable = Environment(kVariable);
  if (!variable) return {absl::nullopt};
  std::vector<std::string> words = absl::StrSplit(*variable, kSeparator);
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

std::string ProgramReplay::ClaimOf(const std::string& result) { return absl::StrCat(result, ".claim"); }

absl::Status ProgramReplay::Claim() const {
  const std::string path = ClaimOf(result_), pid = absl::StrCat(getpid());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    const bool written = write(file, pid.data(), pid.size()) == static_cast<ssize_t>(pid.size());
    const int error = errno;
    close(file);
    return written ? absl::OkStatus() : absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
  }
  if (errno != EEXIST) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  ASSIGN_OR_RETURN(const std::string owner, ReadFile(FileSystem::Real(), path));
  if (owner == pid) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("process ", owner, " of this program has the slots of the replay; ",
                                                    "a replay is computed in one process"));
}

void ProgramReplay::Compute(const WorkloadFactory& make_workload) const {
  RunReplay::Options options;
  options.make_workload = make_workload;
  options.has_framework = true;
  const absl::Status status = Replay(request_, std::move(options), std::cout);
  if (absl::IsCancelled(status)) return;
  const int exit_code = ReplayExitCode(status, std::cerr);
  const absl::Status written = WriteFileAtomically(FileSystem::Real(), result_, absl::StrCat(exit_code));
  LOG_IF(ERROR, !written.ok()) << written;
}

}  // namespace lockstep

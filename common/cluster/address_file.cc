#include "lockstep/common/cluster/address_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::string_view kFinished = "finished";
constexpr absl::string_view kFailed = "failed:";
// Maximum number of bytes of an unexpected file that a message quotes.
constexpr size_t kShown = 80;

}  // namespace

std::string AddressLine(absl::string_view master) { return absl::StrCat(master, "\n"); }

std::string EndLine(const absl::Status& status) {
  if (status.ok()) return absl::StrCat(kFinished, "\n");
  std::string message(status.message());
  std::replace(message.begin(), message.end(), '\n', ' ');
  return absl::StrCat(kFailed, " ", message, "\n");
}

absl::StatusOr<std::vector<std::string>> FindTargets(FileSystem* fs, const MasterAddress& address) {
  if (address.file.empty()) return address.targets;
  const auto contents = ReadFile(fs, address.file);
  if (absl::IsNotFound(contents.status())) {
    return absl::UnavailableError(absl::StrCat("no chief has written ", address.file, " yet"));
  }
  RETURN_IF_ERROR(contents.status());
  absl::string_view line = absl::StripAsciiWhitespace(*contents);
  if (line.empty()) return absl::UnavailableError(absl::StrCat("no chief has written ", address.file, " yet"));
  if (line == kFinished) {
    return EndOfRun(absl::StatusCode::kOutOfRange, absl::StrCat("the run is over, says ", address.file));
  }
  // A failure without a message. "failed:80" would instead be an address.
  if (line == kFailed) {
    return EndOfRun(absl::StatusCode::kFailedPrecondition, absl::StrCat("the run has failed, says ", address.file));
  }
  if (absl::ConsumePrefix(&line, absl::StrCat(kFailed, " "))) {
    return EndOfRun(absl::StatusCode::kFailedPrecondition, line);
  }
  auto master = ParseMasterAddress(line);
  if (!master.ok() || master->targets.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(address.file, " has no address of a chief but \"",
                                                   absl::Utf8SafeCHexEscape(line.substr(0, kShown)), "\""));
  }
  return std::move(master->targets);
}

}  // namespace lockstep

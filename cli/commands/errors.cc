#include "lockstep/cli/commands/errors.h"

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/utf8.h"

namespace lockstep {

int PrintError(absl::string_view command, absl::string_view message, int exit_code, std::ostream& err) {
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(message, "\n"), '\n')) {
    // The line may contain arbitrary bytes that come from a file.
    err << command << ": " << Printable(line) << "\n";
  }
  return exit_code;
}

int ExitCodeOfInput(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
      return kExitBadConfiguration;
    default:
      return ExitCodeOf(status);
  }
}

}  // namespace lockstep

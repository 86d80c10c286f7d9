#include "lockstep/common/transport/connection/connect_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

// Parts of the error messages from gRPC 1.51, which Explanation translates.
constexpr absl::string_view kResolution = "DNS resolution failed for ";
constexpr absl::string_view kNoConnection = "failed to connect to all addresses";
constexpr absl::string_view kLastError = "last error: ";

absl::string_view BehindLast(absl::string_view text, absl::string_view mark) {
  const size_t at = text.rfind(mark);
  return at == absl::string_view::npos ? text : text.substr(at + mark.size());
}

bool HasOneOf(absl::string_view text, std::initializer_list<absl::string_view> parts) {
  for (const absl::string_view part : parts) {
    if (absl::StrContains(text, part)) return true;
  }
  return false;
}

std::string Explanation(const std::string& target, absl::string_view text) {
  if (absl::StrContains(text, kResolution)) {
    return absl::StrCat("the host name \"", target.substr(0, target.rfind(':')),
                        "\" cannot be resolved: ", BehindLast(text, ": "));
  }
  if (!absl::StrContains(text, kNoConnection)) return std::string(text);
  if (absl::StrContains(text, "Connection refused")) return "connection refused: no process listens there";
  if (HasOneOf(text, {"Socket closed", "Connection reset by peer", "http1.x", "Failed parsing HTTP/2", "Frame size",
                      "Broken pipe"})) {
    return absl::StrCat("the port does not speak HTTP/2 in plain text; it may speak TLS (", BehindLast(text, ": "),
                        ")");
  }
  return absl::StrCat("no connection: ", BehindLast(text, kLastError));
}

}  // namespace

absl::Status ExplainConnectError(const std::string& target, const absl::Status& status) {
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError(
        absl::StrCat(target, " is no Lockstep chief, or one of another release: ", status.message()));
  }
  if (!absl::IsUnavailable(status)) return status;
  return absl::UnavailableError(Explanation(target, status.message()));
}

}  // namespace lockstep

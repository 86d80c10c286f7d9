#include "lockstep/common/transport/connection/grpc_lifetime.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/transport/connection/line_budget.h"

namespace lockstep {
namespace {

// At most this many lines are logged per period, because peers can make gRPC write a line for each connection and each
// header that it refuses.
constexpr int64_t kLines = 20;
constexpr absl::Duration kPeriod = absl::Seconds(10);

absl::optional<int64_t> TakeLine() {
  static Mutex mutex;
  static LineBudget budget(kLines, kPeriod);
  MutexLock lock(&mutex);
  return budget.Take(absl::Now());
}

// A server logs this for each client that connects to it by an IP address, or by a name that is not in the server's
// certificate.
bool IsNoise(absl::string_view message) { return absl::StartsWith(message, "No match found for server name"); }

void Log(gpr_log_func_args* line) {
  if (line->severity == GPR_LOG_SEVERITY_DEBUG || IsNoise(line->message)) return;
  const absl::optional<int64_t> left_out = TakeLine();
  if (!left_out) return;
  const absl::string_view file = line->file;
  LOG(WARNING) << "gRPC: " << line->message << " (" << file.substr(file.rfind('/') + 1) << ":" << line->line << ")"
               << (*left_out > 0 ? absl::StrCat("; ", *left_out, " lines of gRPC before this one were left out") : "");
}

}  // namespace

void KeepGrpc() {
  [[maybe_unused]] static const bool kept = [] {
    gpr_set_log_function(Log);
    grpc_init();
    return true;
  }();
}

}  // namespace lockstep

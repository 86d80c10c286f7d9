#include "lockstep/server/chief/run/run_identity.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/server/chief/run/run_contract.h"

namespace lockstep {

std::string RunIdText(uint64_t drawn) { return absl::StrCat(absl::Hex(drawn, absl::kZeroPad16)); }

bool ShowsWrongLogdir(const RunOrigin& origin, int64_t step, absl::Time now) {
  if (!origin.unexpected || step <= origin.step) return false;
  return !origin.begun || now - *origin.begun <= kOtherRunLimit;
}

absl::Status RefusedForItsRun(const v1::OpenSessionRequest& request, const std::string& run_id) {
  return absl::FailedPreconditionError(absl::StrCat(
      IdentityOf(request).ToString(), " has served run ", absl::CHexEscape(request.run_id()), " up to step ",
      request.last_step(), ", and this is run ", run_id, ": start the worker again to have it join this run"));
}

absl::Status WrongLogdir(const v1::RunRecord::OtherRun& other, const std::string& logdir, const std::string& run_id) {
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          other.worker(), " has served run ", absl::CHexEscape(other.run_id()), " up to step ", other.step(), ", but ",
          logdir.empty() ? "this chief has no logdir" : absl::StrCat("the logdir ", logdir, " was empty"), ", so run ",
          run_id, " began at step 0: start the chief with the logdir whose lockstep.textproto names run ",
          absl::CHexEscape(other.run_id()), ", or with --new_run to train a new run")),
      kExitBadConfiguration);
}

}  // namespace lockstep

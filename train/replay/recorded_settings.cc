#include "lockstep/train/replay/recorded_settings.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/server/chief/run/run_settings.h"

namespace lockstep {
namespace {

// Returns the configuration without the later changes: reverts changes, newest first, as long as `is_later(change, n)`
// returns true, where n is the number of changes up to and including this one.
absl::StatusOr<config::v1::RunSpec> Earlier(
    const v1::RunRecord& record, absl::FunctionRef<bool(const v1::RunRecord::Change&, int64_t changes)> is_later) {
  config::v1::RunSpec config = record.config();
  int64_t changes = NumChanges(record);
  for (int i = record.change_size() - 1; i >= 0; --i) {
    const v1::RunRecord::Change& change = record.change(i);
    if (!is_later(change, changes)) break;
    changes -= std::max<int64_t>(1, change.count());
    if (change.count() > 1) {
      return absl::FailedPreconditionError(absl::StrCat("the record no longer has the settings of before step ",
                                                        change.step(), ", which were changed ", change.count(),
                                                        " times"));
    }
    TakeBack(change, &config);
  }
  return config;
}

}  // namespace

absl::StatusOr<config::v1::RunSpec> ConfigAtStep(const v1::RunRecord& record, int64_t step) {
  return Earlier(record, [step](const v1::RunRecord::Change& change, int64_t) { return change.step() > step; });
}

absl::StatusOr<config::v1::RunSpec> ConfigAfterChanges(const v1::RunRecord& record, int64_t changes) {
  return Earlier(record, [changes](const v1::RunRecord::Change&, int64_t count) { return count > changes; });
}

}  // namespace lockstep

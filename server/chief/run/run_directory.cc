#include "lockstep/server/chief/run/run_directory.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/optimizer/optimizer_groups.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

constexpr char kLockFile[] = "lock";
// Name of the generation file in earlier versions, whose runs can still be resumed.
constexpr char kOldGenerationFile[] = "epoch";

// Returns FailedPrecondition if the policies differ. A run keeps its policy, because only the checkpoints of some
// policies contain the positions of input streams.
absl::Status CheckSamePolicy(const config::v1::TrainingConfig& record, const config::v1::TrainingConfig& config) {
  if (PolicyName(record) == PolicyName(config)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the logdir holds a run with policy ", PolicyName(record),
                                                    ", and this configuration has policy ", PolicyName(config),
                                                    "; use another logdir, or the same policy"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(FileSystem* fs, std::string path,
                                                                 absl::optional<int64_t> silent) {
  RETURN_IF_ERROR(fs->CreateDirectory(path));
  std::unique_ptr<RunDirectory> directory(new RunDirectory(fs, std::move(path)));
  if (!silent) RETURN_IF_ERROR(directory->TakeLock());
  RETURN_IF_ERROR(directory->EnterGeneration(silent));
  return directory;
}

absl::Status RunDirectory::TakeLock() {
  auto lock = fs_->LockFile(JoinPath(path_, kLockFile));
  if (absl::IsFailedPrecondition(lock.status())) {
    // Retryable, because the other chief may exit.
    return WithExitCode(absl::FailedPreconditionError(absl::StrCat("another chief is running in ", path_,
                                                                   "; use another "
                                                                   "logdir or stop it: ",
                                                                   lock.status().message())),
                        kExitRetryable);
  }
  RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  return absl::OkStatus();
}

bool RunDirectory::IsHeld(FileSystem* fs, const std::string& path) {
  return fs->IsLocked(JoinPath(path, kLockFile)).value_or(false);
}

RunDirectory::RunDirectory(FileSystem* fs, std::string path) : fs_(fs), path_(std::move(path)) {}

absl::StatusOr<absl::optional<int64_t>> RunDirectory::ReadGeneration(absl::string_view name) const {
  const std::string file = JoinPath(path_, name);
  const absl::StatusOr<std::string> text = ReadFile(fs_, file);
  if (absl::IsNotFound(text.status())) return absl::optional<int64_t>();
  RETURN_IF_ERROR(text.status());
  int64_t generation;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &generation) || generation < 0 ||
      generation == std::numeric_limits<int64_t>::max()) {
    return absl::DataLossError(
        absl::StrCat(file, " does not hold a number; write the number of chief starts so far into it"));
  }
  return absl::make_optional(generation);
}

absl::Status RunDirectory::ReplaceLock(int64_t silent) {
  RETURN_IF_ERROR(files_->Beat());
  ASSIGN_OR_RETURN(const std::vector<int64_t> generations, FencedFiles::Generations(fs_, path_));
  for (const int64_t other : generations) {
    if (other <= silent || other == generation()) continue;
    ASSIGN_OR_RETURN(const bool owned, FencedFiles::IsOwned(fs_, path_, other));
    if (!owned) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("another chief is taking over ", path_, ": it enters generation ", other));
  }
  const std::string lock = JoinPath(path_, kLockFile);
  const absl::Status removed = fs_->Remove(lock);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  return TakeLock();
}

absl::Status RunDirectory::EnterGeneration(absl::optional<int64_t> silent) {
  ASSIGN_OR_RETURN(absl::optional<int64_t> last, ReadGeneration(kGenerationFile));
  if (!last) {
    ASSIGN_OR_RETURN(last, ReadGeneration(kOldGenerationFile));
  }
  ASSIGN_OR_RETURN(files_, FencedFiles::Create(fs_, path_, last.value_or(0) + 1));
  absl::Status entered = silent ? ReplaceLock(*silent) : absl::OkStatus();
  if (entered.ok()) entered = files_->FenceEarlier();
  if (entered.ok()) {
    entered =
        WriteFileAtomically(files_.get(), JoinPath(path_, kGenerationFile), absl::StrCat(files_->generation(), "\n"));
  }
  // Retryable, because the other chief may exit.
  return absl::IsFailedPrecondition(entered) ? WithExitCode(std::move(entered), kExitRetryable) : entered;
}

absl::Status RunDirectory::CheckOwned() const {
  RETURN_IF_ERROR(lock_->Check());
  ASSIGN_OR_RETURN(const absl::optional<int64_t> present, ReadGeneration(kGenerationFile));
  if (present == generation()) return files_->Check();
  return absl::FailedPreconditionError(
      present ? absl::StrCat("another chief has taken over ", path_, ": it has entered generation ", *present,
                             ", the generation here is ", generation())
              : absl::StrCat(path_, " was emptied or taken away: there is no file generation in it any more"));
}

absl::Status RunDirectory::Beat() const {
  absl::Status beat = files_->Beat();
  // Prefers the error of CheckOwned, if any, because it names the original reason.
  if (absl::IsFailedPrecondition(beat)) RETURN_IF_ERROR(CheckOwned());
  return beat;
}

absl::StatusOr<absl::optional<v1::RunRecord>> RunDirectory::ReadRecord() const { return ReadRunRecord(fs_, path_); }

absl::StatusOr<bool> RunDirectory::HasCheckpoint(absl::string_view base) const {
  return HasCheckpoints(fs_, path_, base);
}

absl::StatusOr<bool> RunDirectory::IsNewest(int64_t step) const {
  ASSIGN_OR_RETURN(const absl::optional<std::string> latest, LatestCheckpoint(fs_, path_));
  if (!latest || StepOfCheckpoint(*latest) != step) return false;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, fs_->ListDirectory(path_));
  const absl::string_view base = absl::StripSuffix(*latest, absl::StrCat("-", step));
  return absl::c_none_of(names, [&](const std::string& name) {
    const std::string prefix = JoinPath(path_, absl::StripSuffix(name, ".index"));
    return absl::EndsWith(name, ".index") && absl::StartsWith(prefix, absl::StrCat(base, "-")) &&
           StepOfCheckpoint(prefix).value_or(step) > step;
  });
}

absl::Status RunDirectory::WriteRecord(const v1::RunRecord& record, bool* replaced) const {
  return WriteRunRecord(files_.get(), path_, record, replaced);
}

absl::Status CheckSameRun(const config::v1::RunSpec& record, const config::v1::RunSpec& config) {
  RETURN_IF_ERROR(CheckSamePolicy(record.training(), config.training()));
  const std::string difference = FirstDifference(WeightsConfig(record), WeightsConfig(config));
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the logdir holds a run with another configuration (", difference,
                   "); use another logdir, or the same configuration; a learning rate, "
                   "settings of the optimizer, clips and the batch size may be changed "
                   "from here on, with --at_step=now"));
}

absl::Status CheckMayChange(const config::v1::RunSpec& record, const config::v1::RunSpec& config) {
  RETURN_IF_ERROR(CheckSamePolicy(record.training(), config.training()));
  config::v1::RunSpec before = WeightsConfig(record), after = WeightsConfig(config);
  const absl::Status same = CheckSameState(before.optimizer(), after.optimizer());
  if (!same.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the logdir holds a run with another optimizer: ", same.message(), "; use another logdir"));
  }
  for (config::v1::RunSpec* spec : {&before, &after}) {
    spec->clear_optimizer();
    spec->mutable_input()->clear_batch_size();
  }
  const std::string difference = FirstDifference(before, after);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the logdir holds a run with another configuration (", difference,
                   "), and that cannot be changed during a run; use another logdir, or the same configuration"));
}

absl::Status CheckSameArithmetic(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record) {
  v1::BuildInfo build = record.build();
  // Early versions recorded no arithmetic version; theirs was 1.
  if (build.arithmetic_version() == 0) build.set_arithmetic_version(1);
  const bool same = build.arithmetic_version() == kArithmeticVersion;
  if (same && (record.has_framework() || LayersVersion(build) == kLayersVersion)) return absl::OkStatus();
  const auto versions = [same](int arithmetic, int layers) {
    return absl::StrCat(same ? "layers" : "arithmetic", " version ", same ? layers : arithmetic);
  };
  const auto checkpoint = NewestValidCheckpoint(fs, logdir, [](const std::string&, const absl::Status&) {});
  const std::string way_out = checkpoint.ok() && *checkpoint
                                  ? absl::StrCat(
                                        "to train on from its weights, start another run with a logdir of its own and "
                                        "checkpoint { warm_start: \"",
                                        **checkpoint, "\" }")
                                  : "use another logdir";
  return absl::FailedPreconditionError(absl::StrCat(
      logdir, " holds a run of ", versions(build.arithmetic_version(), LayersVersion(build)), ", by Lockstep ",
      record.build().version().empty() ? "of an early version" : record.build().version(), "; this is Lockstep ",
      kVersion, " with ", versions(kArithmeticVersion, kLayersVersion), ", which gives other bits: ", way_out));
}

}  // namespace lockstep

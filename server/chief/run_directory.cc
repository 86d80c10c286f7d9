#include "server/chief/run_directory.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/config/run_config.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

constexpr char kLockFile[] = "lock";
constexpr char kEpochFile[] = "epoch";
constexpr char kRecordFile[] = "lockstep.textproto";

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(FileSystem* fs, std::string path) {
  RETURN_IF_ERROR(fs->CreateDirectory(path));
  auto lock = fs->LockFile(JoinPath(path, kLockFile));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("another chief is running in ", path, "; use another logdir or stop it"));
  }
  RETURN_IF_ERROR(lock.status());
  std::unique_ptr<RunDirectory> directory(new RunDirectory(fs, std::move(path), *std::move(lock)));
  RETURN_IF_ERROR(directory->EnterEpoch());
  return directory;
}

bool RunDirectory::IsHeld(FileSystem* fs, const std::string& path) {
  return absl::IsFailedPrecondition(fs->LockFile(JoinPath(path, kLockFile)).status());
}

RunDirectory::RunDirectory(FileSystem* fs, std::string path, std::unique_ptr<FileSystem::Lock> lock)
    : fs_(fs), path_(std::move(path)), lock_(std::move(lock)) {}

absl::StatusOr<absl::optional<int64_t>> RunDirectory::ReadEpoch() const {
  const std::string file = JoinPath(path_, kEpochFile);
  const absl::StatusOr<std::string> text = ReadFile(fs_, file);
  if (absl::IsNotFound(text.status())) return absl::optional<int64_t>();
  RETURN_IF_ERROR(text.status());
  int64_t epoch;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &epoch) || epoch < 0 ||
      epoch == std::numeric_limits<int64_t>::max()) {
    return absl::DataLossError(
        absl::StrCat(file, " does not hold a number; write the number of chief starts so far into it"));
  }
  return absl::make_optional(epoch);
}

absl::Status RunDirectory::EnterEpoch() {
  ASSIGN_OR_RETURN(const absl::optional<int64_t> last, ReadEpoch());
  epoch_ = last.value_or(0) + 1;
  return WriteFileAtomically(fs_, JoinPath(path_, kEpochFile), absl::StrCat(epoch_, "\n"));
}

absl::Status RunDirectory::CheckOwned() const {
  RETURN_IF_ERROR(lock_->Check());
  ASSIGN_OR_RETURN(const absl::optional<int64_t> present, ReadEpoch());
  if (present == epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      present ? absl::StrCat("another chief has taken over ", path_, ": it has entered epoch ", *present,
                             ", the epoch here is ", epoch_)
              : absl::StrCat(path_, " was emptied or taken away: there is no file epoch in it any more"));
}

absl::StatusOr<absl::optional<RunRecord>> RunDirectory::ReadRecord() const {
  const std::string file = JoinPath(path_, kRecordFile);
  const absl::StatusOr<std::string> text = ReadFile(fs_, file);
  if (absl::IsNotFound(text.status())) return absl::optional<RunRecord>();
  RETURN_IF_ERROR(text.status());
  RunRecord record;
  if (!google::protobuf::TextFormat::ParseFromString(*text, &record)) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is not a RunRecord in text format"));
  }
  return absl::optional<RunRecord>(std::move(record));
}

absl::Status RunDirectory::WriteRecord(const RunRecord& record) const {
  std::string text;
  google::protobuf::TextFormat::PrintToString(record, &text);
  return WriteFileAtomically(
      fs_, JoinPath(path_, kRecordFile),
      absl::StrCat("# The configuration, the model and the data of this run, written by the chief.\n", text));
}

absl::Status CheckSameRun(const RunConfig& record, const RunConfig& config) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(WeightsConfig(record), WeightsConfig(config))) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the logdir holds a run with another configuration (",
                                                    difference.substr(0, difference.find('\n')),
                                                    "); use another logdir, or the same configuration"));
}

}  // namespace lockstep

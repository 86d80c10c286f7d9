#include "lockstep/common/summary/event_writer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/record_io.h"

namespace lockstep {
namespace {

constexpr int kEventsBetweenFlushes = 10;
constexpr absl::Duration kTimeBetweenFlushes = absl::Seconds(120);

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

EventWriter::EventWriter(Clock* clock, std::string path, std::unique_ptr<WritableFile> file)
    : clock_(clock), path_(std::move(path)), file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(FileSystem* fs, Clock* clock, std::string directory,
                                                                 std::string host) {
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  if (host.empty()) host = HostName();
  const std::string name =
      absl::StrFormat("events.out.tfevents.%010d.%s", absl::ToUnixSeconds(clock->WallTime()), host);
  std::string path = JoinPath(directory, name);
  for (int n = 1;; ++n) {
    ASSIGN_OR_RETURN(const bool taken, fs->Exists(path));
    if (!taken) break;
    path = JoinPath(directory, absl::StrCat(name, ".", n));
  }
  // A chief's files become visible when they are renamed. TensorBoard must not find the temporary name.
  const std::string temporary =
      JoinPath(directory, absl::StrReplaceAll(Basename(path), {{"tfevents", "new"}})) + ".tmp";
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  RETURN_IF_ERROR(fs->Rename(temporary, path));
  std::unique_ptr<EventWriter> writer(new EventWriter(clock, std::move(path), std::move(file)));
  writer->Start();
  return writer;
}

EventWriter::~EventWriter() {
  // Close logs its error.
  Close().IgnoreError();
}

void EventWriter::Start() {
  MutexLock lock(&mutex_);
  version_.set_wall_time(absl::ToUnixSeconds(clock_->WallTime()));
  version_.set_file_version("brain.Event:2");
  absl::Status status = Append(version_);
  version_written_ = status.ok();
  if (status.ok()) status = FlushFile();
  Note(status);
}

void EventWriter::Write(v1::Event event) {
  const absl::Time now = clock_->Now();
  if (event.wall_time() == 0) event.set_wall_time(StampOf(clock_->WallTime()));
  MutexLock lock(&mutex_);
  if (file_ == nullptr) {
    LOG_IF(WARNING, !warned_closed_) << "An event was written to " << path_ << " after it was closed; it is dropped";
    warned_closed_ = true;
    return;
  }
  absl::Status status;
  if (!version_written_) {
    status = Append(version_);
    version_written_ = status.ok();
  }
  if (status.ok()) status = Append(event);
  if (status.ok()) {
    ++unflushed_events_;
    const bool first = !std::exchange(first_event_written_, true);
    if (first || failing_ || event.has_session_log() || unflushed_events_ >= kEventsBetweenFlushes ||
        now - last_flush_ >= kTimeBetweenFlushes) {
      status = FlushFile();
    }
  }
  Note(status);
}

void EventWriter::WriteScalar(absl::string_view tag, float value, int64_t step) {
  Write(ScalarEvent(tag, value, step));
}

void EventWriter::WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step,
                                  absl::string_view checkpoint_path) {
  Write(SessionLogEvent(status, step, checkpoint_path));
}

absl::Status EventWriter::WriteRunMetadata(absl::string_view tag, absl::string_view run_metadata, int64_t step) {
  {
    MutexLock lock(&mutex_);
    if (!metadata_tags_.insert(std::string(tag)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("run metadata of step ", step, ": the tag ", tag, " is in ", path_, " already"));
    }
  }
  v1::Event event;
  event.set_step(step);
  event.mutable_tagged_run_metadata()->set_tag(std::string(tag));
  event.mutable_tagged_run_metadata()->set_run_metadata(std::string(run_metadata));
  Write(std::move(event));
  return absl::OkStatus();
}

double EventWriter::StampOf(absl::Time time) {
  // Converts the seconds and the nanoseconds separately, because a double cannot exactly represent the nanoseconds
  // since 1970.
  const int64_t whole = absl::ToUnixSeconds(time);
  return whole + absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(whole)) * 1e-9;
}

absl::Status EventWriter::Flush() {
  MutexLock lock(&mutex_);
  if (file_ == nullptr) return absl::OkStatus();
  const absl::Status status = FlushFile();
  Note(status);
  return status;
}

absl::Status EventWriter::Close() {
  MutexLock lock(&mutex_);
  if (file_ == nullptr) return absl::OkStatus();
  const absl::Status status = file_->Close();
  Note(status);
  file_.reset();
  return status;
}

bool EventWriter::closed() const {
  MutexLock lock(&mutex_);
  return file_ == nullptr;
}

absl::Status EventWriter::Append(const v1::Event& event) {
  return file_->Append(FrameRecord(event.SerializeAsString()));
}

absl::Status EventWriter::FlushFile() {
  RETURN_IF_ERROR(file_->Flush());
  unflushed_events_ = 0;
  last_flush_ = clock_->Now();
  return absl::OkStatus();
}

void EventWriter::Note(const absl::Status& status) {
  if (!status.ok() && !failing_) LOG(ERROR) << "Events are being lost: " << status;
  if (status.ok() && failing_) LOG(INFO) << "Events are written to " << path_ << " again";
  failing_ = !status.ok();
}

v1::Event ScalarEvent(absl::string_view tag, float value, int64_t step) {
  v1::Event event;
  event.set_step(step);
  v1::Summary::Value* const scalar = event.mutable_summary()->add_value();
  scalar->set_tag(std::string(tag));
  scalar->set_simple_value(value);
  return event;
}

v1::Event SessionLogEvent(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path) {
  v1::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(status);
  event.mutable_session_log()->set_checkpoint_path(std::string(checkpoint_path));
  return event;
}

}  // namespace lockstep

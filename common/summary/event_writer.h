#ifndef LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_
#define LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// Writes one event file as TensorBoard reads it: <directory>/events.out.tfevents.<10-digit
// seconds>.<host name>[.<n>], first record file_version "brain.Event:2". That record and the first
// event are flushed at once, so that the file is visible, then every 10th event and whatever comes
// 120 s after the last flush. Thread-safe. A full disk never stops the run: the first error of a
// streak is logged, the event is lost whole, and later ones are tried again.
class EventWriter {
 public:
  // Creates the directory and the file; a name that exists already gets a numbered suffix.
  // `host` is for the file's name; empty is this machine's.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(FileSystem* fs, Clock* clock, std::string directory,
                                                             std::string host = "");
  // Closes.
  ~EventWriter();

  // Stamps wall_time (when 0) and appends. After Close: dropped, with one warning.
  void Write(v1::Event event) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteScalar(absl::string_view tag, float value, int64_t step);
  void WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");

  // An event's wall_time for what happens at `time`: seconds since 1970.
  static double StampOf(absl::Time time);

  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Close() ABSL_LOCKS_EXCLUDED(mutex_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& path() const { return path_; }

 private:
  EventWriter(Clock* clock, std::string path, std::unique_ptr<WritableFile> file);
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(const v1::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FlushFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Logs the first error of a streak, and its end.
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const std::string path_;
  mutable Mutex mutex_;
  // Null after Close.
  std::unique_ptr<WritableFile> file_ ABSL_GUARDED_BY(mutex_);
  // The first record, as long as it could not be written.
  v1::Event version_ ABSL_GUARDED_BY(mutex_);
  bool version_written_ ABSL_GUARDED_BY(mutex_) = false;
  bool first_event_written_ ABSL_GUARDED_BY(mutex_) = false;
  int unflushed_events_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_flush_ ABSL_GUARDED_BY(mutex_);
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool warned_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Events without a time. A scalar of a summary:
v1::Event ScalarEvent(absl::string_view tag, float value, int64_t step);
// What happened to the run:
v1::Event SessionLogEvent(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_

#ifndef LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_
#define LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_

#include <cstdint>
#include <memory>
#include <set>
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

// A destination that takes the events of a process one by one. Thread-safe.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // Logs the loss of events instead of returning an error.
  virtual void Write(v1::Event event) = 0;
  // Blocks until everything written so far is safe. Returns errors of the files.
  virtual absl::Status Flush() = 0;
  virtual absl::Status Close() = 0;
  // The name of the sink for messages.
  virtual const std::string& path() const = 0;
};

// Writer of one event file in TensorBoard's format: <directory>/events.out.tfevents.<10-digit seconds>.<host
// name>[.<n>], whose first record is file_version "brain.Event:2". Flushes that record and the first event immediately,
// so that the file is visible, then every 10th event, any event 120 s after the last flush, and records of the session,
// so that a killed process leaves everything that it wrote before its last checkpoint. A full disk never stops the run:
// the first error of a streak is logged, the affected event is lost as a whole, and later events are tried again.
// Thread-safe.
class EventWriter : public EventSink {
 public:
  // Creates the directory and the file; if the name exists, appends a number to it. `host` is part of the file's name;
  // if empty, this machine's name is used.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(FileSystem* fs, Clock* clock, std::string directory,
                                                             std::string host = "");
  // Calls Close.
  ~EventWriter() override;

  // Appends an event, setting wall_time if it is 0. After Close, drops events and warns once.
  void Write(v1::Event event) override ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteScalar(absl::string_view tag, float value, int64_t step);
  void WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");
  // Writes the costs of a step as a serialized tensorflow.RunMetadata, which TensorBoard shows under `tag`. If this
  // writer has used the tag before, writes nothing and returns InvalidArgument.
  absl::Status WriteRunMetadata(absl::string_view tag, absl::string_view run_metadata, int64_t step)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Converts `time` to an event's wall_time, in seconds since 1970.
  static double StampOf(absl::Time time);

  absl::Status Flush() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Close() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& path() const override { return path_; }

 private:
  EventWriter(Clock* clock, std::string path, std::unique_ptr<WritableFile> file);
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(const v1::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FlushFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Logs the first error of a streak, and the end of the streak.
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const std::string path_;
  mutable Mutex mutex_;
  // Null after Close.
  std::unique_ptr<WritableFile> file_ ABSL_GUARDED_BY(mutex_);
  // The first record, until it is written.
  v1::Event version_ ABSL_GUARDED_BY(mutex_);
  bool version_written_ ABSL_GUARDED_BY(mutex_) = false;
  bool first_event_written_ ABSL_GUARDED_BY(mutex_) = false;
  int unflushed_events_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_flush_ ABSL_GUARDED_BY(mutex_);
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool warned_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> metadata_tags_ ABSL_GUARDED_BY(mutex_);
};

// Returns an event with a summary of one scalar and without a time.
v1::Event ScalarEvent(absl::string_view tag, float value, int64_t step);
// Returns an event that logs the session's status, without a time.
v1::Event SessionLogEvent(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_EVENT_WRITER_H_

#ifndef LOCKSTEP_SERVER_CHIEF_JOURNAL_RUN_JOURNAL_H_
#define LOCKSTEP_SERVER_CHIEF_JOURNAL_RUN_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/journal/step_history.h"
#include "lockstep/server/sync/machine/run_event.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The human-readable history of a run: the losses of its steps, its last events, and counters. Keeps a bounded history
// in memory and, after Open, also in a file, which the next chief continues. Only a dedicated thread writes the file,
// four times a second; up to 4,096 lines wait for a disk that hangs, and further ones are dropped. Thread-safe; the
// mutex is a leaf.
class RunJournal {
 public:
  // The file's name in the logdir.
  static constexpr char kFileName[] = "events.jsonl";
  static constexpr size_t kEvents = 500;
  // Maximum size of the file. A larger one is not read, and the history starts over.
  static constexpr uint64_t kMaxFileBytes = 64 << 20;

  struct Options {
    Clock* clock = nullptr;  // must outlive the journal, like all pointers
    Executor* executor = Executor::Threads();
    FileSystem* fs = nullptr;
    int64_t generation = 0;
    // The period at which the file is written. If zero, only the destructor and Write write it (tests).
    absl::Duration period = absl::Milliseconds(250);
  };

  explicit RunJournal(const Options& options);
  // Writes the pending lines.
  ~RunJournal();

  // Continues the file at `path`, if it exists, and writes to it from now on. Errors: those of the file system, in
  // which case the journal is kept in memory only. Drops lines that it cannot parse.
  absl::Status Open(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the run continues at `step` from `checkpoint`, which is empty if the step is not saved.
  void OnRestored(int64_t step, const std::string& checkpoint) ABSL_LOCKS_EXCLUDED(mutex_);
  // Receives every event of the run and keeps those of interest to users.
  void OnEvent(const RunEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a step that was committed at `time`. Two consecutive steps may arrive in reverse order.
  void OnCommitted(int64_t step, double loss, absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  // The position of a watcher: the points and events that it has received.
  struct Cursor {
    int64_t version = -1;
    size_t points = 0;
    int64_t event = 0;
  };
  // Adds the points and events after the cursor, and advances it.
  void Fill(Cursor* cursor, v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills in the counters of events, and now_ms.
  void FillCounters(v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes the pending lines.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  int64_t NowMs() const { return absl::ToUnixMillis(options_.clock->WallTime()); }
  void Add(v1::EventRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const RunEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLine(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Replaces the file with what is in memory. Called by the writing thread, or before it starts.
  absl::Status Replace() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const int64_t started_ms_;

  // Used by the writing thread only.
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  int64_t file_lines_ = 0;
  bool failing_ = false;

  mutable Mutex mutex_;
  StepHistory history_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_commit_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::EventRecord> events_ ABSL_GUARDED_BY(mutex_);
  int64_t num_events_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::RunCounters counters_ ABSL_GUARDED_BY(mutex_);
  // Number of points of version written_version_ that are in the file, or that the writing thread has.
  size_t written_points_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t written_version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  std::string lines_ ABSL_GUARDED_BY(mutex_);
  size_t num_lines_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<PeriodicTask> task_;  // the last member, because it uses the others
};

// The events and points of a journal, for a reader without a chief.
struct RecordedJournal {
  StepHistory history;
  std::deque<v1::EventRecord> events;
};
// Reads the journal at `path`. Errors: those of the file system; ResourceExhausted if the file is larger than
// RunJournal::kMaxFileBytes.
absl::StatusOr<RecordedJournal> ReadJournal(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_JOURNAL_RUN_JOURNAL_H_

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

// The history of a run for people: the losses of its steps, its last events, and counters. Keeps them in memory,
// bounded, and after Open also in a file, so that the next chief continues them. Only a thread of its own writes the
// file, four times a second; up to 4,096 lines wait for a disk that hangs, and further ones are dropped. Thread-safe;
// the mutex is a leaf.
class RunJournal {
 public:
  // The file's name in the logdir.
  static constexpr char kFileName[] = "events.jsonl";
  static constexpr size_t kEvents = 500;
  // A larger file is not read, and the history begins again.
  static constexpr uint64_t kMaxFileBytes = 64 << 20;

  struct Options {
    Clock* clock = nullptr;  // must outlive the journal, like all pointers
    Executor* executor = Executor::Threads();
    FileSystem* fs = nullptr;
    int64_t generation = 0;
    // The period of writes to the file. If zero, only the destructor and Write write (tests).
    absl::Duration period = absl::Milliseconds(250);
  };

  explicit RunJournal(const Options& options);
  // Writes the lines that wait.
  ~RunJournal();

  // Continues the file at `path`, if it exists, and writes it from now on. Errors are those of the file system; the
  // journal then stays in memory. Lines that are not understood are dropped.
  absl::Status Open(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // The run continues at `step`, from `checkpoint`, which is empty if the step is not saved.
  void OnRestored(int64_t step, const std::string& checkpoint) ABSL_LOCKS_EXCLUDED(mutex_);
  // Every event of the run; keeps those that people want to see.
  void OnEvent(const RunEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // A step was committed. Two consecutive steps may come in the other order.
  void OnCommitted(int64_t step, double loss) ABSL_LOCKS_EXCLUDED(mutex_);

  // The position of a watcher: the points and events that it has received.
  struct Cursor {
    int64_t version = -1;
    size_t points = 0;
    int64_t event = 0;
  };
  // Adds the points and events after the cursor, and moves it.
  void Fill(Cursor* cursor, v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills the counters of events, and now_ms.
  void FillCounters(v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes the lines that wait.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  int64_t NowMs() const { return absl::ToUnixMillis(options_.clock->WallTime()); }
  void Add(v1::EventRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const RunEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLine(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the whole history and the events as lines.
  std::string Lines() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Replaces the file by what is in memory. Called by the writing thread, or before it starts.
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
  // Points that are in the file or among the lines, of history_.version() written_version_.
  size_t written_points_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t written_version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  std::string lines_ ABSL_GUARDED_BY(mutex_);
  size_t num_lines_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<PeriodicTask> task_;  // the last member: it uses the others
};

// The events and points of a journal, for a reader without a chief.
struct RecordedJournal {
  StepHistory history;
  std::deque<v1::EventRecord> events;
};
// Errors: those of the file system; ResourceExhausted if the file is larger than RunJournal::kMaxFileBytes.
absl::StatusOr<RecordedJournal> ReadJournal(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_JOURNAL_RUN_JOURNAL_H_

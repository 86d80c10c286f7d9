#ifndef LOCKSTEP_TRAIN_EVENTS_EVENT_WRITER_CACHE_H_
#define LOCKSTEP_TRAIN_EVENTS_EVENT_WRITER_CACHE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/summary/event_writer.h"

namespace lockstep {

// One event file for each directory into which several parts of a process write: TensorBoard shows the files of a
// directory as one, and reads only the newest as it grows. A writer is open as long as somebody has it; who is to find
// the same file later keeps it. A chief does not share its own, whose end is the run's. Thread-safe.
class EventWriterCache {
 public:
  // The process's; never destroyed.
  static EventWriterCache* OfProcess();

  // The writer of the directory, which spellings of its path may differ of. Flush it, do not Close it: that ends it for
  // all, and the next Get makes another file. Errors: those of EventWriter::Create. `fs` and `clock` must outlive the
  // writer; they are those of the first who asks.
  absl::StatusOr<std::shared_ptr<EventWriter>> Get(FileSystem* fs, Clock* clock, absl::string_view directory)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes all of them; the next Get makes another file. Returns the first error.
  absl::Status Clear() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A directory's file is opened by a single thread at a time.
  struct Entry {
    std::weak_ptr<EventWriter> writer;
    bool opening = false;
  };
  using Key = std::pair<const FileSystem*, std::string>;

  Mutex mutex_;
  CondVar opened_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVENTS_EVENT_WRITER_CACHE_H_

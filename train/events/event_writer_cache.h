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

// A cache of event writers. It shares one event file per directory between the parts of a process, because TensorBoard
// shows the files of a directory as one, but follows only the newest as it grows. A writer stays open while a caller
// holds it; a caller that needs the same file later must keep the writer. A chief does not share its own file, which
// ends with the run. Thread-safe.
class EventWriterCache {
 public:
  // Returns the cache of this process, which is never destroyed.
  static EventWriterCache* OfProcess();

  // Returns the writer for the directory, however its path is spelled. Callers may Flush the writer, but must not Close
  // it: that closes it for all callers, and the next Get creates another file. `fs` and `clock` must outlive the
  // writer, which uses those of the first caller. Errors: those of EventWriter::Create.
  absl::StatusOr<std::shared_ptr<EventWriter>> Get(FileSystem* fs, Clock* clock, absl::string_view directory)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes all writers, so that the next Get creates a new file. Returns the first error.
  absl::Status Clear() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The writer for one directory. `opening` ensures that only one thread at a time opens the file.
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

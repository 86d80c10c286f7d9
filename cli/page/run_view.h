#ifndef LOCKSTEP_CLI_PAGE_RUN_VIEW_H_
#define LOCKSTEP_CLI_PAGE_RUN_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A metric of a checkpoint on a split, as written by `lockstep eval` and `lockstep run`.
struct EvaluationPoint {
  int64_t step = 0;
  std::string split;
  std::string metric;
  double value = 0;
};

// A run's state for a page, assembled from WatchRun's replies across the chief's incarnations. Keeps the state while
// the chief is absent. Thread-safe.
class RunView {
 public:
  // The page displays `master`. `clock` must outlive the view.
  RunView(Clock* clock, std::string master);

  // Called when a chief answers. Drops points and events, because the chief's first reply contains them.
  void OnConnected() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReply(const v1::WatchRunReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called with the reason after each attempt that no chief answers. The chief is absent since its last reply.
  void OnAbsent(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called when the address file says that the run is over. No chief answers after that.
  void OnOver(const absl::Status& how) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetEvaluations(std::vector<EvaluationPoint> evaluations) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the digest of a checkpoint's variables. An empty digest means that it is not known.
  void SetDigest(std::string checkpoint, std::string digest) ABSL_LOCKS_EXCLUDED(mutex_);

  // A page's position in the data. The default requests everything.
  struct Cursor {
    int64_t version = -1;
    size_t points = 0;
    int64_t event = 0;
  };
  // Returns the state as one JSON object, with the points and events after the cursor (docs/observe.md). Pages with the
  // same cursor share the same object until the state changes.
  std::shared_ptr<const std::string> StateJson(const Cursor& cursor) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the status as JSON, in the form printed by `lockstep status --json`.
  std::string StatusJson() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The input for the metrics.
  struct Facts {
    // The last reply, or nullopt before the first one.
    absl::optional<v1::WatchRunReply> last;
    bool answers = false;
    // Number of times that this view has seen the chief's generation change.
    int64_t restarts = 0;
    absl::Duration absent;  // total
  };
  Facts facts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest checkpoint, or an empty string if there is none.
  std::string checkpoint() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string logdir() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Number of recent results that are kept for other pages with the same cursor.
  static constexpr size_t kKept = 4;
  struct Kept {
    int64_t revision = -1;
    Cursor cursor;
    std::shared_ptr<const std::string> json;
  };

  std::string NewStateJson(const Cursor& cursor) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const std::string master_;
  mutable Mutex mutex_;
  // Grows with every change.
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::array<Kept, kKept> kept_ ABSL_GUARDED_BY(mutex_);
  mutable size_t next_kept_ ABSL_GUARDED_BY(mutex_) = 0;
  // Incremented when the points or events start again from the beginning.
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::HistoryPoint> points_ ABSL_GUARDED_BY(mutex_);
  // The newest events, numbered by this view.
  std::deque<v1::EventRecord> events_ ABSL_GUARDED_BY(mutex_);
  int64_t num_events_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last reply, without points, events, contributions and commits.
  absl::optional<v1::WatchRunReply> last_ ABSL_GUARDED_BY(mutex_);
  int64_t restarts_ ABSL_GUARDED_BY(mutex_) = 0;
  // The time of the last reply, and, while the chief is absent, since when.
  absl::optional<absl::Time> heard_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Time> absent_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration absent_ ABSL_GUARDED_BY(mutex_);  // before absent_since_
  absl::Status absent_why_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Status> over_ ABSL_GUARDED_BY(mutex_);
  std::vector<EvaluationPoint> evaluations_ ABSL_GUARDED_BY(mutex_);
  std::pair<std::string, std::string> digest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_RUN_VIEW_H_

#ifndef LOCKSTEP_SERVER_CHIEF_JOURNAL_STEP_HISTORY_H_
#define LOCKSTEP_SERVER_CHIEF_JOURNAL_STEP_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The losses and durations of a run's steps, in a bounded number of points. At first, each step is a point. Whenever
// the points reach their limit, neighbors are merged in pairs, and later points cover twice as many steps. Pure; not
// thread-safe.
class StepHistory {
 public:
  // `most` must be at least 2.
  explicit StepHistory(size_t most = 2000) : most_(most) {}

  // Adds a step that was committed `seconds` after the previous one. Steps arrive in order, or nearly so.
  void Add(int64_t step, int64_t time_ms, double loss, double seconds);
  // Adds a point of an earlier history. Drops the points whose steps it repeats, because a later incarnation has
  // recomputed them.
  void AddPoint(const v1::HistoryPoint& point);
  // Drops all points after `step`, at which the run continues. Returns the number of known steps that were after it.
  int64_t Rewind(int64_t step);

  const std::vector<v1::HistoryPoint>& points() const { return points_; }
  // The steps since the last point, or nullopt if there are none.
  const absl::optional<v1::HistoryPoint>& open() const { return open_; }
  // Changes whenever points() changes other than by growing.
  int64_t version() const { return version_; }

 private:
  void Append(v1::HistoryPoint point);

  const size_t most_;
  int64_t stride_ = 1;
  std::vector<v1::HistoryPoint> points_;
  absl::optional<v1::HistoryPoint> open_;
  int64_t version_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_JOURNAL_STEP_HISTORY_H_

#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_WORK_TIMES_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_WORK_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/common/step/step_times.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A histogram of times in seconds. Not thread-safe.
template <size_t kBounds>
class SecondsHistogram {
 public:
  explicit SecondsHistogram(const std::array<double, kBounds>* bounds) : bounds_(*bounds) {}

  void Add(double seconds) {
    size_t i = 0;
    while (i < kBounds && seconds > bounds_[i]) ++i;
    ++counts_[i];
    sum_ += seconds;
  }
  // The counts of the buckets, which are not cumulative. The last bucket has no upper bound.
  const std::array<int64_t, kBounds + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  const std::array<double, kBounds>& bounds_;
  std::array<int64_t, kBounds + 1> counts_ = {};
  double sum_ = 0;
};

// Tracks how workers and steps use their time, for display: sums, the last contributions, and the workers that are
// slow. Keeps the newest 4,096 contributions and 256 commits. Pure; not thread-safe.
class WorkTimes {
 public:
  // A worker is slow if its time for a slot is at least kSlowFactor times as long as the other workers' median, and at
  // least kSlowTime longer. Its time is the median of its last kRecent contributions, without waits.
  static constexpr size_t kRecent = 3;
  static constexpr double kSlowFactor = 1.5;
  static constexpr absl::Duration kSlowTime = absl::Milliseconds(5);
  // kComparePeriod is the period of TakeSlow's comparisons. kSlowFor is how long a worker must have been slow before
  // TakeSlow names it, because other programs may disturb any worker for a moment. TakeSlow names a worker at most once
  // per kNamePeriod.
  static constexpr absl::Duration kComparePeriod = absl::Milliseconds(200);
  static constexpr absl::Duration kSlowFor = absl::Seconds(1);
  static constexpr absl::Duration kNamePeriod = absl::Minutes(1);

  explicit WorkTimes(absl::Time start);

  void AddWorker(uint64_t session, const std::string& name);
  void RemoveWorker(uint64_t session) { workers_.erase(session); }

  // Records that a contribution to `token` arrived `took` after the token was issued. `times` is the worker's report
  // (EncodeStepTimes).
  void OnContributed(uint64_t session, const StepToken& token, absl::Duration took, uint64_t times, absl::Time now);
  // Records that a step may begin after a hold.
  void OnBegun(absl::Time now) { begun_ = now; }
  // Records the update to global step `step`.
  void OnCommitted(int64_t step, absl::Time now);

  struct Slow {
    std::string worker;
    double factor = 0;
    absl::Duration longer;
  };
  // Returns the workers that have been slow for kSlowFor, each at most once per kNamePeriod. Call it regularly.
  std::vector<Slow> TakeSlow(absl::Time now);

  // Fills in WatchRunReply.worker and the counters of steps.
  void Fill(v1::WatchRunReply* reply) const;
  // A watcher's position: the contributions and commits that it has received.
  struct Cursor {
    int64_t contributions = 0;
    int64_t commits = 0;
  };
  // Adds the contributions and commits after the cursor, and advances it.
  void FillTimeLine(Cursor* cursor, v1::WatchRunReply* reply) const;

 private:
  using ContributionHistogram = SecondsHistogram<7>;
  using StepHistogram = SecondsHistogram<16>;

  // Upper bounds of histogram buckets, in seconds. Those for steps range from 1 ms to 100 s, and each is about 2.15
  // times the previous one.
  static constexpr std::array<double, 7> kContributionBounds = {0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10};
  static constexpr std::array<double, 16> kStepBounds = {0.001, 0.00215, 0.0046, 0.01, 0.0215, 0.046, 0.1, 0.215,
                                                         0.46,  1,       2.15,   4.6,  10,     21.5,  46,  100};

  struct Recent {
    uint64_t times = 0;  // EncodeStepTimes
    int64_t slots = 1;
  };
  struct Worker {
    std::shared_ptr<const std::string> name;
    int64_t contributions = 0;
    int64_t step = 0;
    StepTimes total;
    // A ring buffer of the last contributions.
    std::array<Recent, kRecent> recent;
    ContributionHistogram took{&kContributionBounds};
    // Time of the first comparison in the current series that has found the worker slow; InfiniteFuture if the last
    // comparison did not.
    absl::Time slow_since = absl::InfiniteFuture();
    // The time when TakeSlow last named the worker.
    absl::Time named = absl::InfinitePast();
  };
  struct Arrival {
    absl::Time time;
    std::shared_ptr<const std::string> worker;
    int64_t step = 0;
    SlotBlock block;
    uint64_t times = 0;
    absl::Duration took;
  };
  struct Committed {
    absl::Time begun, time;
    int64_t step = 0;
  };

  // The slowness of a worker. The factor is 0 if the worker is not slow, or if there is nothing to compare it with.
  struct Pace {
    double factor = 0;
    absl::Duration longer;
  };
  std::vector<Pace> Paces() const;
  // Returns the median of a part of the worker's recent times for one slot.
  template <typename Part>
  static absl::Duration RecentMedian(const Worker& worker, const Part& part);
  static void FillWorker(const Worker& worker, v1::WorkerTimes* times);
  double Seconds(absl::Time time) const { return absl::ToDoubleSeconds(time - start_); }

  const absl::Time start_;
  absl::Time begun_;
  absl::Time compared_;
  std::map<uint64_t, Worker> workers_;
  // Ring buffers. num_arrivals_ and num_commits_ count all elements ever added.
  std::vector<Arrival> arrivals_;
  std::vector<Committed> commits_;
  int64_t num_arrivals_ = 0;
  int64_t num_commits_ = 0;
  StepHistogram steps_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_WORK_TIMES_H_

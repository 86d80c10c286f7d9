#include "lockstep/server/sync/workers/work_times.h"

#include <algorithm>
#include <iterator>

namespace lockstep {
namespace {

constexpr size_t kArrivals = 4096, kCommits = 256;
// Limits of one reply.
constexpr int64_t kArrivalsSent = 2000, kCommitsSent = 200;
constexpr int kWorkersSent = 200;

absl::Duration Busy(const StepTimes& times) { return times.batch + times.compute + times.send; }

// Returns the middle element, or the upper one if there are two.
absl::Duration Median(std::vector<absl::Duration>* times) {
  const auto middle = times->begin() + static_cast<std::ptrdiff_t>(times->size() / 2);
  std::nth_element(times->begin(), middle, times->end());
  return *middle;
}

void Fill(const StepTimes& times, v1::PhaseSeconds* seconds) {
  seconds->set_batch(absl::ToDoubleSeconds(times.batch));
  seconds->set_compute(absl::ToDoubleSeconds(times.compute));
  seconds->set_send(absl::ToDoubleSeconds(times.send));
  seconds->set_wait(absl::ToDoubleSeconds(times.wait));
}

}  // namespace

WorkTimes::WorkTimes(absl::Time start) : start_(start), begun_(start), compared_(start), steps_(&kStepBounds) {}

void WorkTimes::AddWorker(uint64_t session, const std::string& name) {
  workers_.erase(session);
  workers_[session].name = std::make_shared<const std::string>(name);
}

void WorkTimes::OnContributed(uint64_t session, const StepToken& token, absl::Duration took, uint64_t times,
                              absl::Time now) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.step = token.step;
  worker.took.Add(absl::ToDoubleSeconds(took));
  const StepTimes read = DecodeStepTimes(times);
  worker.total.batch += read.batch;
  worker.total.compute += read.compute;
  worker.total.send += read.send;
  worker.total.wait += read.wait;
  worker.recent[static_cast<size_t>(worker.contributions) % kRecent] = {times, std::max<int64_t>(token.block.count, 1)};
  ++worker.contributions;
  if (arrivals_.size() < kArrivals) arrivals_.emplace_back();
  arrivals_[static_cast<size_t>(num_arrivals_++) % kArrivals] = {now,         worker.name, token.step,
                                                                 token.block, times,       took};
}

void WorkTimes::OnCommitted(int64_t step, absl::Time now) {
  if (commits_.size() < kCommits) commits_.emplace_back();
  commits_[static_cast<size_t>(num_commits_++) % kCommits] = {begun_, now, step};
  steps_.Add(absl::ToDoubleSeconds(now - begun_));
  begun_ = now;
}

template <typename Part>
absl::Duration WorkTimes::RecentMedian(const Worker& worker, const Part& part) {
  const size_t known = std::min(kRecent, static_cast<size_t>(worker.contributions));
  std::vector<absl::Duration> times;
  for (size_t i = 0; i < known; ++i) {
    times.push_back(part(DecodeStepTimes(worker.recent[i].times)) / worker.recent[i].slots);
  }
  return times.empty() ? absl::ZeroDuration() : Median(&times);
}

std::vector<WorkTimes::Pace> WorkTimes::Paces() const {
  std::vector<absl::Duration> own;
  for (const auto& entry : workers_) {
    const Worker& worker = entry.second;
    const bool known = worker.contributions >= static_cast<int64_t>(kRecent);
    own.push_back(known ? RecentMedian(worker, Busy) : absl::ZeroDuration());
  }
  std::vector<absl::Duration> all;
  std::copy_if(own.begin(), own.end(), std::back_inserter(all), [](auto time) { return time > absl::ZeroDuration(); });
  std::vector<Pace> paces(own.size());
  if (all.size() < 2) return paces;
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] == absl::ZeroDuration()) continue;
    // The median of the others is the median of `all` without own[i]. If two are in the middle, the lower one is used.
    const size_t rank = static_cast<size_t>(std::lower_bound(all.begin(), all.end(), own[i]) - all.begin());
    const size_t middle = (all.size() - 2) / 2;
    const absl::Duration others = all[middle < rank ? middle : middle + 1];
    const absl::Duration longer = own[i] - others;
    if (others <= absl::ZeroDuration() || longer < kSlowTime) continue;
    const double factor = absl::FDivDuration(own[i], others);
    if (factor >= kSlowFactor) paces[i] = {factor, longer};
  }
  return paces;
}

std::vector<WorkTimes::Slow> WorkTimes::TakeSlow(absl::Time now) {
  std::vector<Slow> slow;
  if (now - compared_ < kComparePeriod) return slow;
  compared_ = now;
  const std::vector<Pace> paces = Paces();
  size_t i = 0;
  for (auto& entry : workers_) {
    const Pace& pace = paces[i++];
    Worker& worker = entry.second;
    worker.slow_since = pace.factor == 0 ? absl::InfiniteFuture() : std::min(worker.slow_since, now);
    if (now - worker.slow_since < kSlowFor || now - worker.named < kNamePeriod) continue;
    worker.named = now;
    slow.push_back({*worker.name, pace.factor, pace.longer});
  }
  return slow;
}

void WorkTimes::FillWorker(const Worker& worker, v1::WorkerTimes* times) {
  times->set_name(*worker.name);
  times->set_contributions(worker.contributions);
  times->set_step(worker.step);
  lockstep::Fill(worker.total, times->mutable_total());
  StepTimes recent;
  recent.batch = RecentMedian(worker, [](const StepTimes& each) { return each.batch; });
  recent.compute = RecentMedian(worker, [](const StepTimes& each) { return each.compute; });
  recent.send = RecentMedian(worker, [](const StepTimes& each) { return each.send; });
  recent.wait = RecentMedian(worker, [](const StepTimes& each) { return each.wait; });
  lockstep::Fill(recent, times->mutable_recent());
  *times->mutable_bucket() = {worker.took.counts().begin(), worker.took.counts().end()};
  times->set_bucket_sum(worker.took.sum());
}

void WorkTimes::Fill(v1::WatchRunReply* reply) const {
  v1::RunCounters& counters = *reply->mutable_counters();
  counters.set_steps(num_commits_);
  *counters.mutable_step_bounds() = {kStepBounds.begin(), kStepBounds.end()};
  *counters.mutable_step_bucket() = {steps_.counts().begin(), steps_.counts().end()};
  counters.set_step_seconds_sum(steps_.sum());
  *counters.mutable_contribution_bounds() = {kContributionBounds.begin(), kContributionBounds.end()};
  const std::vector<Pace> paces = Paces();
  size_t i = 0;
  for (const auto& entry : workers_) {
    const Worker& worker = entry.second;
    const Pace& pace = paces[i++];
    if (reply->worker_size() == kWorkersSent) break;
    v1::WorkerTimes& times = *reply->add_worker();
    times.set_session_id(ShortSessionId(entry.first));
    FillWorker(worker, &times);
    times.set_slow_factor(pace.factor);
    times.set_slow_seconds(absl::ToDoubleSeconds(pace.longer));
  }
  std::sort(reply->mutable_worker()->begin(), reply->mutable_worker()->end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
}

void WorkTimes::FillTimeLine(Cursor* cursor, v1::WatchRunReply* reply) const {
  const auto kept_arrivals = static_cast<int64_t>(arrivals_.size());
  for (int64_t i = std::max({cursor->contributions, num_arrivals_ - kept_arrivals, num_arrivals_ - kArrivalsSent});
       i < num_arrivals_; ++i) {
    const Arrival& arrival = arrivals_[static_cast<size_t>(i) % kArrivals];
    v1::Contribution& sent = *reply->add_contribution();
    sent.set_arrived(Seconds(arrival.time));
    sent.set_worker(*arrival.worker);
    sent.set_step(arrival.step);
    sent.set_first_slot(arrival.block.first);
    sent.set_slot_count(arrival.block.count);
    lockstep::Fill(DecodeStepTimes(arrival.times), sent.mutable_times());
    sent.set_token_seconds(absl::ToDoubleSeconds(arrival.took));
  }
  const auto kept_commits = static_cast<int64_t>(commits_.size());
  for (int64_t i = std::max({cursor->commits, num_commits_ - kept_commits, num_commits_ - kCommitsSent});
       i < num_commits_; ++i) {
    const Committed& commit = commits_[static_cast<size_t>(i) % kCommits];
    v1::Commit& sent = *reply->add_commit();
    sent.set_committed(Seconds(commit.time));
    sent.set_begun(Seconds(commit.begun));
    sent.set_step(commit.step);
  }
  *cursor = {num_arrivals_, num_commits_};
}

}  // namespace lockstep

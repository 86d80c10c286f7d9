#include "lockstep/server/chief/journal/step_history.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

// Adds `steps` steps, the last of which is `step`, to a point that they follow. An empty point becomes these steps.
void Extend(int64_t step, int64_t steps, int64_t time_ms, double loss, double slowest_seconds,
            v1::HistoryPoint* point) {
  const double sum = point->loss() * static_cast<double>(point->steps()) + loss * static_cast<double>(steps);
  steps += point->steps();
  point->set_loss(sum / static_cast<double>(steps));
  point->set_steps(steps);
  point->set_step(std::max(point->step(), step));
  point->set_time_ms(time_ms);
  point->set_slowest_seconds(std::max(point->slowest_seconds(), slowest_seconds));
}

}  // namespace

void StepHistory::Append(v1::HistoryPoint point) {
  points_.push_back(std::move(point));
  if (points_.size() < most_) return;
  std::vector<v1::HistoryPoint> merged;
  for (size_t i = 0; i + 1 < points_.size(); i += 2) {
    merged.push_back(points_[i]);
    const v1::HistoryPoint& next = points_[i + 1];
    Extend(next.step(), next.steps(), next.time_ms(), next.loss(), next.slowest_seconds(), &merged.back());
  }
  if (points_.size() % 2 == 1) merged.push_back(points_.back());
  points_ = std::move(merged);
  stride_ *= 2;
  ++version_;
}

void StepHistory::Add(int64_t step, int64_t time_ms, double loss, double seconds) {
  if (!open_) open_.emplace();
  Extend(step, 1, time_ms, loss, seconds, &*open_);
  if (open_->steps() < stride_) return;
  Append(*std::move(open_));
  open_.reset();
}

void StepHistory::AddPoint(const v1::HistoryPoint& point) {
  if (point.steps() <= 0 || point.step() < point.steps()) return;
  Rewind(point.step() - point.steps());
  Append(point);
  if (!point.has_loss()) points_.back().set_loss(std::numeric_limits<double>::quiet_NaN());
}

int64_t StepHistory::Rewind(int64_t step) {
  int64_t last = step;
  if (open_) last = std::max(last, open_->step());
  if (!points_.empty()) last = std::max(last, points_.back().step());
  if (open_ && open_->step() > step) open_.reset();
  if (last == step || points_.empty() || points_.back().step() <= step) return last - step;
  while (!points_.empty() && points_.back().step() > step) points_.pop_back();
  ++version_;
  return last - step;
}

}  // namespace lockstep

#include "lockstep/cli/page/run_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lockstep/common/report/json_message.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {
namespace {

constexpr size_t kEvents = 1000;
// More points than a chief ever has.
constexpr size_t kPoints = 4000;

std::string PointJson(const v1::HistoryPoint& point) {
  return absl::StrCat("[", point.step(), ",", point.steps(), ",", point.time_ms(), ",", JsonNumber(point.loss()), ",",
                      JsonNumber(point.slowest_seconds()), "]");
}

std::string EvaluationJson(const EvaluationPoint& point) {
  return absl::StrCat("{\"step\":", point.step, ",\"split\":", JsonString(point.split),
                      ",\"metric\":", JsonString(point.metric), ",\"value\":", JsonNumber(point.value), "}");
}

}  // namespace

RunView::RunView(Clock* clock, std::string master) : clock_(clock), master_(std::move(master)) {}

void RunView::OnConnected() {
  MutexLock lock(&mutex_);
  ++revision_;
  ++version_;
  points_.clear();
  events_.clear();
}

void RunView::OnReply(const v1::WatchRunReply& reply) {
  const absl::Time now = clock_->Now();
  MutexLock lock(&mutex_);
  ++revision_;
  if (absent_since_) absent_ += now - *absent_since_;
  absent_since_.reset();
  heard_ = now;
  over_.reset();
  if (last_ && last_->status().generation() != reply.status().generation()) ++restarts_;
  if (reply.new_history()) {
    ++version_;
    points_.clear();
  }
  for (const v1::HistoryPoint& point : reply.point()) {
    if (points_.size() < kPoints) points_.push_back(point);
  }
  for (const v1::EventRecord& event : reply.event()) {
    events_.push_back(event);
    events_.back().set_number(++num_events_);
    if (events_.size() > kEvents) events_.pop_front();
  }
  last_ = reply;
  last_->clear_point();
  last_->clear_event();
  last_->clear_contribution();
  last_->clear_commit();
}

void RunView::OnAbsent(const absl::Status& why) {
  const absl::Time now = clock_->Now();
  MutexLock lock(&mutex_);
  ++revision_;
  if (!absent_since_) absent_since_ = heard_.value_or(now);
  absent_why_ = why;
}

void RunView::OnOver(const absl::Status& how) {
  MutexLock lock(&mutex_);
  ++revision_;
  over_ = how;
  absent_since_.reset();
}

void RunView::SetEvaluations(std::vector<EvaluationPoint> evaluations) {
  MutexLock lock(&mutex_);
  ++revision_;
  evaluations_ = std::move(evaluations);
}

void RunView::SetDigest(std::string checkpoint, std::string digest) {
  MutexLock lock(&mutex_);
  ++revision_;
  digest_ = {std::move(checkpoint), std::move(digest)};
}

bool RunView::over() const {
  return over_.has_value() || (last_ && (last_->status().phase() == v1::RunStatus::FINISHED ||
                                         last_->status().phase() == v1::RunStatus::FAILED));
}

std::shared_ptr<const std::string> RunView::StateJson(const Cursor& cursor) const {
  MutexLock lock(&mutex_);
  for (const Kept& kept : kept_) {
    if (kept.revision == revision_ && kept.cursor.version == cursor.version && kept.cursor.points == cursor.points &&
        kept.cursor.event == cursor.event) {
      return kept.json;
    }
  }
  Kept& kept = kept_[next_kept_++ % kKept];
  kept = {revision_, cursor, std::make_shared<const std::string>(NewStateJson(cursor))};
  return kept.json;
}

std::string RunView::NewStateJson(const Cursor& cursor) const {
  const absl::Time now = clock_->Now();
  const bool reset = cursor.version != version_ || cursor.points > points_.size();
  std::string json = absl::StrCat("{\"version\":", version_, ",\"reset\":", reset ? "true" : "false",
                                  ",\"master\":", JsonString(master_), ",\"over\":", over() ? "true" : "false",
                                  ",\"now_ms\":", absl::ToUnixMillis(clock_->WallTime()));
  if (over_ && !over_->ok()) absl::StrAppend(&json, ",\"end\":", JsonString(over_->message()));
  if (absent_since_ && !over()) {
    absl::StrAppend(&json, ",\"absent_seconds\":", JsonNumber(absl::ToDoubleSeconds(now - *absent_since_)),
                    ",\"absent_why\":", JsonString(absent_why_.message()));
  }
  absl::StrAppend(&json, ",\"restarts\":", restarts_, ",\"points\":[");
  for (size_t i = reset ? 0 : cursor.points; i < points_.size(); ++i) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", PointJson(points_[i]));
  }
  absl::StrAppend(&json, "],\"num_points\":", points_.size(), ",\"events\":[");
  for (const v1::EventRecord& event : events_) {
    if (!reset && event.number() <= cursor.event) continue;
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", JsonMessage(event));
  }
  absl::StrAppend(&json, "],\"last_event\":", num_events_, ",\"evaluations\":[");
  for (const EvaluationPoint& point : evaluations_) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", EvaluationJson(point));
  }
  absl::StrAppend(&json, "]");
  if (!digest_.second.empty()) {
    absl::StrAppend(&json, ",\"digest\":{\"checkpoint\":", JsonString(digest_.first),
                    ",\"sha256\":", JsonString(digest_.second), "}");
  }
  JsonMessageOptions options;
  options.defaults = true;
  if (last_) absl::StrAppend(&json, ",\"last\":", JsonMessage(*last_, options));
  return json + "}";
}

std::string RunView::StatusJson() const {
  JsonMessageOptions options;
  options.defaults = true;
  MutexLock lock(&mutex_);
  return JsonMessage(last_ ? last_->status() : v1::RunStatus(), options) + "\n";
}

RunView::Facts RunView::facts() const {
  const absl::Time now = clock_->Now();
  MutexLock lock(&mutex_);
  Facts facts;
  facts.last = last_;
  facts.answers = last_ && !absent_since_ && !over_;
  facts.restarts = restarts_;
  facts.absent = absent_ + (absent_since_ ? now - *absent_since_ : absl::ZeroDuration());
  return facts;
}

std::string RunView::checkpoint() const {
  MutexLock lock(&mutex_);
  return last_ ? last_->status().checkpoint() : "";
}

std::string RunView::logdir() const {
  MutexLock lock(&mutex_);
  return last_ ? last_->status().logdir() : "";
}

}  // namespace lockstep

#include "lockstep/server/chief/journal/run_journal.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "google/protobuf/util/json_util.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/report/json_message.h"

namespace lockstep {
namespace {

constexpr size_t kMaxLines = 4096;
// Number of lines in the file beyond which it is replaced with what is in memory.
constexpr int64_t kMaxFileLines = 50000;
constexpr size_t kMaxLineBytes = 64 << 10;
// Upper bounds of the histogram buckets of saves, in seconds.
constexpr std::array<double, 7> kSaveBounds = {0.01, 0.1, 0.5, 2.5, 10, 60, 300};

std::string LineOf(const v1::HistoryPoint& point) {
  v1::JournalLine line;
  *line.mutable_point() = point;
  return JsonMessage(line) + "\n";
}

std::string LineOf(const v1::EventRecord& event) {
  v1::JournalLine line;
  *line.mutable_event() = event;
  return JsonMessage(line) + "\n";
}

// Returns a sentence that describes the event, even for kinds that are not logged, or an empty string for kinds that
// mean nothing to users. The sentence may contain a path, and therefore bytes that are not UTF-8.
std::string SentenceOf(const RunEvent& event) {
  switch (event.kind) {
    case RunEvent::kStarted:
      return absl::StrCat("the chief started on ", event.worker);
    case RunEvent::kRestored:
      return absl::StrCat("the run continues at step ", event.step,
                          event.text.empty() ? "" : absl::StrCat(" from ", event.text),
                          event.count > 0 ? absl::StrCat("; ", event.count, " steps are computed again") : "");
    case RunEvent::kDamaged:
      return absl::StrCat(event.text, " is damaged and skipped: ", event.status.message());
    case RunEvent::kLeft:
      return absl::StrCat(event.worker, " left; workers still connected: ", event.count);
    case RunEvent::kFinished:
      return absl::StrCat("the run is finished at step ", event.step);
    case RunEvent::kLogdirLost:
      return absl::StrCat("another chief has the logdir: ", event.status.message());
    default:
      return ToString(event);
  }
}

v1::EventRecord::Severity RecordSeverity(RunEvent::Kind kind) {
  switch (SeverityOf(kind)) {
    case EventSeverity::kInfo:
      return v1::EventRecord::INFO;
    case EventSeverity::kWarning:
      return v1::EventRecord::WARNING;
    case EventSeverity::kError:
      break;
  }
  return v1::EventRecord::ERROR;
}

// Returns the sentence as UTF-8, because Protobuf rejects other strings.
std::string Utf8SentenceOf(const RunEvent& event) {
  const std::string sentence = SentenceOf(event);
  return ToUtf8(sentence, sentence.size());
}

// Calls the functions with the points and events that the text's lines hold.
template <typename OnPoint, typename OnEvent>
void ReadLines(absl::string_view text, const OnPoint& on_point, const OnEvent& on_event) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  for (const absl::string_view json : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    v1::JournalLine line;
    if (json.size() > kMaxLineBytes) continue;
    if (!google::protobuf::util::JsonStringToMessage(std::string(json), &line, options).ok()) continue;
    if (line.has_point()) on_point(line.point());
    if (line.has_event()) on_event(line.event());
  }
}

// Returns the contents of the file, or an empty string if there is no file.
absl::StatusOr<std::string> ReadBounded(FileSystem* fs, const std::string& path) {
  const auto file = fs->NewRandomAccessFile(path);
  if (absl::IsNotFound(file.status())) return std::string();
  RETURN_IF_ERROR(file.status());
  if ((*file)->size() > RunJournal::kMaxFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", (*file)->size(), " bytes; at most ", RunJournal::kMaxFileBytes, " are read"));
  }
  std::string text((*file)->size(), '\0');
  RETURN_IF_ERROR((*file)->Read(0, text.size(), text.data()));
  return text;
}

}  // namespace

RunJournal::RunJournal(const Options& options)
    : options_(options), started_ms_(NowMs()), last_commit_(options.clock->Now()) {
  *counters_.mutable_save_bounds() = {kSaveBounds.begin(), kSaveBounds.end()};
  counters_.mutable_save_bucket()->Resize(static_cast<int>(kSaveBounds.size()) + 1, 0);
}

RunJournal::~RunJournal() {
  task_.reset();
  Write();
}

absl::Status RunJournal::Open(const std::string& path) {
  absl::StatusOr<std::string> text = ReadBounded(options_.fs, path);
  if (absl::IsResourceExhausted(text.status())) {
    LOG(WARNING) << text.status().message() << "; the history begins again";
    text = "";
  }
  RETURN_IF_ERROR(text.status());
  {
    MutexLock lock(&mutex_);
    Read(*text);
  }
  path_ = path;
  RETURN_IF_ERROR(Replace());
  MutexLock lock(&mutex_);
  opened_ = true;
  PeriodicTask::Options periodic;
  periodic.clock = options_.clock;
  periodic.executor = options_.executor;
  periodic.name = "journal";
  periodic.period = options_.period;
  periodic.first_at_once = false;
  task_ = std::make_unique<PeriodicTask>(periodic, [this] { Write(); });
  return absl::OkStatus();
}

void RunJournal::Read(const std::string& text) {
  ReadLines(
      text,
      [this](const v1::HistoryPoint& point) {
        mutex_.AssertHeld();
        history_.AddPoint(point);
      },
      [this](const v1::EventRecord& event) {
        mutex_.AssertHeld();
        num_events_ = std::max(num_events_ + 1, event.number());
        events_.push_back(event);
        events_.back().set_number(num_events_);
        if (events_.size() > kEvents) events_.pop_front();
        counters_.set_recomputed_steps(counters_.recomputed_steps() + event.recomputed_steps());
        if (counters_.run_started_ms() == 0) counters_.set_run_started_ms(event.time_ms());
      });
}

absl::Status RunJournal::Replace() {
  std::deque<v1::EventRecord> events;
  std::vector<v1::HistoryPoint> points;
  {
    MutexLock lock(&mutex_);
    events = events_;
    points = history_.points();
    file_lines_ = static_cast<int64_t>(events_.size() + history_.points().size());
    written_points_ = history_.points().size();
    written_version_ = history_.version();
    lines_.clear();
    num_lines_ = 0;
  }
  // A short step takes less time than these lines, so the lock is not held.
  std::string text;
  for (const v1::EventRecord& event : events) text += LineOf(event);
  for (const v1::HistoryPoint& point : points) text += LineOf(point);
  const std::string next = path_ + ".tmp";
  ASSIGN_OR_RETURN(auto file, options_.fs->NewWritableFile(next));
  RETURN_IF_ERROR(file->Append(text));
  RETURN_IF_ERROR(file->Flush());
  RETURN_IF_ERROR(options_.fs->Rename(next, path_));
  file_ = std::move(file);
  return absl::OkStatus();
}

void RunJournal::Write() {
  if (file_ == nullptr) return;
  std::string lines;
  std::vector<v1::HistoryPoint> points;
  {
    MutexLock lock(&mutex_);
    if (written_version_ != history_.version()) {
      // Points were merged or dropped. Those in the file remain valid, or are repeated by later ones.
      written_version_ = history_.version();
      written_points_ = history_.points().size();
    }
    points.assign(history_.points().begin() + static_cast<int64_t>(written_points_), history_.points().end());
    written_points_ = history_.points().size();
    lines = std::exchange(lines_, std::string());
    file_lines_ += static_cast<int64_t>(std::exchange(num_lines_, 0) + points.size());
  }
  for (const v1::HistoryPoint& point : points) lines += LineOf(point);
  if (lines.empty()) return;
  absl::Status status = file_->Append(lines);
  if (status.ok()) status = file_->Flush();
  if (status.ok() && file_lines_ > kMaxFileLines) status = Replace();
  LOG_IF(WARNING, !status.ok() && !failing_) << "the history is not written: " << status.message();
  failing_ = !status.ok();
}

void RunJournal::AddLine(const std::string& line) {
  if (num_lines_ >= kMaxLines) return;
  lines_ += line;
  ++num_lines_;
}

void RunJournal::Add(v1::EventRecord record) {
  record.set_number(++num_events_);
  record.set_generation(options_.generation);
  if (counters_.run_started_ms() == 0) counters_.set_run_started_ms(record.time_ms());
  if (opened_) AddLine(LineOf(record));
  events_.push_back(std::move(record));
  if (events_.size() > kEvents) events_.pop_front();
}

void RunJournal::Count(const RunEvent& event) {
  v1::RunCounters& counters = counters_;
  switch (event.kind) {
    case RunEvent::kLeaseEnded:
      counters.set_lease_expirations(counters.lease_expirations() + 1);
      return;
    case RunEvent::kJoined:
      counters.set_sessions_opened(counters.sessions_opened() + 1);
      return;
    case RunEvent::kRefused:
      counters.set_sessions_refused(counters.sessions_refused() + 1);
      return;
    case RunEvent::kBlockDropped:
    case RunEvent::kPlaceTaken:
      counters.set_contributions_dropped(counters.contributions_dropped() + 1);
      return;
    case RunEvent::kDamaged:
      counters.set_checkpoints_damaged(counters.checkpoints_damaged() + 1);
      return;
    case RunEvent::kSaveFailed:
      counters.set_checkpoint_failures(counters.checkpoint_failures() + 1);
      return;
    case RunEvent::kSaved: {
      counters.set_checkpoints_saved(counters.checkpoints_saved() + 1);
      counters.set_checkpoint_step(event.step);
      counters.set_checkpoint_time_ms(NowMs());
      counters.set_checkpoint_bytes(event.bytes);
      counters.set_last_save_seconds(absl::ToDoubleSeconds(event.time));
      counters.set_save_seconds_sum(counters.save_seconds_sum() + counters.last_save_seconds());
      const auto bound = std::lower_bound(kSaveBounds.begin(), kSaveBounds.end(), counters.last_save_seconds());
      ++*counters.mutable_save_bucket()->Mutable(static_cast<int>(bound - kSaveBounds.begin()));
      return;
    }
    default:
      return;
  }
}

void RunJournal::OnEvent(const RunEvent& event) {
  v1::EventRecord record;
  record.set_text(Utf8SentenceOf(event));
  if (record.text().empty()) return;
  record.set_time_ms(NowMs());
  record.set_kind(NameOf(event.kind));
  record.set_severity(RecordSeverity(event.kind));
  record.set_step(event.step);
  record.set_worker(event.worker);
  MutexLock lock(&mutex_);
  Count(event);
  Add(std::move(record));
}

void RunJournal::OnRestored(int64_t step, const std::string& checkpoint) {
  RunEvent event{RunEvent::kRestored, step, "", checkpoint};
  const int64_t now_ms = NowMs();
  MutexLock lock(&mutex_);
  event.count = history_.Rewind(step);
  last_commit_ = options_.clock->Now();
  counters_.set_recomputed_steps(counters_.recomputed_steps() + event.count);
  if (checkpoint.empty() && event.count == 0) return;
  v1::EventRecord record;
  record.set_text(Utf8SentenceOf(event));
  record.set_time_ms(now_ms);
  record.set_kind(NameOf(event.kind));
  record.set_step(step);
  record.set_recomputed_steps(event.count);
  Add(std::move(record));
}

void RunJournal::OnCommitted(int64_t step, double loss, absl::Time time) {
  const int64_t now_ms = NowMs();
  MutexLock lock(&mutex_);
  history_.Add(step, now_ms, loss, absl::ToDoubleSeconds(time - last_commit_));
  last_commit_ = std::max(last_commit_, time);
}

void RunJournal::Fill(Cursor* cursor, v1::WatchRunReply* reply) const {
  MutexLock lock(&mutex_);
  if (cursor->version != history_.version()) {
    reply->set_new_history(true);
    cursor->version = history_.version();
    cursor->points = 0;
  }
  for (; cursor->points < history_.points().size(); ++cursor->points) {
    *reply->add_point() = history_.points()[cursor->points];
  }
  for (const v1::EventRecord& event : events_) {
    if (event.number() > cursor->event) *reply->add_event() = event;
  }
  cursor->event = num_events_;
}

void RunJournal::FillCounters(v1::WatchRunReply* reply) const {
  reply->set_now_ms(NowMs());
  MutexLock lock(&mutex_);
  reply->mutable_counters()->MergeFrom(counters_);
  reply->mutable_counters()->set_started_ms(started_ms_);
}

absl::StatusOr<RecordedJournal> ReadJournal(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadBounded(fs, path));
  RecordedJournal journal;
  ReadLines(
      text, [&journal](const v1::HistoryPoint& point) { journal.history.AddPoint(point); },
      [&journal](const v1::EventRecord& event) {
        journal.events.push_back(event);
        if (journal.events.size() > RunJournal::kEvents) journal.events.pop_front();
      });
  return journal;
}

}  // namespace lockstep

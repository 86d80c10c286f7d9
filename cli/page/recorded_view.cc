#include "lockstep/cli/page/recorded_view.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/chief/journal/run_journal.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxEventFileBytes = 16 << 20;
constexpr uint64_t kMaxEventBytes = 1 << 20;
// Maximum number of points on a page.
constexpr size_t kMaxPoints = 2000;

v1::RunStatus::Phase PhaseOf(const v1::RunRecord& record, const RecordedJournal& journal) {
  if (record.finished()) return v1::RunStatus::FINISHED;
  if (!journal.events.empty() && journal.events.back().kind() == "failed") return v1::RunStatus::FAILED;
  return v1::RunStatus::TRAINING;
}

// Adds the scalars of one event file.
void ReadEventFile(FileSystem* fs, const std::string& path, const std::string& split,
                   std::map<std::pair<std::string, int64_t>, EvaluationPoint>* points) {
  const auto reader = RecordReader::Open(fs, path, kMaxEventBytes);
  if (!reader.ok() || (*reader)->size() > kMaxEventFileBytes) return;
  std::string payload;
  for (uint64_t offset = 0;;) {
    const auto position = (*reader)->ReadAt(offset, &payload);
    if (!position.ok()) return;
    offset = position->next;
    v1::Event event;
    if (!event.ParseFromString(payload)) continue;
    for (const v1::Summary::Value& value : event.summary().value()) {
      if (value.value_case() != v1::Summary::Value::kSimpleValue) continue;
      EvaluationPoint point{event.step(), split, value.tag(), value.simple_value()};
      (*points)[{absl::StrCat(split, "/", value.tag()), event.step()}] = std::move(point);
    }
  }
}

}  // namespace

absl::StatusOr<v1::WatchRunReply> ReadRecordedRun(FileSystem* fs, const std::string& logdir) {
  ASSIGN_OR_RETURN(const auto record, ReadRunRecord(fs, logdir));
  if (!record) return absl::NotFoundError(absl::StrCat("there is no run in ", logdir));
  ASSIGN_OR_RETURN(const RecordedJournal journal, ReadJournal(fs, JoinPath(logdir, RunJournal::kFileName)));
  ASSIGN_OR_RETURN(const auto checkpoint, LatestCheckpoint(fs, logdir));
  v1::WatchRunReply reply;
  v1::RunStatus& status = *reply.mutable_status();
  const config::v1::TrainingConfig& training = record->config().training();
  status.set_phase(PhaseOf(*record, journal));
  status.set_total_steps(training.steps());
  status.set_replicas_to_aggregate(training.replicas_to_aggregate());
  status.set_policy(PolicyName(training));
  status.set_examples_per_step(record->config().input().batch_size() * training.replicas_to_aggregate());
  status.set_logdir(logdir);
  status.set_run_id(record->run_id());
  *status.mutable_build() = record->build();
  if (checkpoint) {
    status.set_checkpoint(*checkpoint);
    if (const auto step = StepOfCheckpoint(*checkpoint)) status.set_global_step(*step);
  }
  reply.set_new_history(true);
  for (const v1::HistoryPoint& point : journal.history.points()) *reply.add_point() = point;
  if (reply.point_size() > 0) {
    const v1::HistoryPoint& last = reply.point(reply.point_size() - 1);
    status.set_global_step(std::max(status.global_step(), last.step()));
    status.set_loss(last.loss());
  }
  v1::RunCounters& counters = *reply.mutable_counters();
  for (const v1::EventRecord& event : journal.events) {
    *reply.add_event() = event;
    status.set_generation(std::max(status.generation(), event.generation()));
    counters.set_recomputed_steps(counters.recomputed_steps() + event.recomputed_steps());
    if (event.kind() == "failed") status.set_message(event.text());
    if (event.kind() == "chief_started") status.set_host(event.worker());
    if (event.kind() == "saved") counters.set_checkpoints_saved(counters.checkpoints_saved() + 1);
  }
  return reply;
}

std::vector<EvaluationPoint> ReadEvaluations(FileSystem* fs, const std::string& logdir) {
  std::map<std::pair<std::string, int64_t>, EvaluationPoint> points;
  const auto names = fs->ListDirectory(logdir);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    if (name != "eval" && !absl::StartsWith(name, "eval_")) continue;
    const std::string split = name == "eval" ? "evaluation" : name.substr(5);
    const std::string directory = JoinPath(logdir, name);
    const auto files = fs->ListDirectory(directory);
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      if (absl::StrContains(file, "tfevents")) ReadEventFile(fs, JoinPath(directory, file), split, &points);
    }
  }
  std::vector<EvaluationPoint> sorted;
  for (auto& entry : points) sorted.push_back(std::move(entry.second));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  if (sorted.size() > kMaxPoints) sorted.erase(sorted.begin(), sorted.end() - static_cast<std::ptrdiff_t>(kMaxPoints));
  return sorted;
}

absl::StatusOr<std::string> DigestOfCheckpoint(FileSystem* fs, const std::string& prefix, uint64_t most_bytes) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->ListDirectory(std::string(Dirname(prefix))));
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, absl::StrCat(std::string(Basename(prefix)), ".data-"))) continue;
    ASSIGN_OR_RETURN(const auto file, fs->NewRandomAccessFile(JoinPath(Dirname(prefix), name)));
    bytes += file->size();
  }
  if (bytes > most_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(prefix, " has ", bytes, " bytes; at most ", most_bytes, " are read for a digest"));
  }
  ASSIGN_OR_RETURN(const auto reader, OpenTensors(fs, prefix));
  return CheckpointDigest(*reader);
}

}  // namespace lockstep

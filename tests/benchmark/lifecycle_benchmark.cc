#include "tests/benchmark/lifecycle_benchmark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/quantity.h"
#include "common/base/status_macros.h"
#include "common/io/file_system.h"
#include "tests/benchmark/exchange.h"
#include "tests/benchmark/process_group.h"
#include "tests/benchmark/spread.h"
#include "tests/benchmark/training_exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(4);
constexpr int kImages = 2048;
constexpr int kStepsBetweenSaves = 10;
// Between two contributions, for the peak of memory: much more than one takes.
constexpr absl::Duration kStagger = absl::Milliseconds(400);
constexpr int kContributors = 4;
// The bars: steps a second while a checkpoint is written; contributions and bytes beyond parameters and slots.
constexpr double kSavingBar = 0.965;
constexpr double kContributionsBar = 3;
constexpr double kFixedBytesBar = 64 << 20;

TrainingSpec TrainingOf(const std::string& directory, std::vector<int64_t> hidden) {
  TrainingSpec training;
  training.hidden = std::move(hidden);
  training.images = absl::StrCat(directory, "/images");
  training.labels = absl::StrCat(directory, "/labels");
  return training;
}

struct Commit {
  absl::Time time;
  int64_t step = 0;
};

// A checkpoint, from the commit that it holds until it is on the disk.
struct Save {
  absl::Time begin, end;
};

// What was seen of a run that saves every kStepsBetweenSaves steps.
struct Timeline {
  std::vector<Commit> commits;
  std::vector<Save> saves;
};

absl::StatusOr<Timeline> Watch(ClusterProcesses* cluster, int saves) {
  Timeline timeline;
  std::string checkpoint;
  RETURN_IF_ERROR(cluster->Await([&](const RunStatus& status) {
    const absl::Time now = absl::Now();
    if (status.global_step() > 0 && (timeline.commits.empty() || timeline.commits.back().step < status.global_step()))
      timeline.commits.push_back({now, status.global_step()});
    if (status.checkpoint() != checkpoint) {
      checkpoint = status.checkpoint();
      for (const Commit& commit : timeline.commits) {
        if (absl::EndsWith(checkpoint, absl::StrCat("-", commit.step))) timeline.saves.push_back({commit.time, now});
      }
    }
    // Half a period more, so that steps without a save follow the last one.
    return timeline.saves.size() == static_cast<size_t>(saves) &&
           status.global_step() % kStepsBetweenSaves >= kStepsBetweenSaves - 2;
  }));
  return timeline;
}

// For each save the part of the steps of that time that was done all the same: 1 - (what the steps that it overlapped
// took beyond the median of the others) / (its time). Empty when there are no others: so small a model saves all the
// time.
std::vector<double> StepsWhileSaving(const Timeline& timeline) {
  struct Interval {
    absl::Time begin;
    double per_step, steps;
  };
  std::vector<Interval> intervals;
  for (size_t i = 1; i < timeline.commits.size(); ++i) {
    const auto steps = static_cast<double>(timeline.commits[i].step - timeline.commits[i - 1].step);
    const absl::Time begin = timeline.commits[i - 1].time;
    intervals.push_back({begin, absl::ToDoubleSeconds(timeline.commits[i].time - begin) / steps, steps});
  }
  const auto overlaps = [](const Interval& interval, const Save& save) {
    return interval.begin >= save.begin && interval.begin < save.end;
  };
  std::vector<double> undisturbed;
  for (const Interval& interval : intervals) {
    if (interval.begin < timeline.saves.front().begin) continue;
    if (std::none_of(timeline.saves.begin(), timeline.saves.end(),
                     [&](const Save& save) { return overlaps(interval, save); })) {
      undisturbed.push_back(interval.per_step);
    }
  }
  if (undisturbed.empty()) return {};
  const double usual = SpreadOf(undisturbed).median();
  std::vector<double> ratios;
  for (const Save& save : timeline.saves) {
    double cost = 0;
    for (const Interval& interval : intervals) {
      if (overlaps(interval, save)) cost += (interval.per_step - usual) * interval.steps;
    }
    ratios.push_back(1 - cost / absl::ToDoubleSeconds(save.end - save.begin));
  }
  return ratios;
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time begin = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

// What the disk takes by itself.
double BareWriteSeconds(const std::string& path, size_t bytes) {
  const std::string piece(8 << 20, 'x');
  const double seconds = SecondsOf([&] {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (size_t at = 0; at < bytes;) {
      const ssize_t put = write(fd, piece.data(), std::min(piece.size(), bytes - at));
      if (put <= 0) break;
      at += static_cast<size_t>(put);
    }
    fsync(fd);
    close(fd);
  });
  unlink(path.c_str());
  return seconds;
}

double BareReadSeconds(const std::string& path) {
  std::string piece(8 << 20, '\0');
  return SecondsOf([&] {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (read(fd, piece.data(), piece.size()) > 0) {
    }
    close(fd);
  });
}

// The only data file in the logdir, as one checkpoint is kept.
absl::StatusOr<std::string> DataFileIn(const std::string& logdir) {
  ASSIGN_OR_RETURN(const auto names, FileSystem::Real()->ListDirectory(logdir));
  for (const std::string& name : names) {
    if (absl::StrContains(name, ".data-") && !absl::EndsWith(name, ".tmp")) return JoinPath(logdir, name);
  }
  return absl::NotFoundError(absl::StrCat("no checkpoint in ", logdir));
}

struct SavingResult {
  std::vector<double> save, steps, bare_write, restore, bare_read;
  double checkpoint_bytes = 0, chief_peak = 0, worker_peak = 0;

  // To and from the numbers that a process hands over.
  static constexpr int kSeries = 5;
  std::vector<double>* series(int i) {
    std::vector<double>* const all[] = {&save, &steps, &bare_write, &restore, &bare_read};
    return all[i];
  }
};

ClusterProcesses::Options SavingCluster(const LifecycleBenchmarkOptions& options) {
  ClusterProcesses::Options cluster;
  cluster.programs = options.programs;
  cluster.directory = options.directory;
  cluster.logdir = JoinPath(options.directory, "logdir");
  cluster.config = TrainingConfig(TrainingOf(options.directory, {options.saved_units, options.saved_units}), 1);
  cluster.config.mutable_optimizer()->mutable_adam();
  cluster.config.mutable_checkpoint()->set_every_seconds(0);
  cluster.config.mutable_checkpoint()->set_every_steps(kStepsBetweenSaves);
  cluster.config.mutable_checkpoint()->set_keep(1);
  return cluster;
}

absl::StatusOr<std::vector<double>> RunSaving(const LifecycleBenchmarkOptions& options) {
  ClusterProcesses::Options cluster_options = SavingCluster(options);
  SavingResult result;
  ASSIGN_OR_RETURN(auto cluster, ClusterProcesses::Start(cluster_options));
  ASSIGN_OR_RETURN(const Timeline timeline, Watch(cluster.get(), options.repetitions));
  result.chief_peak = PeakBytesOf(cluster->chief());
  result.worker_peak = PeakBytesOf(cluster->worker(0));
  cluster.reset();
  for (const Save& save : timeline.saves) result.save.push_back(absl::ToDoubleSeconds(save.end - save.begin));
  result.steps = StepsWhileSaving(timeline);
  if (result.steps.empty()) result.steps.assign(options.repetitions, std::numeric_limits<double>::quiet_NaN());
  ASSIGN_OR_RETURN(const std::string data, DataFileIn(cluster_options.logdir));
  ASSIGN_OR_RETURN(const auto file, FileSystem::Real()->NewRandomAccessFile(data));
  result.checkpoint_bytes = static_cast<double>(file->size());
  cluster_options.workers = 0;
  for (int i = 0; i < options.repetitions; ++i) {
    // The chief listens when the checkpoint is restored.
    absl::Status status;
    result.restore.push_back(SecondsOf([&] { status = ClusterProcesses::Start(cluster_options).status(); }));
    RETURN_IF_ERROR(status);
    result.bare_read.push_back(BareReadSeconds(data));
    result.bare_write.push_back(BareWriteSeconds(JoinPath(options.directory, "bare"), file->size()));
  }
  std::vector<double> numbers = {result.checkpoint_bytes, result.chief_peak, result.worker_peak};
  for (int i = 0; i < SavingResult::kSeries; ++i) {
    numbers.insert(numbers.end(), result.series(i)->begin(), result.series(i)->end());
  }
  return numbers;
}

Row* AddRow(const std::string& group, const std::string& what, const std::string& unit, Report* report) {
  Row* const row = report->add_row();
  row->set_group(group);
  row->set_what(what);
  row->set_unit(unit);
  return row;
}

void ReportSaving(SavingResult result, Report* report) {
  const std::string size = BytesText(static_cast<int64_t>(result.checkpoint_bytes));
  Row* const save = AddRow("saving", absl::StrCat("save ", size), "s", report);
  save->set_against("bare write and fsync");
  Compare(result.save, result.bare_write, save);
  if (!std::isnan(result.steps[0])) {
    Row* const steps = AddRow("saving", absl::StrCat("steps while ", size, " is saved"), "of usual", report);
    steps->set_against("without saving");
    Compare(result.steps, std::vector<double>(result.steps.size(), 1.0), steps);
    steps->set_at_least(kSavingBar);
  }
  Row* const restore = AddRow("saving", absl::StrCat("start chief and restore ", size), "s", report);
  restore->set_against("bare read");
  Compare(result.restore, result.bare_read, restore);
  // Adam: parameters and two slots are what the checkpoint holds.
  const double expected = result.checkpoint_bytes / 1e6;
  for (const bool chief : {true, false}) {
    Row* const row =
        AddRow("memory", absl::StrCat(chief ? "chief" : "worker", " with Adam, saving"), "MB peak", report);
    row->set_against(chief ? "parameters x (1 + slots)" : "parameters");
    Compare({(chief ? result.chief_peak : result.worker_peak) / 1e6}, {chief ? expected : expected / 3}, row);
  }
}

}  // namespace

absl::Status MeasureSaving(const LifecycleBenchmarkOptions& options, Report* report) {
  WriteImages(options.directory, kImages);
  ASSIGN_OR_RETURN(const auto numbers, MeasureApart([&options] { return RunSaving(options); }, kLimit));
  SavingResult result;
  result.checkpoint_bytes = numbers[0];
  result.chief_peak = numbers[1];
  result.worker_peak = numbers[2];
  auto next = numbers.begin() + 3;
  for (int i = 0; i < SavingResult::kSeries; ++i) {
    result.series(i)->assign(next, next + options.repetitions);
    next += options.repetitions;
  }
  ReportSaving(result, report);
  return absl::OkStatus();
}

absl::Status MeasureStart(const LifecycleBenchmarkOptions& options, Report* report) {
  WriteImages(options.directory, kImages);
  const auto run = [&options]() -> absl::StatusOr<std::vector<double>> {
    ClusterProcesses::Options cluster;
    cluster.programs = options.programs;
    cluster.directory = options.directory;
    cluster.config = TrainingConfig(TrainingOf(options.directory, {512, 512}), 1);
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(const auto processes, ClusterProcesses::Start(cluster));
    const absl::Time listening = absl::Now();
    RETURN_IF_ERROR(processes->Await([](const RunStatus& status) { return status.global_step() > 0; }));
    return std::vector<double>{absl::ToDoubleSeconds(listening - begin), absl::ToDoubleSeconds(absl::Now() - begin)};
  };
  std::vector<double> chief, first_step;
  for (int i = 0; i < options.repetitions; ++i) {
    ASSIGN_OR_RETURN(const auto numbers, MeasureApart(run, kLimit));
    chief.push_back(numbers[0]);
    first_step.push_back(numbers[1]);
  }
  *AddRow("start", "chief listens", "s", report)->mutable_ours() = SpreadOf(chief);
  *AddRow("start", "first step of the MLP, chief and 1 worker", "s", report)->mutable_ours() = SpreadOf(first_step);
  return absl::OkStatus();
}

absl::Status MeasureMemory(const LifecycleBenchmarkOptions& options, Report* report) {
  ExchangeSpec spec;
  spec.workers = kContributors;
  VariableSpec* const variable = spec.model.add_variables();
  variable->set_name("w");
  variable->set_dtype(DT_FLOAT);
  variable->add_shape(options.memory_bytes / static_cast<int64_t>(sizeof(float)));
  variable->set_trainable(true);
  ASSIGN_OR_RETURN(const auto processes, ProcessGroup::Start(StaggeredExchange(kStagger), spec));
  ASSIGN_OR_RETURN(const auto timing, processes->Run(1, 2));
  const auto parameters = static_cast<double>(options.memory_bytes);
  // Momentum has one slot.
  const double beyond = timing.server_peak - 2 * parameters;
  Row* const row =
      AddRow("memory",
             absl::StrCat("chief, ", kContributors, " contributions of ", BytesText(options.memory_bytes), " in order"),
             "MB beyond", report);
  row->set_against("a contribution");
  Compare({beyond / 1e6}, {parameters / 1e6}, row);
  row->set_at_most(kContributionsBar + kFixedBytesBar / parameters);
  Row* const worker = AddRow("memory", absl::StrCat("worker, ", BytesText(options.memory_bytes)), "MB peak", report);
  worker->set_against("parameters");
  Compare({timing.worker_peak / 1e6}, {parameters / 1e6}, worker);
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

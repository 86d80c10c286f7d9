#include "lockstep/tests/benchmark/lifecycle_benchmark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/server/chief/checkpoint/checkpoint_writer.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/process_group.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"
#include "lockstep/tests/benchmark/spread.h"

namespace lockstep {
namespace benchmark {
namespace {

// Time limit. Four times as long as a save usually takes, because saves slow down on a busy machine.
constexpr absl::Duration kLimit = absl::Minutes(8);
constexpr int kImages = 2048;
// The steps before this one are slow, because all processes touch their memory for the first time.
constexpr int64_t kFirstUsualStep = 3;
// Time between two contributions while the peak memory is measured. Much longer than a contribution takes.
constexpr absl::Duration kStagger = absl::Milliseconds(400);
constexpr int kContributors = 4;
// The interval at which a worker's memory is sampled.
constexpr absl::Duration kMemoryPeriod = absl::Milliseconds(20);
// The number of bytes that the plain program reads at a time.
constexpr size_t kBareRead = 8 << 20;
// The bars (limits of the ratios). The first two apply to the steps per second while a checkpoint is written, and to
// the time to restore a checkpoint. The next three limit the chief's memory: the versions of parameters and optimizer
// state (one more while saving), the contributions, and a fixed number of bytes. The last one limits a worker's memory,
// as a multiple of the parameters: it allows for two arrays, the program, and messages that gRPC has read ahead.
constexpr double kSavingBar = 0.965;
constexpr double kRestoreBar = 2.5;
constexpr double kVersions = 2;
constexpr double kContributionsBar = 3;
constexpr double kFixedBytesBar = 64 << 20;
constexpr double kWorkerBar = 3;

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

// A save of a checkpoint, from the commit of its step until the checkpoint is on disk.
struct Save {
  absl::Time begin, end;
};

// The observed commits and saves of a run that saves when it starts and then every
// LifecycleBenchmarkOptions::between_saves.
struct Timeline {
  std::vector<Commit> commits;
  std::vector<Save> saves;
};

void Record(const v1::RunStatus& status, std::string* checkpoint, Timeline* timeline) {
  const absl::Time now = absl::Now();
  if (status.global_step() >= kFirstUsualStep &&
      (timeline->commits.empty() || timeline->commits.back().step < status.global_step())) {
    timeline->commits.push_back({now, status.global_step()});
  }
  if (status.checkpoint() == *checkpoint || timeline->commits.empty()) return;
  *checkpoint = status.checkpoint();
  int64_t saved = 0;
  if (!absl::SimpleAtoi(checkpoint->substr(checkpoint->rfind('-') + 1), &saved)) return;
  const auto holds = [saved](const Commit& commit) { return commit.step >= saved; };
  const auto commit = std::find_if(timeline->commits.begin(), timeline->commits.end(), holds);
  timeline->saves.push_back({commit->time, now});
}

// Runs until `saves` saves have been observed. Sets `worker_peak` to the maximum sampled memory of the worker.
absl::StatusOr<Timeline> Watch(ClusterProcesses* cluster, int saves, double* worker_peak) {
  Timeline timeline;
  std::string checkpoint;
  absl::Time next_look = absl::InfinitePast();
  // Waits for one save at a time, because Await's time limit is for one save.
  for (int i = 1; i <= saves; ++i) {
    RETURN_IF_ERROR(cluster->Await([&](const v1::RunStatus& status) {
      Record(status, &checkpoint, &timeline);
      if (absl::Now() >= next_look) {
        next_look = absl::Now() + kMemoryPeriod;
        *worker_peak = std::max(*worker_peak, OwnBytesOf(cluster->worker(0)));
      }
      return timeline.saves.size() == static_cast<size_t>(i);
    }));
  }
  return timeline;
}

// Returns the steps per second between the first and the last commit in [begin, end]; NaN if there are fewer than two
// commits.
double StepsPerSecond(const std::vector<Commit>& commits, absl::Time begin, absl::Time end) {
  const Commit *first = nullptr, *last = nullptr;
  for (const Commit& commit : commits) {
    if (commit.time < begin || commit.time > end) continue;
    if (first == nullptr) first = &commit;
    last = &commit;
  }
  if (first == last) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(last->step - first->step) / absl::ToDoubleSeconds(last->time - first->time);
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time begin = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

// Measures how long a plain program takes to write and sync a file.
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

// Measures how long a plain program takes to read the file into fresh memory, in huge pages if the kernel grants them.
// Excludes the time to free the memory, as does the chief's measurement.
double BareReadSeconds(const std::string& path, size_t bytes) {
  absl::optional<AlignedBuffer> memory;
  return SecondsOf([&] {
    memory.emplace(bytes);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (size_t at = 0; at < bytes;) {
      const ssize_t got = read(fd, memory->data() + at, std::min(kBareRead, bytes - at));
      if (got <= 0) break;
      at += static_cast<size_t>(got);
    }
    close(fd);
  });
}

// Measures how long a plain program takes to read the file through one small buffer, which shows the speed of the page
// cache.
double BareScanSeconds(const std::string& path) {
  std::string piece(kBareRead, '\0');
  return SecondsOf([&] {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (read(fd, piece.data(), piece.size()) > 0) {
    }
    close(fd);
  });
}

// Returns the only data file in the logdir, which holds a single checkpoint.
absl::StatusOr<std::string> DataFileIn(const std::string& logdir) {
  ASSIGN_OR_RETURN(const auto names, FileSystem::Real()->ListDirectory(logdir));
  for (const std::string& name : names) {
    if (absl::StrContains(name, ".data-") && !absl::EndsWith(name, ".tmp")) return JoinPath(logdir, name);
  }
  return absl::NotFoundError(absl::StrCat("no checkpoint in ", logdir));
}

struct SavingResult {
  // The measured series. `save` and `paced_save` are the seconds per save, with a waiting caller and during training.
  // `steps` and `usual_steps` are the steps per second while a save is written, and from then until the next save.
  std::vector<double> save, bare_write, restore, bare_read, bare_scan, paced_save, steps, usual_steps;
  double checkpoint_bytes = 0, chief_peak = 0, worker_peak = 0;

  // Gives access to all series by index, to pass their numbers to another process. Each of the first `kAwaited` series
  // has one number per repetition; each of the others has one number per save during training.
  static constexpr int kSeries = 8, kAwaited = 5;
  std::vector<double>* series(int i) {
    std::vector<double>* const all[] = {&save,      &bare_write, &restore, &bare_read,
                                        &bare_scan, &paced_save, &steps,   &usual_steps};
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
  cluster.config.mutable_checkpoint()->set_every_seconds(absl::ToDoubleSeconds(options.between_saves));
  cluster.config.mutable_checkpoint()->set_keep(1);
  return cluster;
}

// Trains and saves at the same time. Compares the steps per second during a save with those between two saves.
absl::Status RunTraining(const LifecycleBenchmarkOptions& options, SavingResult* result) {
  ASSIGN_OR_RETURN(auto cluster, ClusterProcesses::Start(SavingCluster(options)));
  ASSIGN_OR_RETURN(const Timeline timeline, Watch(cluster.get(), options.paced_saves, &result->worker_peak));
  result->chief_peak = PeakBytesOf(cluster->chief());
  for (size_t i = 0; i < timeline.saves.size(); ++i) {
    const Save& save = timeline.saves[i];
    const size_t after = std::max<size_t>(i, 1);
    result->paced_save.push_back(absl::ToDoubleSeconds(save.end - save.begin));
    result->steps.push_back(StepsPerSecond(timeline.commits, save.begin, save.end));
    result->usual_steps.push_back(
        StepsPerSecond(timeline.commits, timeline.saves[after - 1].end, timeline.saves[after].begin));
  }
  return absl::OkStatus();
}

// Measures saves for which the caller waits, alternating with plain writes of the same size.
absl::Status RunAwaitedSaves(const LifecycleBenchmarkOptions& options, SavingResult* result) {
  v1::ModelSpec model;
  v1::VariableSpec* const variable = model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->set_trainable(true);
  const auto bytes = static_cast<int64_t>(result->checkpoint_bytes);
  variable->add_shape(bytes / (3 * static_cast<int64_t>(sizeof(float))));  // Adam: a value and two slots
  config::v1::OptimizerConfig optimizer;
  optimizer.mutable_adam();
  ASSIGN_OR_RETURN(const auto store, VariableStore::Create(model, optimizer));
  store->Initialize(1);
  CheckpointWriter::Options writer_options;
  writer_options.fs = FileSystem::Real();
  writer_options.clock = Clock::Real();
  writer_options.checkpoints.directory = JoinPath(options.directory, "awaited");
  writer_options.checkpoints.max_to_keep = 1;
  RunEvents ignored;
  writer_options.events = &ignored;
  RETURN_IF_ERROR(writer_options.fs->CreateDirectory(writer_options.checkpoints.directory));
  ASSIGN_OR_RETURN(const auto checkpoint_writer, CheckpointWriter::Create(writer_options));
  for (int i = 0; i < options.repetitions; ++i) {
    VariableStore::Snapshot snapshot = store->TakeSnapshot();
    snapshot.step = i;
    absl::Status status;
    result->save.push_back(SecondsOf([&] {
      checkpoint_writer->Save(std::move(snapshot));
      status = checkpoint_writer->WaitUntilIdle();
    }));
    RETURN_IF_ERROR(status);
    result->bare_write.push_back(BareWriteSeconds(JoinPath(options.directory, "bare"), bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> RunSaving(const LifecycleBenchmarkOptions& options) {
  SavingResult result;
  RETURN_IF_ERROR(RunTraining(options, &result));
  ClusterProcesses::Options restored = SavingCluster(options);
  restored.workers = 0;
  ASSIGN_OR_RETURN(const std::string data, DataFileIn(restored.logdir));
  ASSIGN_OR_RETURN(const auto file, FileSystem::Real()->NewRandomAccessFile(data));
  result.checkpoint_bytes = static_cast<double>(file->size());
  for (int i = 0; i < options.repetitions; ++i) {
    // The chief starts to listen once the checkpoint is restored.
    absl::StatusOr<std::unique_ptr<ClusterProcesses>> chief;
    result.restore.push_back(SecondsOf([&] { chief = ClusterProcesses::Start(restored); }));
    RETURN_IF_ERROR(chief.status());
    chief->reset();
    result.bare_read.push_back(BareReadSeconds(data, file->size()));
    result.bare_scan.push_back(BareScanSeconds(data));
  }
  RETURN_IF_ERROR(RunAwaitedSaves(options, &result));
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
  *AddRow("saving", absl::StrCat("save ", size, " beside training"), "s", report)->mutable_ours() =
      SpreadOf(result.paced_save);
  const auto none = [](double rate) { return std::isnan(rate); };
  if (std::none_of(result.steps.begin(), result.steps.end(), none) &&
      std::none_of(result.usual_steps.begin(), result.usual_steps.end(), none)) {
    Row* const steps = AddRow("saving", absl::StrCat("steps while ", size, " is saved"), "steps/s", report);
    steps->set_against("without saving");
    Compare(result.steps, result.usual_steps, steps);
    steps->set_at_least(kSavingBar);
  }
  Row* const restore = AddRow("saving", absl::StrCat("start chief and restore ", size), "s", report);
  restore->set_against("bare read into fresh memory");
  Compare(result.restore, result.bare_read, restore);
  restore->set_at_most(kRestoreBar);
  Row* const scan = AddRow("saving", absl::StrCat("start chief and restore ", size), "s", report);
  scan->set_against("bare read into one small buffer");
  Compare(result.restore, result.bare_scan, scan);
  // With Adam, the checkpoint holds the parameters and two slots.
  const double expected = result.checkpoint_bytes / 1e6;
  for (const bool chief : {true, false}) {
    Row* const row =
        AddRow("memory", absl::StrCat(chief ? "chief" : "worker", " with Adam, saving"), "MB peak", report);
    row->set_against(chief ? "parameters x (1 + slots)" : "parameters");
    Compare({(chief ? result.chief_peak : result.worker_peak) / 1e6}, {chief ? expected : expected / 3}, row);
    // A contribution is as large as the parameters.
    const double contributions = kContributionsBar * expected / 3;
    row->set_at_most(chief ? kVersions + 1 + (contributions + kFixedBytesBar / 1e6) / expected : kWorkerBar);
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
    const int count = i < SavingResult::kAwaited ? options.repetitions : options.paced_saves;
    result.series(i)->assign(next, next + count);
    next += count;
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
    RETURN_IF_ERROR(processes->Await([](const v1::RunStatus& status) { return status.global_step() > 0; }));
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
  v1::VariableSpec* const variable = spec.model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->add_shape(options.memory_bytes / static_cast<int64_t>(sizeof(float)));
  variable->set_trainable(true);
  ASSIGN_OR_RETURN(const auto processes, ProcessGroup::Start(StaggeredExchange(kStagger), spec));
  ASSIGN_OR_RETURN(const auto timing, processes->Run(1, 2));
  const auto parameters = static_cast<double>(options.memory_bytes);
  // Momentum has one slot.
  const double beyond = timing.server_peak - kVersions * 2 * parameters;
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
  if (parameters > kFixedBytesBar) worker->set_at_most(kWorkerBar);  // otherwise the program itself dominates
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

#include "lockstep/cli/page/metrics_text.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lockstep {
namespace {

// A worker that has sent nothing for this long counts as silent.
constexpr double kSilentSeconds = 2;

using Labels = std::vector<std::pair<std::string, std::string>>;

// Writes metric families as text.
class MetricsWriter {
 public:
  // Begins a family; its samples follow.
  void Family(const std::string& name, const char* type, const char* help) {
    name_ = "lockstep_" + name;
    Begin(type, help);
  }
  // Begins a family that does not get the prefix "lockstep_", because other programs use its name too.
  void CommonFamily(const std::string& name, const char* type, const char* help) {
    name_ = name;
    Begin(type, help);
  }
  void Sample(double value, const Labels& labels = {}, const char* suffix = "") {
    absl::StrAppend(&text_, name_, suffix);
    const char* separator = "{";
    for (const auto& label : labels) {
      absl::StrAppend(&text_, separator, label.first, "=\"",
                      absl::StrReplaceAll(label.second, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
      separator = ",";
    }
    absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", Number(value), "\n");
  }
  void Gauge(const std::string& name, const char* help, double value) {
    Family(name, "gauge", help);
    Sample(value);
  }
  void Counter(const std::string& name, const char* help, double value) {
    Family(name, "counter", help);
    Sample(value);
  }
  template <typename Bounds, typename Counts>
  void Histogram(const Bounds& bounds, const Counts& counts, double sum, const Labels& labels = {}) {
    int64_t total = 0;
    for (int i = 0; i < counts.size(); ++i) {
      total += counts.Get(i);
      Labels with_bound = labels;
      with_bound.emplace_back("le", i < bounds.size() ? Number(bounds.Get(i)) : "+Inf");
      Sample(static_cast<double>(total), with_bound, "_bucket");
    }
    Sample(sum, labels, "_sum");
    Sample(static_cast<double>(total), labels, "_count");
  }
  std::string Take() { return std::move(text_); }

 private:
  void Begin(const char* type, const char* help) {
    absl::StrAppend(&text_, "# HELP ", name_, " ", help, "\n# TYPE ", name_, " ", type, "\n");
  }
  static std::string Number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return absl::StrFormat("%.15g", value);
  }

  std::string name_;
  std::string text_;
};

void WriteRun(const v1::WatchRunReply& last, MetricsWriter* out) {
  const v1::RunStatus& status = last.status();
  out->Family("build_info", "gauge", "The chief's build; always 1.");
  out->Sample(1, {{"version", status.build().version()},
                  {"revision", status.build().revision()},
                  {"arithmetic_version", absl::StrCat(status.build().arithmetic_version())},
                  {"wire_version", absl::StrCat(status.build().wire_version())},
                  {"instruction_set", status.build().instruction_set()}});
  out->Family("run_info", "gauge", "The run and its chief; always 1.");
  out->Sample(1, {{"run", status.run_id()}, {"host", status.host()}, {"policy", status.policy()}});
  out->Gauge("generation", "The number of the chief's incarnation.", static_cast<double>(status.generation()));
  out->Family("phase", "gauge", "1 for the phase of the run, 0 for the others.");
  for (const auto phase : {v1::RunStatus::WAITING_FOR_MODEL, v1::RunStatus::RESTORING, v1::RunStatus::TRAINING,
                           v1::RunStatus::FINISHED, v1::RunStatus::FAILED}) {
    out->Sample(status.phase() == phase ? 1 : 0, {{"phase", v1::RunStatus::Phase_Name(phase)}});
  }
  out->Gauge("global_step", "The number of updates of the variables.", static_cast<double>(status.global_step()));
  out->Gauge("target_step", "The global step at which the run ends; 0 if it has no bound.",
             static_cast<double>(status.total_steps()));
  if (status.has_loss()) out->Gauge("loss", "Mean loss of the last step.", status.loss());
  out->Gauge("learning_rate", "Learning rate of the last step.", status.learning_rate());
  if (status.has_gradient_norm()) {
    out->Gauge("gradient_norm", "Norm of the mean gradient of the last step with summaries.", status.gradient_norm());
  }
  out->Family("slot_metric", "gauge", "Mean of a metric over the slots of the last step that has some.");
  for (const v1::RunStatus::Metric& metric : status.metric()) out->Sample(metric.value(), {{"name", metric.name()}});
}

// Writes the bytes of one direction by their path.
void WriteBytes(const char* direction, int64_t all, int64_t sockets, int64_t rings, MetricsWriter* out) {
  out->Sample(static_cast<double>(all - sockets - rings), {{"direction", direction}, {"path", "tcp"}});
  out->Sample(static_cast<double>(sockets), {{"direction", direction}, {"path", "unix"}});
  out->Sample(static_cast<double>(rings), {{"direction", direction}, {"path", "ring"}});
}

// Writes the contributions of a RunStatus or WorkerStatus by their result.
template <typename Status>
void WriteContributions(const Status& status, const Labels& labels, MetricsWriter* out) {
  const std::pair<const char*, int64_t> counts[] = {{"accepted", status.accepted()},
                                                    {"duplicate", status.duplicate()},
                                                    {"stale", status.stale()},
                                                    {"rejected", status.rejected()}};
  for (const auto& [result, count] : counts) {
    Labels with_result = labels;
    with_result.emplace_back("result", result);
    out->Sample(static_cast<double>(count), with_result);
  }
}

void WriteSteps(const v1::WatchRunReply& last, MetricsWriter* out) {
  const v1::RunCounters& counters = last.counters();
  out->Counter("steps_total", "Steps that were committed since the chief started.",
               static_cast<double>(counters.steps()));
  out->Counter("skipped_steps_total", "Steps that changed nothing, because something was not finite.",
               static_cast<double>(last.status().skipped_steps()));
  out->Counter("recomputed_steps_total", "Steps that were computed again after a restart, in the whole run.",
               static_cast<double>(counters.recomputed_steps()));
  out->Counter("examples_total", "Examples in the committed steps.", static_cast<double>(counters.examples()));
  out->Family("step_duration_seconds", "histogram", "Time from one commit to the next.");
  if (counters.step_bucket_size() > 0) {
    out->Histogram(counters.step_bounds(), counters.step_bucket(), counters.step_seconds_sum());
  }
  out->Family("run_contributions_total", "counter", "Contributions of all workers since the chief started.");
  WriteContributions(last.status(), {}, out);
  out->Counter("backup_tokens_total", "Tokens for a slot that another worker computes, too.",
               static_cast<double>(counters.backup_tokens()));
  out->Counter("lease_expirations_total", "Tokens whose worker was silent for too long.",
               static_cast<double>(counters.lease_expirations()));
  out->Counter("sessions_opened_total", "Sessions that workers opened.",
               static_cast<double>(counters.sessions_opened()));
  out->Counter("sessions_refused_total", "Workers that were refused.",
               static_cast<double>(counters.sessions_refused()));
  out->Family("wire_bytes_total", "counter", "Bytes of all workers' streams, as the chief sees them.");
  WriteBytes("received", counters.bytes_received(), counters.unix_bytes_received(), counters.ring_bytes_received(),
             out);
  WriteBytes("sent", counters.bytes_sent(), counters.unix_bytes_sent(), counters.ring_bytes_sent(), out);
}

// The bounds of memory, and the admission of contributions that keeps them.
void WriteMemory(const v1::RunCounters& counters, MetricsWriter* out) {
  if (counters.memory_needed_bytes() > 0) {
    out->Family("memory_bytes", "gauge", "The chief's most memory for this model, and the memory of its machine.");
    out->Sample(static_cast<double>(counters.memory_needed_bytes()), {{"kind", "needed"}});
    out->Sample(static_cast<double>(counters.memory_limit_bytes()), {{"kind", "limit"}});
  }
  out->Family("admission_limit", "gauge", "Partial sums or staged contributions that the chief holds at most.");
  if (counters.max_partial_sums() > 0) {
    out->Sample(static_cast<double>(counters.max_partial_sums()), {{"kind", "partial_sums"}});
  }
  if (counters.max_staged_contributions() > 0) {
    out->Sample(static_cast<double>(counters.max_staged_contributions()), {{"kind", "staged_contributions"}});
  }
  out->Gauge("contributions_waiting", "Contributions that wait for memory.",
             static_cast<double>(counters.contributions_waiting()));
  out->Counter("contribution_waits_total", "Contributions that had to wait for memory.",
               static_cast<double>(counters.contribution_waits()));
  out->Counter("contributions_dropped_total", "Contributions that were dropped to make room for others.",
               static_cast<double>(counters.contributions_dropped()));
}

// The status and times of one worker. Sessions with the same name count as one worker.
struct WorkerSums {
  v1::WorkerStatus status;
  v1::WorkerTimes times;
};

std::map<std::string, WorkerSums> SumWorkers(const v1::WatchRunReply& last) {
  std::map<std::string, WorkerSums> workers;
  std::map<std::string, const v1::WorkerStatus*> by_name;
  for (const v1::WorkerStatus& worker : last.status().worker()) by_name[worker.name()] = &worker;
  // The result, like WatchRunReply.worker, has at most 200 entries, which limits the number of series.
  for (const v1::WorkerTimes& times : last.worker()) {
    WorkerSums& sums = workers[times.name()];
    sums.times = times;
    if (by_name.count(times.name()) > 0) sums.status = *by_name[times.name()];
  }
  return workers;
}

void WriteWorkers(const v1::WatchRunReply& last, MetricsWriter* out) {
  double computing = 0, waiting = 0, silent = 0;
  for (const v1::WorkerStatus& worker : last.status().worker()) {
    ++(worker.silent_seconds() > kSilentSeconds ? silent : worker.slot_count() > 0 ? computing : waiting);
  }
  out->Family("workers", "gauge", "Connected workers.");
  out->Sample(computing, {{"state", "computing"}});
  out->Sample(waiting, {{"state", "waiting"}});
  out->Sample(silent, {{"state", "silent"}});
  const std::map<std::string, WorkerSums> workers = SumWorkers(last);
  out->Family("contributions_total", "counter", "Contributions since the worker's stream opened.");
  for (const auto& [name, worker] : workers) WriteContributions(worker.status, {{"worker", name}}, out);
  out->Family("contribution_duration_seconds", "histogram", "Time from a token to its contribution.");
  for (const auto& [name, worker] : workers) {
    out->Histogram(last.counters().contribution_bounds(), worker.times.bucket(), worker.times.bucket_sum(),
                   {{"worker", name}});
  }
  out->Family("worker_phase_seconds_total", "counter", "Where a worker's time goes, as it reports it.");
  for (const auto& [name, worker] : workers) {
    const v1::PhaseSeconds& total = worker.times.total();
    out->Sample(total.batch(), {{"worker", name}, {"phase", "batch"}});
    out->Sample(total.compute(), {{"worker", name}, {"phase", "compute"}});
    out->Sample(total.send(), {{"worker", name}, {"phase", "send"}});
    out->Sample(total.wait(), {{"worker", name}, {"phase", "wait"}});
  }
  out->Family("worker_slow_factor", "gauge",
              "Time for a slot divided by that of the other workers; 0 if it is normal.");
  for (const auto& [name, worker] : workers) out->Sample(worker.times.slow_factor(), {{"worker", name}});
  out->Family("worker_silence_seconds", "gauge", "Time since the worker was last heard from.");
  for (const auto& [name, worker] : workers) out->Sample(worker.status.silent_seconds(), {{"worker", name}});
  out->Family("worker_wire_bytes_total", "counter", "Bytes of the worker's stream, as the chief sees them.");
  for (const auto& [name, worker] : workers) {
    out->Sample(static_cast<double>(worker.status.bytes_received()), {{"worker", name}, {"direction", "received"}});
    out->Sample(static_cast<double>(worker.status.bytes_sent()), {{"worker", name}, {"direction", "sent"}});
  }
}

void WriteCheckpoints(const v1::WatchRunReply& last, MetricsWriter* out) {
  const v1::RunCounters& counters = last.counters();
  if (counters.checkpoint_time_ms() > 0) {
    out->Gauge("checkpoint_step", "Step of the newest checkpoint that this chief saved.",
               static_cast<double>(counters.checkpoint_step()));
    out->Gauge("checkpoint_timestamp_seconds", "When it was saved.",
               static_cast<double>(counters.checkpoint_time_ms()) / 1000);
    out->Gauge("checkpoint_size_bytes", "Bytes of its variables.", static_cast<double>(counters.checkpoint_bytes()));
  }
  if (counters.checkpoint_period_seconds() > 0) {
    out->Gauge("checkpoint_period_seconds", "Time between two checkpoints, as configured.",
               counters.checkpoint_period_seconds());
  }
  out->Family("checkpoint_save_duration_seconds", "histogram", "Time that saves took.");
  if (counters.save_bucket_size() > 0) {
    out->Histogram(counters.save_bounds(), counters.save_bucket(), counters.save_seconds_sum());
  }
  out->Counter("checkpoint_failures_total", "Checkpoints that could not be saved.",
               static_cast<double>(counters.checkpoint_failures()));
  out->Counter("checkpoints_damaged_total", "Checkpoints that this chief has skipped because they are damaged.",
               static_cast<double>(counters.checkpoints_damaged()));
  if (!last.status().has_audit()) return;
  out->Counter("audit_compared_total", "Results that were compared with a second worker's.",
               static_cast<double>(last.status().audit().compared()));
  out->Counter("audit_mismatches_total", "Compared results that differed.",
               static_cast<double>(last.status().audit().differences()));
}

void WriteProcess(const v1::WatchRunReply& last, MetricsWriter* out) {
  const v1::RunCounters& counters = last.counters();
  out->Gauge("watchers", "Watchers of the chief.", static_cast<double>(counters.watchers()));
  out->Family("rpc_calls_total", "counter", "Calls that have ended, by method and status code.");
  for (const v1::RunCounters::Calls& calls : counters.calls()) {
    out->Sample(static_cast<double>(calls.count()), {{"method", calls.method()}, {"code", calls.code()}});
  }
  out->Counter("rpc_evictions_total", "Calls without a session that ended because there were too many.",
               static_cast<double>(counters.evicted_calls()));
  out->Counter("auth_denials_total", "Calls that were refused because of a certificate, a token or a role.",
               static_cast<double>(counters.denied_calls()));
  if (counters.certificate_expires_ms() > 0) {
    out->Gauge("certificate_expiry_timestamp_seconds", "When the chief's certificate expires.",
               static_cast<double>(counters.certificate_expires_ms()) / 1000);
  }
  out->CommonFamily("process_cpu_seconds_total", "counter", "Processor time of the chief.");
  out->Sample(counters.cpu_seconds());
  out->CommonFamily("process_resident_memory_bytes", "gauge", "Resident memory of the chief.");
  out->Sample(static_cast<double>(counters.resident_bytes()));
  out->CommonFamily("process_open_fds", "gauge", "Open files of the chief.");
  out->Sample(static_cast<double>(counters.open_files()));
  out->CommonFamily("process_start_time_seconds", "gauge", "When the chief started.");
  out->Sample(static_cast<double>(counters.started_ms()) / 1000);
}

}  // namespace

const char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

std::string MetricsText(const RunView::Facts& facts) {
  MetricsWriter out;
  out.Gauge("up", "1 while the chief answers.", facts.answers ? 1 : 0);
  out.Counter("chief_restarts_total", "Restarts of the chief that this page has seen.",
              static_cast<double>(facts.restarts));
  out.Counter("chief_down_seconds_total", "Time without an answer of the chief, as this page has seen it.",
              absl::ToDoubleSeconds(facts.absent));
  if (!facts.last) return out.Take();
  WriteRun(*facts.last, &out);
  WriteSteps(*facts.last, &out);
  WriteWorkers(*facts.last, &out);
  WriteMemory(facts.last->counters(), &out);
  WriteCheckpoints(*facts.last, &out);
  WriteProcess(*facts.last, &out);
  return out.Take();
}

}  // namespace lockstep

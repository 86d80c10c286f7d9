#include "lockstep/cli/report/run_status_text.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/report/json_message.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/report/text_table.h"

namespace lockstep {
namespace {

// A part of the progress line. Parts with the highest `expendable` are left out first.
struct Part {
  int expendable;
  std::string text;
};

std::string StepText(const v1::RunStatus& status) {
  // A run without a limit has no total number of steps.
  return status.total_steps() > 0 ? absl::StrCat(status.global_step(), "/", status.total_steps())
                                  : absl::StrCat(status.global_step());
}

bool KnowsRate(const v1::RunStatus& status) {
  return std::isfinite(status.steps_per_second()) && status.steps_per_second() > 0;
}

std::string RemainingText(const v1::RunStatus& status) {
  return absl::StrCat("ETA ", RemainingTimeText(absl::Seconds((status.total_steps() - status.global_step()) /
                                                              status.steps_per_second())));
}

std::string ExamplesText(const v1::RunStatus& status) {
  return absl::StrCat(QuantityText(status.steps_per_second() * status.examples_per_step()), " examples/s");
}

std::string LossText(const v1::RunStatus& status) { return absl::StrFormat("%.4g", status.loss()); }

std::vector<Part> TrainingParts(const v1::RunStatus& status) {
  std::vector<Part> parts = {{0, absl::StrCat("step ", StepText(status))}};
  if (status.has_loss()) parts.push_back({2, absl::StrCat("loss ", LossText(status))});
  if (KnowsRate(status)) {
    parts.push_back({3, absl::StrCat(QuantityText(status.steps_per_second()), " steps/s")});
    if (status.examples_per_step() > 0) parts.push_back({5, ExamplesText(status)});
  }
  parts.push_back({4, CountText(status.worker_size(), "worker")});
  if (KnowsRate(status) && status.worker_size() > 0 && status.total_steps() > 0) {
    parts.push_back({1, RemainingText(status)});
  }
  return parts;
}

std::vector<Part> Parts(const v1::RunStatus& status) {
  switch (status.phase()) {
    case v1::RunStatus::WAITING_FOR_MODEL:
      return {{0, "waiting for the first worker"}};
    case v1::RunStatus::RESTORING:
      return {{0, status.checkpoint().empty()
                      ? std::string("restoring")
                      : absl::StrCat("restoring ", std::string(Basename(status.checkpoint())))}};
    case v1::RunStatus::FINISHED:
      return {{0, absl::StrCat("finished at step ", StepText(status), status.message().empty() ? "" : ": ",
                               status.message())}};
    case v1::RunStatus::FAILED:
      return {{0, absl::StrCat("failed at step ", StepText(status), ": ", status.message())}};
    default:
      return TrainingParts(status);
  }
}

std::string Join(const std::vector<Part>& parts) {
  return absl::StrJoin(parts, "  ", [](std::string* out, const Part& part) { out->append(part.text); });
}

std::string PhaseText(v1::RunStatus::Phase phase) {
  switch (phase) {
    case v1::RunStatus::WAITING_FOR_MODEL:
      return "waiting for the first worker";
    case v1::RunStatus::RESTORING:
      return "restoring";
    case v1::RunStatus::TRAINING:
      return "training";
    case v1::RunStatus::FINISHED:
      return "finished";
    case v1::RunStatus::FAILED:
      return "failed";
    default:
      return absl::StrCat("phase ", static_cast<int>(phase));
  }
}

std::string VersionOf(const v1::BuildInfo& build) {
  return absl::StrCat(build.version(),
                      build.revision().empty() ? "" : absl::StrCat(" (revision ", build.revision(), ")"));
}

std::string BuildLine(const v1::RunStatus& status) {
  const v1::BuildInfo& build = status.build();
  return absl::StrCat(VersionOf(build), ", arithmetic version ", build.arithmetic_version(),
                      build.instruction_set().empty() ? "" : absl::StrCat(", ", build.instruction_set()),
                      status.host().empty() ? "" : absl::StrCat(", on ", status.host()));
}

std::string AuditLine(const v1::AuditStatus& audit) {
  return absl::StrCat(audit.compared(), " compared, ", audit.differences(), " different, ", audit.abandoned(),
                      " without a second copy, ", audit.missed(), " without a second worker");
}

// Returns, for example, "1200: 0-3" if the worker computes slots 0 to 3 of step 1200, or "1200: 57 of stream 2".
std::string TokenText(const v1::WorkerStatus& worker) {
  if (worker.slot_count() == 0) return "waits";
  if (worker.has_stream()) {
    return absl::StrCat(worker.step(), ": ", worker.position(), " of stream ", worker.stream());
  }
  const int64_t last = worker.first_slot() + worker.slot_count() - 1;
  return absl::StrCat(worker.step(), ": ", worker.first_slot(), worker.slot_count() > 1 ? absl::StrCat("-", last) : "",
                      worker.backup() ? " (copy)" : "");
}

std::string WorkerTable(const v1::RunStatus& status) {
  const bool streams = status.policy() == "FIRST_ARRIVALS" || status.policy() == "ASYNC";
  std::vector<TextTable::Column> columns = {{"WORKER"},
                                            {streams ? "STEP: BATCH" : "STEP: SLOTS"},
                                            {"LEASE", TextTable::kRight},
                                            {"LAST STEP", TextTable::kRight},
                                            {"SILENT", TextTable::kRight},
                                            {"ACCEPTED", TextTable::kRight},
                                            {"DUPLICATE", TextTable::kRight},
                                            {"REJECTED", TextTable::kRight},
                                            {"RECEIVED", TextTable::kRight},
                                            {"SENT", TextTable::kRight}};
  constexpr int kStaleColumn = 6;
  if (streams) columns.insert(columns.begin() + kStaleColumn, TextTable::Column{"STALE", TextTable::kRight});
  TextTable table(std::move(columns));
  for (const v1::WorkerStatus& worker : status.worker()) {
    std::vector<std::string> row = {
        worker.name(),
        TokenText(worker),
        worker.slot_count() == 0 ? "-" : MeasuredTimeText(absl::Seconds(worker.lease_seconds())),
        MeasuredTimeText(absl::Seconds(worker.last_step_seconds())),
        MeasuredTimeText(absl::Seconds(worker.silent_seconds())),
        absl::StrCat(worker.accepted()),
        absl::StrCat(worker.duplicate()),
        absl::StrCat(worker.rejected()),
        BytesText(worker.bytes_received()),
        BytesText(worker.bytes_sent())};
    if (streams) row.insert(row.begin() + kStaleColumn, absl::StrCat(worker.stale()));
    table.AddRow(std::move(row));
  }
  return table.Render();
}

// Returns a table of the workers' hosts, addresses and builds, or an empty string if none of them is known.
std::string BuildTable(const v1::RunStatus& status) {
  TextTable table({{"WORKER"}, {"HOST"}, {"ADDRESS"}, {"BUILD"}, {"COMPILER"}, {"INSTRUCTIONS"}});
  bool any = false;
  for (const v1::WorkerStatus& worker : status.worker()) {
    any = any || !worker.host().empty() || !worker.address().empty();
    const v1::BuildInfo& build = worker.has_build() ? worker.build() : status.build();
    table.AddRow(
        {worker.name(), worker.host(), worker.address(), VersionOf(build), build.compiler(), build.instruction_set()});
  }
  return any ? absl::StrCat("\n", table.Render()) : "";
}

}  // namespace

std::string ProgressLine(const v1::RunStatus& status, size_t columns) {
  std::vector<Part> parts = Parts(status);
  while (parts.size() > 1 && Join(parts).size() > columns) {
    auto most = parts.begin();
    for (auto it = parts.begin(); it != parts.end(); ++it) {
      if (it->expendable > most->expendable) most = it;
    }
    parts.erase(most);
  }
  return Join(parts).substr(0, columns);
}

std::string StatusReport(const v1::RunStatus& status) {
  std::vector<std::string> head = {PhaseText(status.phase())};
  if (status.total_steps() > 0) {
    head.push_back(
        absl::StrCat("step ", StepText(status), " (", 100 * status.global_step() / status.total_steps(), "%)"));
  } else {
    head.push_back(absl::StrCat("step ", StepText(status)));
  }
  if (status.phase() == v1::RunStatus::TRAINING && KnowsRate(status)) {
    head.push_back(absl::StrCat(QuantityText(status.steps_per_second()), " steps/s"));
    if (status.examples_per_step() > 0) head.push_back(ExamplesText(status));
    if (status.worker_size() > 0 && status.total_steps() > 0) head.push_back(RemainingText(status));
  }
  std::string out = absl::StrCat(absl::StrJoin(head, "  "), "\n");
  if (!status.message().empty()) absl::StrAppend(&out, status.message(), "\n");
  const auto line = [&out](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&out, absl::StrFormat("%-15s%s\n", name, value));
  };
  if (status.has_loss()) line("loss", LossText(status));
  for (const v1::RunStatus::Metric& metric : status.metric()) {
    // A metric's name that is longer than the column moves its number to the right.
    absl::StrAppend(&out, absl::StrFormat("%-13s  %.4g\n", Printable(metric.name()), metric.value()));
  }
  line("learning rate", absl::StrFormat("%.6g", status.learning_rate()));
  if (!status.policy().empty()) line("policy", status.policy());
  line("slots a step", absl::StrCat(status.replicas_to_aggregate()));
  line("contributions", absl::StrCat(status.accepted(), " accepted, ", status.duplicate(), " duplicate, ",
                                     status.stale() > 0 ? absl::StrCat(status.stale(), " stale, ") : "",
                                     status.rejected(), " rejected"));
  if (status.skipped_steps() > 0) line("skipped steps", absl::StrCat(status.skipped_steps(), ": not finite"));
  if (status.bytes_received_per_step() > 0) {
    line("bytes a step", absl::StrCat(BytesText(static_cast<int64_t>(status.bytes_received_per_step())), " received, ",
                                      BytesText(static_cast<int64_t>(status.bytes_sent_per_step())), " sent"));
  }
  if (!status.run_id().empty()) line("run", status.run_id());
  line("generation", absl::StrCat(status.generation()));
  line("logdir", status.logdir());
  if (status.has_build()) line("build", BuildLine(status));
  line("checkpoint", status.checkpoint().empty() ? "none yet" : status.checkpoint());
  if (status.has_audit()) line("audit", AuditLine(status.audit()));
  if (!status.audit().last_difference().empty()) line("", status.audit().last_difference());
  absl::StrAppend(&out, "\n", status.worker_size() == 0 ? "no workers\n" : WorkerTable(status), BuildTable(status));
  return out;
}

std::string StatusJson(const v1::RunStatus& status) {
  JsonMessageOptions options;
  options.defaults = true;
  options.lines = true;
  return JsonMessage(status, options) + "\n";
}

}  // namespace lockstep

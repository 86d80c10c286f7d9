#include "lockstep/cli/page/metrics_text.h"

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "lockstep/cli/page/testing/example_facts.h"

namespace lockstep {
namespace {

TEST(MetricsTextTest, HasTheRunsNumbers) {
  const std::string text = MetricsText(ExampleFacts());
  for (const std::string& line : std::vector<std::string>{
           "lockstep_up 1",
           "lockstep_chief_restarts_total 2",
           "lockstep_global_step 7",
           "lockstep_target_step 10",
           "lockstep_loss 0.25",
           "lockstep_gradient_norm 1.5",
           "lockstep_slot_metric{name=\"accuracy\"} 0.75",
           "lockstep_phase{phase=\"TRAINING\"} 1",
           "lockstep_phase{phase=\"FAILED\"} 0",
           "lockstep_step_duration_seconds_bucket{le=\"0.1\"} 3",
           "lockstep_step_duration_seconds_bucket{le=\"1\"} 5",
           "lockstep_step_duration_seconds_bucket{le=\"+Inf\"} 7",
           "lockstep_step_duration_seconds_count 7",
           "lockstep_step_duration_seconds_sum 4.5",
           "lockstep_workers{state=\"computing\"} 1",
           "lockstep_workers{state=\"silent\"} 1",
           "lockstep_contributions_total{worker=\"worker-\\\"0\\\"\",result=\"accepted\"} 5",
           "lockstep_worker_phase_seconds_total{worker=\"worker-\\\"0\\\"\",phase=\"compute\"} 1.5",
           "lockstep_run_contributions_total{result=\"stale\"} 6",
           "lockstep_checkpoint_timestamp_seconds 1.5",
           "lockstep_checkpoint_period_seconds 600",
           "lockstep_checkpoint_save_duration_seconds_bucket{le=\"2.5\"} 3",
           "lockstep_checkpoint_save_duration_seconds_sum 4.25",
           "lockstep_wire_bytes_total{direction=\"received\",path=\"tcp\"} 49",
           "lockstep_wire_bytes_total{direction=\"received\",path=\"unix\"} 20",
           "lockstep_wire_bytes_total{direction=\"received\",path=\"ring\"} 1",
           "lockstep_wire_bytes_total{direction=\"sent\",path=\"tcp\"} 80",
           "lockstep_rpc_calls_total{method=\"Heartbeat\",code=\"ABORTED\"} 3",
           "lockstep_memory_bytes{kind=\"needed\"} 100",
           "lockstep_memory_bytes{kind=\"limit\"} 400",
           "lockstep_admission_limit{kind=\"partial_sums\"} 6",
           "lockstep_contributions_waiting 1",
           "lockstep_contribution_waits_total 4",
           "lockstep_certificate_expiry_timestamp_seconds 2.5",
       }) {
    EXPECT_TRUE(absl::StrContains(text, line + "\n")) << line << " is not in\n" << text;
  }
}

TEST(MetricsTextTest, EachSeriesIsThereOnce) {
  RunView::Facts facts = ExampleFacts();
  // Adds a worker whose old session has not ended yet.
  *facts.last->add_worker() = facts.last->worker(0);
  std::set<std::string> series;
  const std::string text = MetricsText(facts);
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "#")) continue;
    EXPECT_TRUE(series.insert(std::string(line.substr(0, line.rfind(' ')))).second) << line;
  }
}

// Returns the names of the families in `text`.
std::set<std::string> Families(const std::string& text) {
  std::set<std::string> names;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 4 && words[1] == "TYPE") names.insert(words[2]);
  }
  return names;
}

// Returns the names in the first column of the table below "## Metrics".
std::set<std::string> NamesOfThePage() {
  std::ifstream page("docs/observe.md");
  std::set<std::string> names;
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) within = line == "## Metrics";
    if (!within || !(absl::StartsWith(line, "| lockstep_") || absl::StartsWith(line, "| process_"))) continue;
    const std::vector<std::string> columns = absl::StrSplit(line.substr(2), " | ");
    for (const absl::string_view name : absl::StrSplit(columns[0], ", ")) names.insert(std::string(name));
  }
  return names;
}

TEST(MetricsTextTest, ThePageListsEachMetric) { EXPECT_EQ(Families(MetricsText(ExampleFacts())), NamesOfThePage()); }

// Returns the family of a metric that an expression names.
std::string FamilyOf(absl::string_view name) {
  for (const char* suffix : {"_bucket", "_count", "_sum"}) name = absl::StripSuffix(name, suffix);
  return std::string(name);
}

// An expression with a wrong name is valid, but it never has a value.
TEST(MetricsTextTest, AlertsAndPanelsUseMetricsThatExist) {
  const std::set<std::string> families = Families(MetricsText(ExampleFacts()));
  const std::regex metric("(lockstep|process)_[a-z_]+");
  for (const char* path : {"deploy/prometheus/alerts.yml", "deploy/grafana/lockstep.json"}) {
    std::ifstream file(path);
    std::set<std::string> names;
    for (std::string line; std::getline(file, line);) {
      for (std::sregex_iterator found(line.begin(), line.end(), metric), end; found != end; ++found) {
        names.insert(found->str());
      }
    }
    EXPECT_GT(names.size(), 10u) << path;
    for (const std::string& name : names) {
      EXPECT_EQ(families.count(FamilyOf(name)), 1u) << name << " in " << path;
    }
  }
}

TEST(MetricsTextTest, AViewWithoutAChiefHasMetricsToo) {
  const std::string text = MetricsText(RunView::Facts());
  EXPECT_TRUE(absl::StrContains(text, "lockstep_up 0\n")) << text;
  EXPECT_FALSE(absl::StrContains(text, "lockstep_global_step")) << text;
}

}  // namespace
}  // namespace lockstep

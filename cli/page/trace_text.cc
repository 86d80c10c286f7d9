#include "lockstep/cli/page/trace_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {
namespace {

constexpr int kChiefRow = 0;

// Writes a list of events as text.
class EventList {
 public:
  void Row(int row, const std::string& name) {
    Begin();
    absl::StrAppend(&text_, "{\"ph\":\"M\",\"pid\":1,\"tid\":", row,
                    ",\"name\":\"thread_name\",\"args\":{\"name\":", JsonString(name), "}}");
    Begin();
    absl::StrAppend(&text_, "{\"ph\":\"M\",\"pid\":1,\"tid\":", row,
                    ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":", row, "}}");
  }
  // `args` is a JSON object.
  void Slice(int row, const std::string& name, double begin, double end, const std::string& args) {
    if (end <= begin) return;
    Begin();
    absl::StrAppend(&text_, "{\"ph\":\"X\",\"pid\":1,\"tid\":", row, ",\"name\":", JsonString(name),
                    ",\"ts\":", absl::StrFormat("%.3f", 1e6 * begin),
                    ",\"dur\":", absl::StrFormat("%.3f", 1e6 * (end - begin)), ",\"args\":", args, "}");
  }
  std::string Take() { return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", text_, "\n]}\n"); }

 private:
  void Begin() { absl::StrAppend(&text_, text_.empty() ? "\n" : ",\n"); }

  std::string text_;
};

void AddContribution(const v1::Contribution& contribution, int row, EventList* events) {
  const v1::PhaseSeconds& times = contribution.times();
  const std::string args =
      absl::StrCat("{\"step\":", contribution.step(), ",\"first_slot\":", contribution.first_slot(),
                   ",\"slot_count\":", contribution.slot_count(), "}");
  const std::pair<const char*, double> phases[] = {
      {"send", times.send()}, {"compute", times.compute()}, {"batch", times.batch()}, {"wait", times.wait()}};
  double end = contribution.arrived();
  for (const auto& phase : phases) {
    events->Slice(row, phase.first, end - phase.second, end, args);
    end -= phase.second;
  }
}

}  // namespace

void StepTrace::Add(const v1::WatchRunReply& reply) {
  contributions_.insert(contributions_.end(), reply.contribution().begin(), reply.contribution().end());
  commits_.insert(commits_.end(), reply.commit().begin(), reply.commit().end());
}

std::string StepTrace::Text(size_t steps) const {
  EventList events;
  events.Row(kChiefRow, "chief");
  const size_t first = commits_.size() - std::min(steps, commits_.size());
  for (size_t i = first; i < commits_.size(); ++i) {
    const v1::Commit& commit = commits_[i];
    events.Slice(kChiefRow, absl::StrCat("step ", commit.step()), commit.begun(), commit.committed(),
                 absl::StrCat("{\"step\":", commit.step(), "}"));
  }
  if (commits_.empty()) return events.Take();
  std::map<std::string, int> rows;
  for (const v1::Contribution& contribution : contributions_) rows[contribution.worker()] = 0;
  int row = kChiefRow;
  for (auto& entry : rows) events.Row(entry.second = ++row, entry.first);
  for (const v1::Contribution& contribution : contributions_) {
    if (contribution.arrived() < commits_[first].begun() || contribution.arrived() > commits_.back().committed()) {
      continue;
    }
    AddContribution(contribution, rows[contribution.worker()], &events);
  }
  return events.Take();
}

}  // namespace lockstep

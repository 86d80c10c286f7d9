#include "lockstep/tests/conformance/script_hooks.h"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/checkpoint_saver_hook.h"
#include "lockstep/train/hooks/final_ops_hook.h"
#include "lockstep/train/hooks/global_step_waiter_hook.h"
#include "lockstep/train/hooks/logging_tensor_hook.h"
#include "lockstep/train/hooks/profiler_hook.h"
#include "lockstep/train/hooks/step_counter_hook.h"
#include "lockstep/train/hooks/stop/early_stopping_hook.h"
#include "lockstep/train/hooks/stop/nan_tensor_hook.h"
#include "lockstep/train/hooks/stop/stop_at_step_hook.h"
#include "lockstep/train/hooks/summary_saver_hook.h"

namespace lockstep::train {
namespace {

// A hook that prints each call to it, and in one of those calls does what the script's line says.
class RecordingHook : public Hook {
 public:
  RecordingHook(const ScriptLine& line, SimulatedClock* clock) : line_(line), clock_(clock) {}

  std::string name() const override { return line_.Text("name"); }
  absl::Status Begin() override {
    std::cout << name() << " begin\n";
    return Act("begin", nullptr);
  }
  absl::Status AfterCreateSession(Session& session) override { return OfSession("created", session); }
  absl::Status BeforeRun(RunContext& context) override {
    if (const auto time = line_.Seconds("advance")) clock_->Advance(*time);
    return OfRun("before", context.global_step(), context);
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (const auto time = line_.Seconds("lasts")) clock_->Advance(*time);
    return OfRun("after", values.result.global_step, context);
  }
  absl::Status End(Session& session) override { return OfSession("end", session); }

 private:
  absl::Status OfSession(const std::string& call, Session& session) {
    ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
    std::cout << name() << " " << call << " " << step << "\n";
    return Act(call, nullptr);
  }
  absl::Status OfRun(const std::string& call, int64_t step, RunContext& context) {
    std::cout << name() << " " << call << " " << step << "\n";
    return Act(absl::StrCat(call, "@", step), &context);
  }
  absl::Status Act(const std::string& where, RunContext* context) {
    if (line_.Text("stop") == where && context != nullptr) context->RequestStop("the script says so");
    if (line_.Text("range") == where) return absl::OutOfRangeError("the script says so");
    if (line_.Text("fail") == where) return absl::InternalError("the script says so");
    return absl::OkStatus();
  }

  const ScriptLine line_;
  SimulatedClock* const clock_;
};

class PrintingListener : public CheckpointListener {
 public:
  explicit PrintingListener(const ScriptLine& line) : name_(line.Text("listener")), stop_(line.Int("listener_stop")) {}

  absl::Status Begin() override {
    std::cout << name_ << " begin\n";
    return absl::OkStatus();
  }
  absl::Status BeforeSave(Session&, int64_t step) override { return Print("before", step); }
  absl::StatusOr<bool> AfterSave(Session&, int64_t step, const std::string&) override {
    RETURN_IF_ERROR(Print("after", step));
    return stop_ == step;
  }
  absl::Status End(Session&, int64_t step) override { return Print("end", step); }

 private:
  absl::Status Print(const std::string& call, int64_t step) {
    std::cout << name_ << " " << call << " " << step << "\n";
    return absl::OkStatus();
  }

  const std::string name_;
  const absl::optional<int64_t> stop_;
};

// A hook that owns a CheckpointSaverHook and its listener, which must outlive that hook.
class ListenedSaver : public Hook {
 public:
  static absl::StatusOr<std::unique_ptr<Hook>> Create(const ScriptLine& line, SimulatedClock* clock) {
    auto saver = std::make_unique<ListenedSaver>();
    CheckpointSaverOptions options;
    options.period = PeriodOf(line);
    options.clock = clock;
    if (line.values.count("listener") > 0) {
      saver->listener_ = std::make_unique<PrintingListener>(line);
      options.listeners.push_back(saver->listener_.get());
    }
    ASSIGN_OR_RETURN(saver->hook_, CheckpointSaverHook::Create(options));
    return std::unique_ptr<Hook>(std::move(saver));
  }

  std::string name() const override { return hook_->name(); }
  absl::Status Begin() override { return hook_->Begin(); }
  absl::Status AfterCreateSession(Session& session) override { return hook_->AfterCreateSession(session); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    return hook_->AfterRun(context, values);
  }
  absl::Status End(Session& session) override { return hook_->End(session); }
  bool GatesAt(int64_t step) const override { return hook_->GatesAt(step); }

 private:
  std::unique_ptr<PrintingListener> listener_;
  std::unique_ptr<CheckpointSaverHook> hook_;
};

absl::StatusOr<std::unique_ptr<Hook>> MakeSummarySaver(const ScriptLine& line, SimulatedClock* clock) {
  SummarySaverOptions options;
  options.period = PeriodOf(line);
  options.clock = clock;
  if (line.Text("provider") != "none") {
    options.provider = [](Session&, int64_t step) -> absl::StatusOr<v1::Summary> {
      v1::Summary summary;
      v1::Summary::Value* value = summary.add_value();
      value->set_tag("value");
      value->set_simple_value(static_cast<float>(step));
      return summary;
    };
  }
  return SummarySaverHook::Create(options);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeLogging(const ScriptLine& line, SimulatedClock* clock) {
  LoggingTensorOptions options;
  if (line.Text("tensors") != "none") options.tensors = {"global_step"};
  options.every_n_iter = line.Int("iter");
  options.every_n_secs = line.Seconds("secs");
  options.at_end = line.Int("at_end").value_or(0) != 0;
  options.formatter = [](const std::vector<std::pair<std::string, Tensor>>& values) {
    return absl::StrCat("logged ", values[0].second.flat<int64_t>()[0]);
  };
  options.log = [](const std::string& text) { std::cout << text << "\n"; };
  options.clock = clock;
  return LoggingTensorHook::Create(options);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeProfiler(const ScriptLine& line, SimulatedClock* clock) {
  ProfilerOptions options;
  options.period = PeriodOf(line);
  options.output_directory = line.Text("directory");
  options.clock = clock;
  return ProfilerHook::Create(options);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeSmall(const ScriptLine& line) {
  const std::string kind = line.Word(1);
  if (kind == "stop") return StopAtStepHook::Create({line.Int("num_steps"), line.Int("last_step")});
  if (kind == "nan") return NanTensorHook::Create({line.Text("tensor"), true});
  if (kind == "final") return FinalOpsHook::Create(FinalOpsOptions());
  if (kind == "waiter") {
    GlobalStepWaiterOptions options;
    options.wait_until_step = line.Int("wait").value_or(0);
    options.poll_interval = line.Seconds("poll").value_or(options.poll_interval);
    return GlobalStepWaiterHook::Create(options);
  }
  if (kind == "early") {
    EarlyStoppingOptions options;
    options.patience = line.Int("patience").value_or(options.patience);
    options.min_delta = line.Number("min_delta").value_or(options.min_delta);
    options.every_n_steps = line.Int("steps").value_or(options.every_n_steps);
    return EarlyStoppingHook::Create(options);
  }
  return absl::UnimplementedError(absl::StrCat("no hook: ", kind));
}

}  // namespace

Period PeriodOf(const ScriptLine& line) { return {line.Int("steps"), line.Seconds("secs")}; }

absl::StatusOr<std::unique_ptr<Hook>> MakeScriptHook(const ScriptLine& line, SimulatedClock* clock) {
  const std::string kind = line.Word(1);
  if (kind == "record") return std::unique_ptr<Hook>(std::make_unique<RecordingHook>(line, clock));
  if (kind == "saver") return ListenedSaver::Create(line, clock);
  if (kind == "counter") return StepCounterHook::Create({PeriodOf(line), clock});
  if (kind == "summary") return MakeSummarySaver(line, clock);
  if (kind == "logging") return MakeLogging(line, clock);
  if (kind == "profiler") return MakeProfiler(line, clock);
  return MakeSmall(line);
}

}  // namespace lockstep::train

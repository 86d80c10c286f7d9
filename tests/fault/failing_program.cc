// A program whose chief fails as specified by --fail, once the global step is 20 and the file --when exists, in one of
// the library's loops. Workers, parameter servers and evaluators do not fail. Prints what the chief's loop and hooks
// encounter, one line each.
//   --loop: session, supervisor, monitored, slim, graph_actions
//   --fail: body, exception: the loop itself; hook, hook_exception, begin, end: a hook or a monitor; thread; service: a
//           summary function; init, init_exception: init_fn; local_init; timer, disk: one checkpoint that is due, or
//           all files from then on; nan: the loss of a step of any worker; none
#include <atomic>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"
#include "lockstep/train/graph_actions/train.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/slim/learning.h"
#include "lockstep/train/supervisor/supervisor.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep::train {
namespace {

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
  input {
    split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } }
    split { name: "test" synthetic { examples: 24 shape: 4 classes: 3 } }
    batch_size: 4
  }
  training { steps: 1000000000 replicas_to_aggregate: 4 }
  checkpoint { stop_seconds: 1 }
  evaluation { split: "test" metric: "mean_loss" }
)";

constexpr int64_t kFirstStep = 20;
constexpr absl::Duration kPeriod = absl::Milliseconds(50);

struct Flags {
  std::string loop = "supervisor";
  std::string fail = "none";
  std::string when;
  // Time in seconds for which a worker waits for a missing chief, or 0 for the default.
  int64_t wait_seconds = 0;
};

void Say(absl::string_view line) { std::cout << absl::StrCat(line, "\n") << std::flush; }

// A model whose loss is not a number once `diverges` returns true.
class DivergingModel : public ForwardingModel {
 public:
  DivergingModel(std::unique_ptr<Model> model, std::function<bool(int64_t step)> diverges)
      : ForwardingModel(std::move(model)), diverges_(std::move(diverges)) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    Sink diverging(sink, diverges_(key.step));
    return ForwardingModel::ComputeGradients(values, batch, key, &diverging);
  }

 private:
  class Sink : public ForwardingSink {
   public:
    Sink(GradientSink* sink, bool diverges) : ForwardingSink(sink), diverges_(diverges) {}
    bool OnLoss(float loss) override {
      return sink()->OnLoss(diverges_ ? std::numeric_limits<float>::quiet_NaN() : loss);
    }

   private:
    const bool diverges_;
  };

  const std::function<bool(int64_t step)> diverges_;
};

// A file system that fails the next N checkpoints, like a full disk. FillFor sets N.
class FullDisk : public ForwardingFileSystem {
 public:
  FullDisk() : ForwardingFileSystem(FileSystem::Real()) {}
  void FillFor(int checkpoints) { left_ = checkpoints; }

 private:
  absl::Status Before(Operation operation, const std::string& path) override {
    if (operation != Operation::kCreate || !absl::StrContains(path, "model.ckpt-") || left_ <= 0) {
      return absl::OkStatus();
    }
    --left_;
    return absl::ResourceExhaustedError(absl::StrCat(path, ": No space left on device"));
  }

  std::atomic<int> left_{0};
};

class FailingProgram {
 public:
  FailingProgram(Program* program, const Flags& flags) : program_(*program), flags_(flags) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(TrainOp op, CreateTrainOp(kRun));
    if (flags_.wait_seconds > 0) {
      op.spec.mutable_cluster()->set_chief_wait_seconds(static_cast<double>(flags_.wait_seconds));
    }
    ASSIGN_OR_RETURN(op_, CreateTrainOp(program_.WithFlags(op.spec)));
    op_.transform_model = [this](std::unique_ptr<Model> model) -> absl::StatusOr<std::unique_ptr<Model>> {
      const auto diverges = [this](int64_t step) { return flags_.fail == "nan" && IsDue(step); };
      return std::make_unique<DivergingModel>(std::move(model), diverges);
    };
    if (flags_.loop == "session") return RunSession();
    if (flags_.loop == "supervisor") return RunSupervisor();
    if (flags_.loop == "monitored") return RunMonitored();
    if (flags_.loop == "slim") return RunSlim();
    if (flags_.loop == "graph_actions") return RunGraphActions();
    return absl::InvalidArgumentError(absl::StrCat("--loop: ", flags_.loop));
  }

 private:
  class FailingHook : public Hook {
   public:
    explicit FailingHook(FailingProgram* program) : program_(*program) {}
    std::string name() const override { return "FailingHook"; }
    absl::Status AfterCreateSession(Session&) override { return program_.FailToStartIf("begin"); }
    absl::Status AfterRun(RunContext&, const RunValues& values) override {
      if (!program_.IsDue(values.result.global_step)) return absl::OkStatus();
      program_.hook_fails_ = program_.Fails("hook_exception") || program_.Fails("hook");
      if (program_.Fails("hook_exception")) throw std::runtime_error("the hook throws");
      return program_.FailIf("hook");
    }
    absl::Status End(Session&) override {
      Say("End is called");
      return program_.FailIf("end");
    }

   private:
    FailingProgram& program_;
  };

  // A hook that is called after FailingHook.
  class LaterHook : public Hook {
   public:
    explicit LaterHook(FailingProgram* program) : program_(*program) {}
    std::string name() const override { return "LaterHook"; }
    absl::Status AfterRun(RunContext&, const RunValues&) override {
      if (program_.hook_fails_) Say("a later hook is called");
      return absl::OkStatus();
    }

   private:
    FailingProgram& program_;
  };

  class FailingMonitor : public Monitor {
   public:
    explicit FailingMonitor(FailingProgram* program) : program_(*program) {}
    std::string name() const override { return "FailingMonitor"; }
    absl::StatusOr<bool> StepEnd(int64_t step, const RunValues&) override {
      if (program_.IsDue(step)) RETURN_IF_ERROR(program_.FailIf("hook"));
      return false;
    }
    absl::Status End(Session&) override {
      Say("End is called");
      return absl::OkStatus();
    }

   private:
    FailingProgram& program_;
  };

  bool IsDue(int64_t step) const {
    return step >= kFirstStep && FileSystem::Real()->Exists(flags_.when).value_or(false);
  }
  bool Fails(const std::string& what) const { return program_.is_chief() && flags_.fail == what; }
  absl::Status FailIf(const std::string& what) const {
    return Fails(what) ? absl::DataLossError(absl::StrCat(what, " fails")) : absl::OkStatus();
  }

  // Returns OutOfRange, which would end a loop successfully but must make a start fail.
  absl::Status FailToStartIf(const std::string& what) const {
    return Fails(what) ? absl::OutOfRangeError(absl::StrCat(what, " fails")) : absl::OkStatus();
  }

  SessionOptions Options() {
    SessionOptions options = program_.Options(op_);
    options.local_workers = 0;
    options.program = "failing_program";
    options.fs = &disk_;
    if (flags_.wait_seconds > 0) options.max_wait = absl::Seconds(flags_.wait_seconds);
    if (program_.is_chief()) {
      options.init_fn = [this](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
        if (Fails("init_exception")) throw std::runtime_error("init_fn throws");
        RETURN_IF_ERROR(FailToStartIf("init"));
        return InitialValues();
      };
    }
    return options;
  }

  absl::Status LocalInit(Session&) const { return FailToStartIf("local_init"); }

  absl::StatusOr<v1::Summary> Summarize(int64_t step) const {
    if (IsDue(step)) RETURN_IF_ERROR(FailIf("service"));
    return v1::Summary();
  }

  // Called after the loop has run a step. `coordinator` is null for loops without one.
  absl::Status AfterRun(int64_t step, Coordinator* coordinator) {
    if (failed_ || !IsDue(step)) return absl::OkStatus();
    failed_ = true;
    Say(absl::StrCat("fails at step ", step));
    if (Fails("body") || Fails("exception")) Say("the loop fails");
    if (Fails("exception")) throw std::runtime_error("the body throws");
    if (Fails("timer")) disk_.FillFor(1);
    if (Fails("disk")) disk_.FillFor(std::numeric_limits<int>::max());
    if (Fails("thread")) coordinator->StartThread("thread", [this] { return FailIf("thread"); });
    return FailIf("body");
  }

  // Runs a step of a session, or of another object that has the same Run function.
  template <typename Running>
  absl::StatusOr<StepResult> RunStep(Running& session) {
    absl::StatusOr<StepResult> result = session.Run(op_);
    if (!result.ok()) Say("Run fails");
    return result;
  }

  absl::Status RunSession() {
    ASSIGN_OR_RETURN(const auto session, OpenSession(Options()));
    Say("the loop begins");
    while (!session->ShouldStop()) {
      const auto result = RunStep(*session);
      if (absl::IsAborted(result.status())) continue;
      if (absl::IsOutOfRange(result.status())) break;
      RETURN_IF_ERROR(result.status());
      RETURN_IF_ERROR(AfterRun(result->global_step, nullptr));
    }
    return session->Close();
  }

  absl::Status RunSupervisor() {
    SupervisorOptions options;
    options.session = Options();
    options.save_model_period = kPeriod;
    options.save_summaries_period = kPeriod;
    options.local_init = LocalInitFunction([this](Session& session) { return LocalInit(session); });
    options.summary = SummaryFunction([this](Session& session) -> absl::StatusOr<v1::Summary> {
      ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
      return Summarize(step);
    });
    ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(options));
    Supervisor::PrepareOptions prepare;
    prepare.recover = true;
    if (flags_.wait_seconds > 0) prepare.max_wait = absl::Seconds(flags_.wait_seconds);
    return supervisor->ManagedSession(
        [&](Session& session) -> absl::Status {
          Say("the loop begins");
          while (!supervisor->ShouldStop()) {
            ASSIGN_OR_RETURN(const StepResult result, RunStep(session));
            RETURN_IF_ERROR(AfterRun(result.global_step, supervisor->coordinator()));
          }
          return absl::OkStatus();
        },
        prepare);
  }

  absl::Status RunMonitored() {
    FailingHook hook(this);
    LaterHook later(this);
    MonitoredTrainingOptions options;
    options.session = Options();
    options.hooks = {&hook, &later};
    options.save_checkpoint_secs = kPeriod;
    options.save_summaries_steps = 1;
    options.scaffold.local_init = LocalInitFunction([this](Session& session) { return LocalInit(session); });
    options.scaffold.summary = SummaryProvider([this](Session&, int64_t step) { return Summarize(step); });
    if (flags_.wait_seconds > 0) options.max_wait = absl::Seconds(flags_.wait_seconds);
    return WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& session) -> absl::Status {
      Say("the loop begins");
      while (!session.ShouldStop()) {
        ASSIGN_OR_RETURN(const StepResult result, RunStep(session));
        RETURN_IF_ERROR(AfterRun(result.global_step, session.coordinator()));
        if (Fails("end") && IsDue(result.global_step)) break;
      }
      return absl::OkStatus();
    });
  }

  absl::Status RunSlim() {
    slim::TrainOptions options;
    options.session = Options();
    options.init_fn = options.session.init_fn;
    options.sync_optimizer = {{4, 2}};
    options.log_every_n_steps = 0;
    options.save_interval_secs = kPeriod;
    options.local_init_op = LocalInitFunction([this](Session& session) { return LocalInit(session); });
    int64_t steps = 0;
    options.train_step_fn = [&](Session& session, const TrainOp& op,
                                slim::TrainStepKwargs& kwargs) -> absl::StatusOr<slim::TrainStepResult> {
      ASSIGN_OR_RETURN(const auto result, slim::TrainStep(session, op, kwargs));
      RETURN_IF_ERROR(AfterRun(++steps, nullptr));
      return result;
    };
    const std::string logdir = program_.is_chief() ? options.session.logdir : "";
    return slim::Train(op_, logdir, options).status();
  }

  absl::Status RunGraphActions() {
    FailingMonitor monitor(this);
    graph_actions::TrainOptions options;
    options.session = Options();
    options.monitors = {&monitor};
    return graph_actions::Train(options).status();
  }

  Program& program_;
  const Flags flags_;
  TrainOp op_;
  FullDisk disk_;
  bool failed_ = false;
  bool hook_fails_ = false;
};

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  using namespace lockstep::train;  // NOLINT
  Program program(argc, argv, "Trains until its chief fails.");
  Flags flags;
  program.command_line().AddFlag("loop", "LOOP", "session, supervisor, monitored, slim or graph_actions", &flags.loop);
  program.command_line().AddFlag("fail", "WHAT", "what fails", &flags.fail);
  program.command_line().AddFlag("when", "FILE", "it fails once there is this file", &flags.when);
  program.command_line().AddFlag("wait_seconds", "N", "how long a worker waits for a chief", &flags.wait_seconds);
  return program.Run([&] { return FailingProgram(&program, flags).Run(); });
}

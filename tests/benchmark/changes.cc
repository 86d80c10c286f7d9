// Measures the cost of a change between two steps: trains a softmax regression with a hook or a step function that
// makes a change after each step, and prints the steps per second. To compare changes, alternate runs with the same
// roles.
//
//   All in this process, with two workers:
//     ./lockstep exec //tests/benchmark:changes --change=rate --logdir=/tmp/run
//   The chief alone:
//     ./lockstep exec //tests/benchmark:changes --change=rate --logdir=/tmp/run --listen=unix:/tmp/chief
//   A worker:
//     ./lockstep exec //tests/benchmark:changes --master=unix:/tmp/chief
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/slim/learning.h"

namespace lockstep::train {
namespace {

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
  input { split { name: "train" synthetic { examples: 4096 shape: 64 classes: 10 } } batch_size: 64 }
  optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
  training { replicas_to_aggregate: 2 steps: 3000 }
)";

// The first steps are not measured, because workers are still joining.
constexpr int64_t kWarmUp = 200;

// The change named by --change.
class Change {
 public:
  static absl::StatusOr<Change> Create(const std::string& kind) {
    if (kind == "none" || kind == "gate" || kind == "rate" || kind == "assign" || kind == "clip") return Change(kind);
    return absl::InvalidArgumentError(absl::StrCat("--change is ", kind, ", must be none, gate, rate, assign or clip"));
  }

  absl::Status Make(Session& session, int64_t step) const {
    if (kind_ == "rate") return session.ChangeLearningRate(step % 2 == 0 ? 0.05f : 0.04f);
    if (kind_ == "clip") {
      SettingsChange change;
      ASSIGN_OR_RETURN(const config::v1::RunSpec spec, session.Settings());
      change.optimizer = spec.optimizer();
      change.optimizer->mutable_clip()->set_by_global_norm(step % 2 == 0 ? 5.0f : 4.0f);
      return session.ChangeSettings(change);
    }
    if (kind_ != "assign") return absl::OkStatus();
    const std::vector<float> values(10, step % 2 == 0 ? 0.1f : 0.2f);
    ASSIGN_OR_RETURN(NamedTensor bias, NamedFloats("logits/bias", {10}, values));
    return session.Assign({std::move(bias)});
  }
  bool gates() const { return kind_ != "none"; }

 private:
  explicit Change(std::string kind) : kind_(std::move(kind)) {}

  std::string kind_;
};

class Rate {
 public:
  void OnStep(int64_t step) {
    end_ = absl::Now();
    last_ = step;
    if (step < kWarmUp || first_ >= 0) return;
    first_ = step;
    begin_ = end_;
  }
  // Prints the steps per second. Returns InvalidArgument if nothing was measured.
  absl::Status Print() const {
    if (first_ < 0 || last_ <= first_) {
      return absl::InvalidArgumentError(absl::StrCat("no step after step ", kWarmUp, " was measured"));
    }
    const double seconds = absl::ToDoubleSeconds(end_ - begin_);
    std::cout << static_cast<double>(last_ - first_) / seconds << " steps/s" << std::endl;
    return absl::OkStatus();
  }

 private:
  absl::Time begin_, end_;
  int64_t first_ = -1, last_ = 0;
};

class ChangeHook : public Hook {
 public:
  ChangeHook(const Change& change, Rate* rate) : change_(change), rate_(rate) {}

  std::string name() const override { return "ChangeHook"; }
  bool GatesAt(int64_t) const override { return change_.gates(); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    rate_->OnStep(values.result.global_step);
    return change_.Make(context.session(), values.result.global_step);
  }

 private:
  const Change change_;
  Rate* const rate_;
};

struct Flags {
  std::string change = "none";
  bool step_function = false;
};

absl::Status TrainWithHook(const SessionOptions& session, const Change& change, Rate* rate) {
  ChangeHook hook(change, rate);
  MonitoredTrainingOptions options;
  options.session = session;
  options.chief_only_hooks = {&hook};
  return WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& monitored) -> absl::Status {
    while (!monitored.ShouldStop()) RETURN_IF_ERROR(monitored.Run(session.op).status());
    return absl::OkStatus();
  });
}

absl::Status TrainWithStepFunction(const SessionOptions& session, const Change& change, Rate* rate) {
  slim::TrainOptions options;
  options.session = session;
  options.log_every_n_steps = 0;
  if (session.is_chief) {
    options.train_step_fn = [&](Session& used, const TrainOp& op,
                                slim::TrainStepKwargs& kwargs) -> absl::StatusOr<slim::TrainStepResult> {
      ASSIGN_OR_RETURN(const slim::TrainStepResult result, slim::TrainStep(used, op, kwargs));
      rate->OnStep(result.global_step);
      RETURN_IF_ERROR(change.Make(used, result.global_step));
      return result;
    };
  }
  return slim::Train(session.op, session.logdir, options).status();
}

absl::Status Run(Program* program, const Flags& flags) {
  ASSIGN_OR_RETURN(const Change change, Change::Create(flags.change));
  ASSIGN_OR_RETURN(TrainOp op, CreateTrainOp(kRun));
  ASSIGN_OR_RETURN(op, op.WithSpec(program->WithFlags(op.spec)));
  SessionOptions session = program->Options(op);
  session.program = "changes";
  session.local_workers = session.listen.empty() ? 2 : 0;
  session.compute_threads = 1;
  Rate rate;
  RETURN_IF_ERROR((flags.step_function ? TrainWithStepFunction : TrainWithHook)(session, change, &rate));
  return session.is_chief ? rate.Print() : absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  lockstep::train::Program program(argc, argv, "Measures what a change between two steps costs.");
  lockstep::train::Flags flags;
  program.command_line().AddFlag(
      "change", "KIND", "chief: none, gate (every step, without a change), rate, assign or clip", &flags.change);
  program.command_line().AddFlag("step_function", "", "slim's step function changes, in place of a hook",
                                 &flags.step_function);
  return program.Run([&] { return lockstep::train::Run(&program, flags); });
}

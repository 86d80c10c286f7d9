// Calls slim::Train according to a script, so that another program can compare it. Each line of standard input is a
// call, whose output is followed by OK or its error. The model is linear, starts at zero and learns from a whole CSV
// file at once.
//   train   data=CSV examples=N, logdir=, steps=, log=, trace=, startup=, interval=, summaries= (seconds),
//           summary=none|given, writer=none|given, saver=1, sync=R, delay=STEPS, chief=0 master=,
//           init=none|given|fn, ready=NAME|none, op=none, epochs=N, rate=, clip=, multiply=FACTOR, transform=1,
//           wrapper=1, kwargs=none|trace, step=count|stop|fail|range|abort at=K (how its K-th call ends)
//   Prints "loss X" or "loss none"; "calls N" with a step function; "runs N" with a wrapper; "summaries N" if there
//   were any.
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/train/slim/create_train_op.h"
#include "lockstep/train/slim/learning.h"

namespace lockstep::train::slim {
namespace {

constexpr char kModel[] = R"(
  model { layer { name: "dense" dense { units: 1 no_bias: true kernel_initializer { zeros {} } } }
          loss { mean_squared_error {} } }
)";

absl::StatusOr<TrainOp> MakeOp(const ScriptLine& line) {
  if (line.Text("op") == "none") return TrainOp();
  std::string loss = absl::StrCat(kModel, "input { split { name: 'train' csv { file: '", line.Text("data"),
                                  "' column { name: 'a' } column { name: 'b' } column { name: 'y' type: TARGET } } } ",
                                  "batch_size: ", line.Int("examples").value_or(1));
  if (const auto epochs = line.Int("epochs")) absl::StrAppend(&loss, " epochs: ", *epochs);
  absl::StrAppend(&loss, " }");
  CreateTrainOpOptions options;
  options.clip_gradient_norm = static_cast<float>(line.Number("clip").value_or(0));
  if (const auto factor = line.Number("multiply")) {
    options.gradient_multipliers = {{"dense/kernel", static_cast<float>(*factor)}};
  }
  if (line.Int("transform")) {
    options.transform_grads_fn = [](std::vector<GradientAndVariable>& grads_and_vars, int64_t) {
      for (GradientAndVariable& pair : grads_and_vars) {
        for (float& g : pair.gradient) g = g < 0 ? -0.5f : 0.5f;
      }
      return absl::OkStatus();
    };
  }
  return CreateTrainOp(loss, absl::StrCat("sgd {} learning_rate { initial: ", line.Number("rate").value_or(0.05), " }"),
                       options);
}

class Counted : public SessionDecorator {
 public:
  Counted(Session* session, int* runs) : SessionDecorator(session), runs_(runs) {}
  absl::StatusOr<StepResult> Run(const TrainOp& op) override {
    ++*runs_;
    return SessionDecorator::Run(op);
  }

 private:
  int* const runs_;
};

class Call {
 public:
  explicit Call(const ScriptLine& line) : line_(line) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(const TrainOp op, MakeOp(line_));
    RETURN_IF_ERROR(SetSession());
    SetServices();
    SetLoop();
    const auto loss = Train(op, line_.Text("logdir"), options_);
    if (options_.train_step_fn) std::cout << "calls " << calls_ << "\n";
    if (options_.session_wrapper) std::cout << "runs " << runs_ << "\n";
    if (summaries_ > 0) std::cout << "summaries " << summaries_ << "\n";
    RETURN_IF_ERROR(loss.status());
    std::cout << (*loss ? absl::StrFormat("loss %.9g\n", **loss) : "loss none\n");
    return absl::OkStatus();
  }

 private:
  static InitialValues Kernel(float a, float b) {
    return InitialValues{{*NamedFloats("dense/kernel", {2, 1}, {a, b})}, ""};
  }

  absl::Status SetSession() {
    options_.one_more_step = true;  // like the original
    options_.session.is_chief = line_.Int("chief").value_or(1) != 0;
    options_.session.master = line_.Text("master");
    const std::string init = line_.Text("init");
    if (init == "none") options_.init_op = kNone;
    if (init == "given") {
      options_.init_op = [](const v1::ModelSpec&, absl::Span<const NamedTensor>) -> absl::StatusOr<InitialValues> {
        return Kernel(1, 2);
      };
    }
    if (init == "fn") {
      options_.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> { return Kernel(3, 4); };
    }
    const std::string ready = line_.Text("ready");
    if (ready == "none") {
      options_.ready_op = kNone;
    } else if (!ready.empty()) {
      options_.ready_op = [ready](Session&) -> absl::StatusOr<std::vector<std::string>> {
        return std::vector<std::string>{ready};
      };
    }
    options_.startup_delay_steps = line_.Int("delay").value_or(0);
    if (const auto replicas = line_.Int("sync")) options_.sync_optimizer = {{*replicas}};
    if (line_.Int("saver")) {
      ASSIGN_OR_RETURN(saver_, Saver::Create(SaverOptions()));
      options_.saver = saver_.get();
    }
    return absl::OkStatus();
  }

  void SetServices() {
    if (const auto period = line_.Seconds("interval")) options_.save_interval_secs = *period;
    options_.save_summaries_secs = line_.Seconds("summaries").value_or(options_.save_summaries_secs);
    if (line_.Text("summary") == "none") options_.summary_op = kNone;
    if (line_.Text("summary") == "given") {
      options_.summary_op = [this](Session&) {
        v1::Summary summary;
        summary.add_value()->set_tag("mine");
        ++summaries_;
        return summary;
      };
    }
    if (line_.Text("writer") == "none") options_.summary_writer = kNone;
  }

  void SetLoop() {
    options_.number_of_steps = line_.Int("steps");
    options_.log_every_n_steps = line_.Int("log").value_or(1);
    options_.trace_every_n_steps = line_.Int("trace");
    if (line_.Int("wrapper")) {
      options_.session_wrapper = [this](Session* session) { return std::make_unique<Counted>(session, &runs_); };
    }
    const std::string kwargs = line_.Text("kwargs");
    if (!kwargs.empty()) options_.train_step_kwargs = TrainStepKwargs();
    if (kwargs == "trace") options_.train_step_kwargs->should_trace = [](int64_t) { return true; };
    if (!line_.Text("step").empty()) {
      options_.train_step_fn = [this](Session& session, const TrainOp& op, TrainStepKwargs& given) {
        return Step(session, op, given);
      };
    }
  }

  absl::StatusOr<TrainStepResult> Step(Session& session, const TrainOp& op, TrainStepKwargs& kwargs) {
    // Waits until the summary service has written its first summary, which it does before the first step.
    while (options_.summary_op.is_given() && summaries_ == 0) std::this_thread::yield();
    const std::string end = line_.Text("step");
    const bool ends = ++calls_ == line_.Int("at").value_or(0);
    if (ends && end == "fail") return absl::InternalError("the script says so");
    if (ends && end == "range") return absl::OutOfRangeError("the script says so");
    if (ends && end == "abort") return absl::AbortedError("the script says so");
    ASSIGN_OR_RETURN(TrainStepResult result, TrainStep(session, op, kwargs));
    if (ends && end == "stop") result.should_stop = true;
    return result;
  }

  const ScriptLine& line_;
  TrainOptions options_;
  std::unique_ptr<Saver> saver_;
  int calls_ = 0;
  int runs_ = 0;
  std::atomic<int> summaries_{0};
};

}  // namespace
}  // namespace lockstep::train::slim

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    const lockstep::train::ScriptLine line(text);
    std::cout << lockstep::train::slim::Call(line).Run() << std::endl;  // flushes: another process waits for it
    std::cerr << "END\n";
  }
  return 0;
}

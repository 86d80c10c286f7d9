#ifndef LOCKSTEP_TRAIN_LEARN_TESTING_FAKE_ESTIMATOR_H_
#define LOCKSTEP_TRAIN_LEARN_TESTING_FAKE_ESTIMATOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/train/learn/estimator.h"
#include "lockstep/train/learn/export_strategy.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {

// Returns a RunConfig for this TF_CONFIG.
inline RunConfig ConfigOf(const std::string& tf_config, RunConfigOptions options = {}) {
  if (options.model_dir.empty()) options.model_dir = "/model";
  auto config = RunConfig::Create(std::move(options), ParseTfConfig(tf_config).value());
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

// Returns the TF_CONFIG of a task in a cluster with a chief, four workers and a ps.
inline std::string TaskOf(const std::string& type, int index = 0) {
  return absl::StrCat(R"({"cluster": {"chief": ["c:1"], "worker": ["w0:1", "w1:1", "w2:1", "w3:1"], "ps": ["p:1"]},
                          "task": {"type": ")",
                      type, R"(", "index": )", index, "}}");
}

// An estimator that records its calls and returns results set by the test. Time passes only in AwaitRunEnd.
class FakeEstimator : public Estimator {
 public:
  explicit FakeEstimator(RunConfig config, JumpingClock* clock = nullptr) : config_(std::move(config)), clock_(clock) {}

  absl::Status Train(const TrainArguments& arguments) override {
    calls.push_back("train");
    trained.push_back(arguments);
    return absl::OkStatus();
  }
  absl::StatusOr<EvaluationMetrics> Evaluate(const EvaluateArguments& arguments) override {
    calls.push_back(absl::StrCat("evaluate ", arguments.name));
    evaluated.push_back(arguments);
    if (static_cast<int>(evaluated.size()) == fails_at) {
      if (next) latest = std::exchange(next, absl::nullopt);
      return failure;
    }
    EvaluationMetrics result;
    result.global_step = global_step;
    result.checkpoint = arguments.checkpoint.value_or("/model/model.ckpt-" + absl::StrCat(global_step));
    return result;
  }
  absl::Status Export(const std::string& directory, const EvaluationMetrics& result) override {
    calls.push_back(absl::StrCat("export ", directory));
    return absl::OkStatus();
  }
  absl::StatusOr<absl::optional<std::string>> LatestCheckpoint() override { return latest; }
  absl::StatusOr<bool> RunIsFinished() override { return finished; }
  absl::StatusOr<absl::optional<int64_t>> LastStep() override { return last_step; }
  absl::Status AwaitRunEnd(absl::Duration limit) override {
    calls.push_back("await");
    if (run_ends || limit == absl::InfiniteDuration()) return absl::OkStatus();
    clock_->Advance(limit);
    return absl::DeadlineExceededError("not over");
  }
  const RunConfig& config() const override { return config_; }

  // The calls, in order: "train", "evaluate NAME", "export DIRECTORY", "await".
  std::vector<std::string> calls;
  std::vector<TrainArguments> trained;
  std::vector<EvaluateArguments> evaluated;
  // The state of the run.
  int64_t global_step = 100;
  absl::optional<std::string> latest = std::string("/model/model.ckpt-100");
  bool finished = false;
  // The last step according to the run's record.
  absl::optional<int64_t> last_step;
  // If true, AwaitRunEnd immediately reports the end of the run.
  bool run_ends = false;
  // The number of the evaluation that fails, counted from 1, and the error that it returns.
  int fails_at = 0;
  absl::Status failure = absl::OutOfRangeError("enough");
  // Replaces `latest` when the evaluation fails.
  absl::optional<std::string> next;

 private:
  const RunConfig config_;
  JumpingClock* const clock_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_TESTING_FAKE_ESTIMATOR_H_

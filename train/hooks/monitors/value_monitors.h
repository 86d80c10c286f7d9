#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_VALUE_MONITORS_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_VALUE_MONITORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/hooks/monitors/monitors.h"

namespace lockstep::train {

// Monitors of the older protocol that show values. See also monitors.h.

struct PrintTensorOptions {
  // "loss" and "global_step" of the run, or names of variables and optimizer state.
  std::vector<std::string> tensors;
  int64_t every_n_steps = 100;
  // The number of initial steps that are all logged.
  int64_t first_n_steps = 1;
  // The number of elements of each tensor to show; -1 shows all.
  int64_t summarize = 8;
  // Receives the lines. If null, they are logged as INFO.
  std::function<void(const std::string&)> log;
};

// A monitor that logs values at the active steps: "Step 10: loss = 0.5, logits/bias = [1 2 3]".
class PrintTensorMonitor : public LookingEveryN {
 public:
  // Returns InvalidArgument naming a missing or wrong option.
  static absl::StatusOr<std::unique_ptr<PrintTensorMonitor>> Create(PrintTensorOptions options);
  std::string name() const override { return "PrintTensor"; }

 protected:
  absl::StatusOr<std::vector<std::string>> EveryNStepBegin(int64_t step) override;
  absl::StatusOr<bool> EveryNStepEnd(int64_t step, const RunValues& values) override;

 private:
  explicit PrintTensorMonitor(PrintTensorOptions options)
      : LookingEveryN(options.every_n_steps, options.first_n_steps), options_(std::move(options)) {}

  const PrintTensorOptions options_;
};

// A monitor that keeps the values of many variables at each active step since the process started, and compares them
// with those of another run, to find out where two programs that should behave alike begin to differ. The counterpart
// of TensorFlow's GraphDump, which keeps the tensors of a graph.
class ValueDumpMonitor : public LookingEveryN {
 public:
  // If `variables` is empty, keeps everything that the session reads, including optimizer state and "global_step".
  // Every active step needs memory for these values. If every_n_steps is 0, every step is active.
  explicit ValueDumpMonitor(std::vector<std::string> variables = {}, int64_t every_n_steps = 0)
      : LookingEveryN(every_n_steps), variables_(std::move(variables)) {}
  std::string name() const override { return "ValueDump"; }

  // The values by step and name.
  const std::map<int64_t, std::map<std::string, Tensor>>& values() const { return values_; }

  struct Comparison {
    std::vector<std::string> matched;
    std::vector<std::string> non_matched;
  };
  // Compares all values of `step` here with those of `other`. Floating-point numbers a (here) and b (there) match if |a
  // - b| <= tolerance + 1e-5 |b|; other values match if they are equal; a NaN never matches. Errors: NotFound if the
  // step is not kept here; InvalidArgument if `other` lacks a value for that step and name.
  absl::StatusOr<Comparison> Compare(const ValueDumpMonitor& other, int64_t step, double tolerance = 1e-6) const;

 protected:
  absl::Status EveryNPostStep(int64_t step, Session& session) override;

 private:
  const std::vector<std::string> variables_;
  std::map<int64_t, std::map<std::string, Tensor>> values_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_VALUE_MONITORS_H_

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

// Monitors that show values for people: of the older protocol, as those of monitors.h.

struct PrintTensorOptions {
  // "loss" and "global_step" of the run, else variables and optimizer state.
  std::vector<std::string> tensors;
  int64_t every_n_steps = 100;
  // All of the first so many steps.
  int64_t first_n_steps = 1;
  // Elements of each that are shown; -1: all.
  int64_t summarize = 8;
  // Where lines go. Empty: the log, as INFO.
  std::function<void(const std::string&)> log;
};

// Logs values at the active steps: "Step 10: loss = 0.5, logits/bias = [1 2 3]".
class PrintTensorMonitor : public LookingEveryN {
 public:
  // InvalidArgument names the option that is missing or wrong.
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

// Keeps the values of many variables at each active step of this life, to be compared with those of another run: where
// two programs that should do the same begin to differ, and in what. The counterpart of GraphDump, which keeps the
// tensors of a graph.
class ValueDumpMonitor : public LookingEveryN {
 public:
  // Empty `variables`: all that the session reads, optimizer state and "global_step" too. Takes as much memory as they
  // have at each active step; 0: every step.
  explicit ValueDumpMonitor(std::vector<std::string> variables = {}, int64_t every_n_steps = 0)
      : LookingEveryN(every_n_steps), variables_(std::move(variables)) {}
  std::string name() const override { return "ValueDump"; }

  // By step and name.
  const std::map<int64_t, std::map<std::string, Tensor>>& values() const { return values_; }

  struct Comparison {
    std::vector<std::string> matched;
    std::vector<std::string> non_matched;
  };
  // Of all that is kept of `step` here with what `other` has. Numbers a and b with a fraction match if
  // |a - b| <= tolerance + 1e-5 |b|, all others if they are equal; a NaN matches nothing. Errors: NotFound when the
  // step is not kept here; InvalidArgument when the other has no value of that step and name.
  absl::StatusOr<Comparison> Compare(const ValueDumpMonitor& other, int64_t step, double tolerance = 1e-6) const;

 protected:
  absl::Status EveryNPostStep(int64_t step, Session& session) override;

 private:
  const std::vector<std::string> variables_;
  std::map<int64_t, std::map<std::string, Tensor>> values_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_VALUE_MONITORS_H_

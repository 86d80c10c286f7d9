#ifndef LOCKSTEP_TRAIN_TESTING_FAKE_SESSION_H_
#define LOCKSTEP_TRAIN_TESTING_FAKE_SESSION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/step_gate.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep::train {

// A single-threaded, in-memory run. As a chief, it eagerly commits as many steps as the gate allows, and Run returns
// them one by one. The loss of step s is Options::loss(s). The scalar variable "w" has the value s unless it was
// assigned, and the variable "v" is [s, 2s]. As a worker, it returns Options::blocks, one per Run. Not thread-safe.
class FakeSession : public Session, public StepGate {
 public:
  struct Options {
    bool chief = true;
    // Global step at which the run continues, and the hooks' states in its checkpoint.
    int64_t step = 0;
    v1::SessionState restored;
    // True if the run had ended successfully at that step.
    bool may_change_program = false;
    // The step at which the run is over.
    int64_t total_steps = 1000;
    // Returns the loss of the step whose update leads to global step `step`.
    std::function<double(int64_t step)> loss = [](int64_t step) { return 1.0 / static_cast<double>(step); };
    // True if steps wait for AllowThrough. Tests that call hooks directly set it to false.
    bool gated = true;
    // The results that a worker's Runs return, one per block. When none are left, the run is over.
    std::deque<StepResult> blocks;
  };

  FakeSession();
  explicit FakeSession(Options options);

  absl::StatusOr<StepResult> Run(const TrainOp& op) override;
  absl::StatusOr<int64_t> NextStep() override;
  bool ShouldStop() override;
  absl::StatusOr<int64_t> GlobalStep() override;
  bool is_chief() const override { return options_.chief; }
  absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) override;
  absl::Status Assign(absl::Span<const NamedTensor> values) override;
  absl::Status ChangeSettings(const SettingsChange& change) override;
  absl::StatusOr<config::v1::RunSpec> Settings() override { return config::v1::RunSpec(); }
  absl::StatusOr<std::vector<std::string>> Uninitialized() override { return std::vector<std::string>(); }
  absl::StatusOr<std::string> Save() override;
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) override;
  absl::Status RequestStop(const std::string& reason) override;
  absl::Status Close() override;
  absl::Status Stop() override {
    stopped_ = true;
    return on_stop_();
  }

  void AllowThrough(int64_t limit) override;
  void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) override;
  absl::Status EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) override;
  absl::Status AssignByHook(absl::Span<const NamedTensor> values) override;
  absl::Status ChangeByHook(const SettingsChange& change) override;
  bool MayChangeProgram() const override { return options_.may_change_program; }
  void NoteProgramChange(const std::string& what) override { calls_.push_back(what); }
  v1::SessionState restored() const override { return options_.restored; }
  absl::Status failure() const override { return failure_; }
  void SeekTo(int64_t step) override { seen_ = step; }

  // Returns options for a chief that continues from a checkpoint of the newest step.
  Options NextLife() const;

  // Returns the newest global step.
  int64_t newest() const { return newest_; }
  // Returns the calls in order: "save 3", "stop 5: reason", "close", "allow 4", "state 3".
  const std::vector<std::string>& calls() const { return calls_; }
  // Returns the calls without "allow" and "state".
  std::vector<std::string> acts() const;
  const std::vector<int64_t>& saved_steps() const { return saved_steps_; }
  // A scalar of a summary.
  struct Scalar {
    int64_t step;
    std::string tag;
    float value;
  };
  const std::vector<Scalar>& scalars() const { return scalars_; }
  const std::vector<v1::Summary>& summaries() const { return summaries_; }
  int64_t reads() const { return reads_; }
  const std::string& stop_reason() const { return stop_reason_; }
  bool closed() const { return closed_; }
  bool stopped() const { return stopped_; }

  // Makes the next Run or Read fail with `status`.
  void FailNextRun(absl::Status status) { run_error_ = std::move(status); }
  void FailNextRead(absl::Status status) { read_error_ = std::move(status); }
  // Makes RequestStop return `status`, although it ends the run.
  void set_stop_status(absl::Status status) { stop_status_ = std::move(status); }
  // Makes the run fail with `failure`, so that ShouldStop returns true.
  void set_failure(absl::Status failure) { failure_ = std::move(failure); }
  // Sets the function that Stop calls.
  void set_on_stop(std::function<absl::Status()> on_stop) { on_stop_ = std::move(on_stop); }
  // Makes GlobalStep return these values, one by one, before the true one.
  void set_polled_steps(std::deque<int64_t> steps) { polled_steps_ = std::move(steps); }

 private:
  void Commit();
  StepResult Update(int64_t step) const;
  float w() const { return assigned_w_.value_or(static_cast<float>(newest_)); }

  Options options_;
  int64_t newest_;
  // The last step that Run returned.
  int64_t seen_;
  int64_t end_;
  int64_t limit_ = std::numeric_limits<int64_t>::min();
  v1::SessionState state_;
  absl::optional<float> assigned_w_;
  std::vector<std::string> calls_;
  std::vector<int64_t> saved_steps_;
  std::vector<Scalar> scalars_;
  std::vector<v1::Summary> summaries_;
  int64_t reads_ = 0;
  std::string stop_reason_;
  bool closed_ = false;
  bool stopped_ = false;
  absl::Status failure_;
  absl::Status run_error_;
  absl::Status stop_status_;
  absl::Status read_error_;
  std::function<absl::Status()> on_stop_ = [] { return absl::OkStatus(); };
  std::deque<int64_t> polled_steps_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_FAKE_SESSION_H_

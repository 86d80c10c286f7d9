#ifndef LOCKSTEP_CLI_REPORT_RUN_REPORT_H_
#define LOCKSTEP_CLI_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/evaluation/run_evaluator.h"

namespace lockstep {

// Writes the output of `run` and `local` before and after training. Not thread-safe.
class RunReport {
 public:
  // Looks for the data files, opens the evaluation split and creates the model, so that their errors appear before
  // training. If `logdir` is empty, nothing is kept. `fs` must outlive the report. Without an evaluation split, the run
  // is not evaluated, and Finished says so. Returns errors from CheckRun.
  static absl::StatusOr<std::unique_ptr<RunReport>> Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                           std::string logdir);

  // Returns true if the logdir's run was already finished at the start.
  bool was_finished() const { return config_.training().steps() > 0 && first_step_ >= config_.training().steps(); }

  // Returns a line that says what is trained, where, and from which step, and further lines about a warm start if there
  // is one.
  std::string Beginning(const std::string& processes) const;

  // The end of a finished run.
  struct End {
    int64_t step = 0;
    // Why it ended before its last step. May be empty even if it did.
    std::string reason;
  };
  // Reads the end from the logdir.
  absl::StatusOr<End> RecordedEnd() const;

  // Evaluates the newest checkpoint and prints the metrics, the paths of the results and, in the last line, why the run
  // has ended. Call it after the last step. Returns errors from the evaluation, but prints the last line even then.
  absl::Status Finished(const End& end, absl::Duration elapsed, std::ostream& out) const;

 private:
  RunReport(FileSystem* fs, const config::v1::RunSpec& config, std::string logdir);

  std::string ReasonOf(const End& end) const;
  std::string LastLine(const End& end, absl::Duration elapsed) const;
  absl::Status Evaluate(const absl::optional<std::string>& checkpoint, std::ostream& out) const;

  FileSystem* const fs_;
  const config::v1::RunSpec config_;
  const std::string logdir_;
  std::string warm_start_;               // what it loads; empty without one
  absl::optional<int64_t> input_steps_;  // RunCheck::input_steps
  int64_t first_step_ = 0;               // of the logdir's newest checkpoint when training began, 0 for a new run
  // Null if there is nothing to evaluate on, in which case not_evaluated_ says why.
  std::unique_ptr<RunEvaluator> evaluator_;
  std::string not_evaluated_;
};

// Returns "runs/<name>" for "<directory>/<name>.textproto".
std::string DefaultLogdir(const std::string& config_path);

// Returns the last `count` lines of a file from byte `offset` on, each indented by two spaces, or an empty string if
// the file cannot be read.
std::string LastLines(FileSystem* fs, const std::string& path, uint64_t offset, int count);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_RUN_REPORT_H_

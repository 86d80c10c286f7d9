#ifndef LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {

// A human-readable report of what a run loads from a checkpoint.
class WarmStartReport {
 public:
  // Records that the variable is loaded from `key`; `how` may add a note such as ", reshaped from [4]".
  void AddLoaded(absl::string_view variable, const Shape& shape, const std::string& key, absl::string_view how = "");
  // Records a warning that the user should look at.
  void AddWarning(std::string warning) { warnings_.push_back(std::move(warning)); }
  // Records that the variable is not loaded because the checkpoint lacks `key`.
  void AddMissing(const std::string& variable, const std::string& key);
  // Records that the variable is excluded from loading.
  void AddExcluded(const std::string& variable) { excluded_.push_back(variable); }

  // Names of the variables that the checkpoint lacks, each with its key if that differs: "hidden/kernel
  // (hidden/weights)".
  const std::vector<std::string>& missing() const { return missing_; }

  // Returns several lines without a final newline: which variables are loaded from which key, which keep their initial
  // value and why, and what remains unused in the checkpoint. `num_variables` is the total number of the model's
  // variables.
  std::string ToString(const TensorReader& checkpoint, int num_variables) const;

 private:
  std::vector<std::string> loaded_, warnings_, missing_, excluded_;
  std::set<std::string> used_keys_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_

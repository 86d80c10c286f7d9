#ifndef LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {

// What a start from a checkpoint's values takes from it, for people to read.
class WarmStartReport {
 public:
  // The variable takes the value under `key`; `how` may add something, ", reshaped from [4]".
  void AddLoaded(absl::string_view variable, const Shape& shape, const std::string& key, absl::string_view how = "");
  // It is not in the checkpoint under `key`.
  void AddMissing(const std::string& variable, const std::string& key);
  // It is not to be loaded.
  void AddExcluded(const std::string& variable) { excluded_.push_back(variable); }

  // "hidden/kernel (hidden/weights)", where the key is another.
  const std::vector<std::string>& missing() const { return missing_; }

  // Several lines, without a newline at the end: what is loaded from which key, what keeps its initial value and why,
  // and what of the checkpoint is not used. `num_variables` is how many the model has.
  std::string ToString(const TensorReader& checkpoint, int num_variables) const;

 private:
  std::vector<std::string> loaded_, missing_, excluded_;
  std::set<std::string> used_keys_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_REPORT_H_

#ifndef LOCKSTEP_COMMON_CLIENT_VARIABLE_PARTS_H_
#define LOCKSTEP_COMMON_CLIENT_VARIABLE_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Variables of a run, all at one step.
struct VariablesAtStep {
  struct Variable {
    // The name in the checkpoint: a variable, "<variable>/<optimizer state>", "global_step" (int64), ...
    std::string name;
    v1::DataType dtype = v1::DT_INVALID;
    Shape shape;
    // Empty if only names were requested.
    Tensor value;
  };
  int64_t step = 0;
  std::vector<Variable> variables;
};

// Assembly of variables from the parts in ReadVariables replies. Allocates memory only for content that has arrived,
// regardless of the size that a reply claims for a variable. Call Add for each reply in order, then Take. Not
// thread-safe.
class VariableParts {
 public:
  // With `names_only`, parts have no content.
  explicit VariableParts(bool names_only) : names_only_(names_only) {}

  // Errors: Internal if the reply does not continue the previous ones.
  absl::Status Add(const v1::ReadVariablesReply& reply);
  // Returns the variables. Internal if the last one is incomplete or no reply was added.
  absl::StatusOr<VariablesAtStep> Take();

 private:
  absl::Status AddPart(const v1::VariablePart& part);
  absl::Status BeginVariable(const v1::VariablePart& part);
  // True if the last variable is complete.
  bool whole() const { return content_.size() == wanted_; }

  const bool names_only_;
  VariablesAtStep read_;
  bool any_reply_ = false;
  // The last variable's content so far, and its total size in bytes.
  std::string content_;
  uint64_t wanted_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VARIABLE_PARTS_H_

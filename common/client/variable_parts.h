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
    // As a checkpoint names it: a variable, "<variable>/<optimizer state>", "global_step" (int64), ...
    std::string name;
    v1::DataType dtype = v1::DT_INVALID;
    Shape shape;
    // Empty when only names were asked for.
    Tensor value;
  };
  int64_t step = 0;
  std::vector<Variable> variables;
};

// Puts the parts of ReadVariables replies together. Takes no more memory than what has come, whatever a reply says of
// the size of a variable. Life: Add for each reply in order, then Take. Not thread-safe.
class VariableParts {
 public:
  // With `names_only` no part has content.
  explicit VariableParts(bool names_only) : names_only_(names_only) {}

  // Errors: Internal when the reply does not continue what has come.
  absl::Status Add(const v1::ReadVariablesReply& reply);
  // What has come. Internal when the last variable is not whole, or nothing came.
  absl::StatusOr<VariablesAtStep> Take();

 private:
  absl::Status AddPart(const v1::VariablePart& part);
  absl::Status BeginVariable(const v1::VariablePart& part);
  // All elements of the last variable have come.
  bool whole() const { return content_.size() == wanted_; }

  const bool names_only_;
  VariablesAtStep read_;
  bool any_reply_ = false;
  // Of the last variable: what came, and how many bytes it has.
  std::string content_;
  uint64_t wanted_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VARIABLE_PARTS_H_

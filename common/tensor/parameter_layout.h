#ifndef LOCKSTEP_COMMON_TENSOR_PARAMETER_LAYOUT_H_
#define LOCKSTEP_COMMON_TENSOR_PARAMETER_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The position of each of a model's variables in one flat array of floats, and its division into segments. An integer
// variable has the memory of as many floats as its elements, in their own type, need. The array holds the trained
// variables first, then the variables that update ops write, the state of update ops, and the constant variables. Each
// group is in the model's order. An array that holds only some of these, such as gradients or a version of the values,
// uses the same positions. Every variable starts at a multiple of kTensorAlignment bytes. A segment is a run of at most
// kSegmentElements elements of one variable. It is the unit in which gradients are summed, updates are applied and
// values are sent (docs/glossary.md). Segments are in the model's order. Immutable.
class ParameterLayout {
 public:
  // 256 KiB of floats: small enough to be summed in cache, large enough that the bookkeeping is negligible.
  static constexpr int64_t kSegmentElements = 65536;
  // Maximum number of elements in a model: half a terabyte of floats.
  static constexpr int64_t kMaxElements = int64_t{1} << 37;

  struct Variable {
    v1::VariableSpec spec;
    // True if the variable is neither trained nor written by an update op: only an Assign changes it.
    bool constant = false;
    int64_t elements = 0;
    // The size of an element. Every trained variable is float32.
    size_t element_bytes = sizeof(float);
    // Offset in the flat array, in floats.
    int64_t flat_offset = 0;
    int first_segment = 0;
    int num_segments = 0;

    size_t bytes() const { return static_cast<size_t>(elements) * element_bytes; }
  };
  struct Segment {
    int variable = 0;
    // Offset in the variable, in elements.
    int64_t offset = 0;
    // Offset in the flat array, in floats.
    int64_t flat_offset = 0;
    int64_t elements = 0;
  };
  struct UpdateOp {
    v1::UpdateOpSpec spec;
    int variable = 0;
    // With zero_debias, the index in update_state() of `biased`. `local_step` has the next index.
    int state = -1;
  };

  // Validates the declaration. Returns InvalidArgument naming the variable or update op and the problem: a missing or
  // repeated name, an unsupported dtype, a dimension that is not positive, too many elements, no trainable variable, an
  // unknown variable, or a name that the state of an update op needs.
  static absl::StatusOr<ParameterLayout> Create(const v1::ModelSpec& model);

  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<UpdateOp>& update_ops() const { return update_ops_; }
  // The state of update ops with zero_debias, in their order. It has names, shapes and positions like variables, but no
  // segments, because only the chief has it. It starts at zero.
  const std::vector<Variable>& update_state() const { return update_state_; }
  // Number of segments of trainable variables.
  int num_trainable_segments() const { return num_trainable_segments_; }
  // Returns the space that a variable of this size takes in the flat array, in floats: a multiple of kTensorAlignment.
  static int64_t PaddedFloats(size_t bytes);
  // Size of the flat array in floats, including padding.
  int64_t flat_elements() const { return flat_elements_; }
  // Size of the first part of the flat array, which holds the trained variables, in floats, including padding.
  int64_t trained_elements() const { return trained_elements_; }
  // Size in floats of the last part of the flat array, which holds the constant variables, and the offset of that part.
  int64_t constant_elements() const { return flat_elements_ - constants_offset_; }
  int64_t constants_offset() const { return constants_offset_; }
  // Returns where that part has the element at `flat_offset`. Negative if the element is before that part.
  int64_t OffsetInConstants(int64_t flat_offset) const { return flat_offset - constants_offset_; }

 private:
  // Adds the state of an update op with zero_debias.
  void AddState(UpdateOp* op);
  // Gives every variable, state and segment its position in the flat array.
  void PlaceAll();
  // Appends the variables for which `matches` returns true to the flat array.
  void PlaceIf(absl::FunctionRef<bool(const Variable&)> matches);
  void Place(Variable* variable);

  std::vector<Variable> variables_;
  std::vector<Segment> segments_;
  std::vector<UpdateOp> update_ops_;
  std::vector<Variable> update_state_;
  int num_trainable_segments_ = 0;
  int64_t flat_elements_ = 0;
  int64_t trained_elements_ = 0;
  int64_t constants_offset_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_PARAMETER_LAYOUT_H_

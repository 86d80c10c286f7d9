#include "lockstep/train/session/init/init_session.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep::train {
namespace {

absl::Status TooEarly(absl::string_view operation) {
  return absl::FailedPreconditionError(
      absl::StrCat(operation, ": the run has not begun; an init_fn assigns values, before the first step"));
}

// Collects the assigned values.
class InitSession : public Session {
 public:
  // `model` must outlive this object.
  explicit InitSession(const v1::ModelSpec& model) : model_(model) {}

  absl::Status Assign(absl::Span<const NamedTensor> values) override {
    for (const NamedTensor& value : values) {
      RETURN_IF_ERROR(Check(value));
      assigned_.insert_or_assign(value.name, value.value);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> GlobalStep() override { return 0; }
  bool is_chief() const override { return true; }
  bool ShouldStop() override { return false; }

  absl::StatusOr<StepResult> Run(const TrainOp&) override { return TooEarly("Run"); }
  absl::StatusOr<int64_t> NextStep() override { return TooEarly("NextStep"); }
  absl::StatusOr<ReadResult> Read(absl::Span<const std::string>) override { return TooEarly("Read"); }
  absl::Status ChangeSettings(const SettingsChange&) override { return TooEarly("ChangeSettings"); }
  absl::StatusOr<config::v1::RunSpec> Settings() override { return TooEarly("Settings"); }
  absl::StatusOr<std::vector<std::string>> Uninitialized() override { return TooEarly("Uninitialized"); }
  absl::StatusOr<std::string> Save() override { return TooEarly("Save"); }
  absl::Status AddSummary(const v1::Summary&, absl::optional<int64_t>) override { return TooEarly("AddSummary"); }
  absl::Status RequestStop(const std::string&) override { return TooEarly("RequestStop"); }
  absl::Status Close() override { return TooEarly("Close"); }

  // Returns the assigned values in the model's order.
  InitialValues Take() {
    InitialValues initial;
    for (const v1::VariableSpec& variable : model_.variables()) {
      const auto found = assigned_.find(variable.name());
      if (found != assigned_.end()) initial.values.push_back({found->first, std::move(found->second)});
    }
    initial.report =
        absl::StrCat("init_fn has set ", initial.values.size(), " of ", model_.variables_size(), " variables");
    return initial;
  }

 private:
  absl::Status Check(const NamedTensor& value) const {
    for (const v1::VariableSpec& variable : model_.variables()) {
      if (variable.name() != value.name) continue;
      ASSIGN_OR_RETURN(const Shape shape, Shape::Create(variable.shape()));
      const v1::DataType dtype = VariableType(variable.dtype());
      if (value.value.dtype() == dtype && value.value.shape() == shape) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("the value for ", value.name, " is ", NameOf(value.value.dtype()),
                                                     value.value.shape().ToString(), ", the variable is ",
                                                     NameOf(dtype), shape.ToString()));
    }
    return absl::InvalidArgumentError(absl::StrCat("the model has no variable ", value.name));
  }

  const v1::ModelSpec& model_;
  std::map<std::string, Tensor> assigned_;
};

}  // namespace

InitFunction InitWithSession(std::function<absl::Status(Session&)> init_fn) {
  return [init_fn = std::move(init_fn)](const v1::ModelSpec& model) -> absl::StatusOr<InitialValues> {
    InitSession session(model);
    RETURN_IF_ERROR(init_fn(session));
    return session.Take();
  };
}

}  // namespace lockstep::train

#include "lockstep/train/saver/assign_from.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/checkpoint/formats/float32_reader.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_report.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/train/saver/read_variable.h"
#include "lockstep/train/saver/variable_selection.h"

namespace lockstep::train {
namespace {

// Returns the values in `found`, which is keyed by name, in the model's order.
std::vector<NamedTensor> InOrder(const v1::ModelSpec& model, const std::map<std::string, Tensor>& found) {
  std::vector<NamedTensor> values;
  for (const v1::VariableSpec& variable : model.variables()) {
    const auto value = found.find(variable.name());
    if (value != found.end()) values.push_back({variable.name(), value->second});
  }
  return values;
}

const v1::VariableSpec* Find(const v1::ModelSpec& model, const std::string& name) {
  const auto found = std::find_if(model.variables().begin(), model.variables().end(),
                                  [&](const v1::VariableSpec& variable) { return variable.name() == name; });
  return found == model.variables().end() ? nullptr : &*found;
}

// Returns the variable that `name` denotes: the one with that name or, as in tf-slim, the only one that begins with it.
absl::StatusOr<std::string> Resolve(const std::vector<std::string>& variables, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<std::string> found, GetVariables(variables, name));
  if (found.empty()) return absl::InvalidArgumentError(absl::StrCat("variable ", name, " wasn't found"));
  if (found.size() == 1) return found.front();
  if (std::find(found.begin(), found.end(), name) != found.end()) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", name, " doesn't uniquely identify a variable: there are ", absl::StrJoin(found, ", ")));
}

absl::StatusOr<InitialValues> AssignValues(const std::map<std::string, Tensor>& values, const v1::ModelSpec& model) {
  const std::vector<std::string> variables = VariableNames(model);
  std::map<std::string, Tensor> found;
  InitialValues initial;
  initial.report = absl::StrCat("initial values given for ", values.size(), " of ", variables.size(), " variables");
  for (const auto& [name, value] : values) {
    ASSIGN_OR_RETURN(const std::string variable, Resolve(variables, name));
    ASSIGN_OR_RETURN(Shape shape, Shape::Create(Find(model, variable)->shape()));
    const v1::DataType dtype = VariableType(Find(model, variable)->dtype());
    if (value.dtype() != dtype || value.num_elements() != shape.num_elements()) {
      return absl::InvalidArgumentError(absl::StrCat("the value for ", variable, " is ", NameOf(value.dtype()),
                                                     value.shape().ToString(), ", the variable is ", NameOf(dtype),
                                                     shape.ToString()));
    }
    absl::StrAppend(&initial.report, "\n  ", variable, shape.ToString(),
                    variable == name ? "" : absl::StrCat(" from ", name));
    Tensor copy(dtype, std::move(shape));
    std::copy(value.bytes().begin(), value.bytes().end(), copy.data());
    if (!found.emplace(variable, std::move(copy)).second) {
      return absl::InvalidArgumentError(absl::StrCat("two values are given for variable ", variable));
    }
  }
  initial.values = InOrder(model, found);
  return initial;
}

absl::Status CheckTargets(const AssignMap& variables) {
  std::set<std::string> names;
  for (const auto& [key, targets] : variables) {
    for (const AssignTarget& target : targets) {
      if (names.insert(target.variable).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("variable ", target.variable, " is to be loaded twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TensorReader>> Open(FileSystem* fs, const std::string& prefix) {
  auto reader = OpenWeights(fs, prefix);
  if (!absl::IsNotFound(reader.status())) return reader;
  return absl::InvalidArgumentError(absl::StrCat("\"", prefix, "\" is not a valid checkpoint: there is no ",
                                                 FormatOfPath(prefix).has_value() ? "such file" : "index"));
}

// Returns the part of `whole` with shape `part` that begins at `offset`.
absl::StatusOr<Tensor> Cut(const Tensor& whole, const std::vector<int64_t>& offset, Shape part,
                           const std::string& variable) {
  const Shape& shape = whole.shape();
  bool fits = static_cast<int>(offset.size()) == shape.rank() && part.rank() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) {
    fits = offset[i] >= 0 && part.dim(i) <= shape.dim(i) && offset[i] <= shape.dim(i) - part.dim(i);
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", variable, part.ToString(), " at [",
                                                   absl::StrJoin(offset, ","), "] is no part of a value of shape ",
                                                   shape.ToString()));
  }
  Tensor result(whole.dtype(), part);
  const int64_t row = part.rank() == 0 ? 1 : part.dim(part.rank() - 1);
  const size_t row_bytes = static_cast<size_t>(row) * SizeOf(whole.dtype());
  for (int64_t first = 0; first < part.num_elements(); first += row) {
    int64_t source = 0, rest = first, stride = 1;
    for (int i = part.rank() - 1; i >= 0; --i) {
      source += (offset[i] + rest % part.dim(i)) * stride;
      rest /= part.dim(i);
      stride *= shape.dim(i);
    }
    std::memcpy(result.data() + first * SizeOf(whole.dtype()), whole.bytes().data() + source * SizeOf(whole.dtype()),
                row_bytes);
  }
  return result;
}

absl::StatusOr<Tensor> ReadTarget(const TensorReader& reader, const std::string& key, const AssignTarget& target,
                                  const v1::VariableSpec& variable, bool reshape) {
  if (target.offset.empty()) return ReadVariable(reader, key, variable, reshape);
  ASSIGN_OR_RETURN(const TensorReader::Entry entry, reader.Describe(key));
  v1::VariableSpec whole = variable;
  whole.clear_shape();
  for (const int64_t dim : entry.shape.dims()) whole.add_shape(dim);
  ASSIGN_OR_RETURN(const Tensor value, ReadVariable(reader, key, whole, /*reshape=*/false));
  ASSIGN_OR_RETURN(Shape part, Shape::Create(variable.shape()));
  return Cut(value, target.offset, std::move(part), target.variable);
}

// Returns the text with which the report describes a part or a reshaped value.
std::string How(const Shape& stored, const Shape& shape, const AssignTarget& target) {
  if (!target.offset.empty()) return absl::StrCat(", the part at [", absl::StrJoin(target.offset, ","), "]");
  return stored == shape ? "" : absl::StrCat(", reshaped from ", stored.ToString());
}

absl::StatusOr<InitialValues> AssignVariables(const std::string& prefix, const AssignMap& variables,
                                              const AssignOptions& options, const v1::ModelSpec& model) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader, Open(options.fs, prefix));
  WarmStartReport report;
  std::set<std::string> named;
  std::map<std::string, Tensor> found;
  for (const auto& [key, targets] : variables) {
    for (const AssignTarget& target : targets) {
      named.insert(target.variable);
      const v1::VariableSpec* const variable = Find(model, target.variable);
      if (variable == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("the model has no variable ", target.variable));
      }
      if (options.ignore_missing_vars && !reader->Contains(key)) {
        report.AddMissing(target.variable, key);
        continue;
      }
      ASSIGN_OR_RETURN(const TensorReader::Entry entry, reader->Describe(key));
      ASSIGN_OR_RETURN(Tensor value, ReadTarget(*reader, key, target, *variable, options.reshape));
      if (value.dtype() == v1::DT_FLOAT) RETURN_IF_ERROR(CheckFinite(*reader, key, value.flat<float>()));
      report.AddLoaded(target.variable, value.shape(), key, How(entry.shape, value.shape(), target));
      found.emplace(target.variable, std::move(value));
    }
  }
  for (const v1::VariableSpec& variable : model.variables()) {
    if (named.count(variable.name()) == 0) report.AddExcluded(variable.name());
  }
  return InitialValues{InOrder(model, found), report.ToString(*reader, model.variables_size())};
}

InitFunction NewFunction(const std::string& prefix, AssignMap variables, const AssignOptions& options) {
  return [prefix, variables = std::move(variables), options](const v1::ModelSpec& model) {
    return AssignVariables(prefix, variables, options, model);
  };
}

// Returns the keys of `variables` that the checkpoint lacks.
absl::StatusOr<std::vector<std::string>> FindMissing(const std::string& prefix, const AssignMap& variables,
                                                     FileSystem* fs) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader, Open(fs, prefix));
  std::vector<std::string> missing;
  for (const auto& [key, targets] : variables) {
    if (!reader->Contains(key)) missing.push_back(key);
  }
  return missing;
}

}  // namespace

InitFunction AssignFromValues(std::map<std::string, Tensor> values) {
  return [values = std::move(values)](const v1::ModelSpec& model) { return AssignValues(values, model); };
}

AssignMap ByName(absl::Span<const std::string> variables) {
  AssignMap map;
  for (const std::string& variable : variables) map[variable].emplace_back(variable);
  return map;
}

absl::StatusOr<InitFunction> AssignFromCheckpoint(const std::string& prefix, AssignMap variables,
                                                  const AssignOptions& options) {
  RETURN_IF_ERROR(CheckTargets(variables));
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, FindMissing(prefix, variables, options.fs));
  if (!missing.empty() && !options.ignore_missing_vars) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", prefix, " is missing variable ", absl::StrJoin(missing, ", ")));
  }
  for (const std::string& key : missing) LOG(WARNING) << "checkpoint " << prefix << " is missing variable " << key;
  return NewFunction(prefix, std::move(variables), options);
}

absl::StatusOr<absl::optional<InitFunction>> AssignFromCheckpointFn(const std::string& prefix, AssignMap variables,
                                                                    const AssignOptions& options) {
  if (variables.empty()) return absl::InvalidArgumentError("no variables are named that are to be loaded");
  RETURN_IF_ERROR(CheckTargets(variables));
  if (options.ignore_missing_vars) {
    ASSIGN_OR_RETURN(const std::vector<std::string> missing, FindMissing(prefix, variables, options.fs));
    for (const std::string& key : missing) LOG(WARNING) << "checkpoint " << prefix << " is missing variable " << key;
    if (missing.size() == variables.size()) {
      LOG(WARNING) << "no variables to restore from " << prefix;
      return absl::optional<InitFunction>();
    }
  }
  return absl::make_optional(NewFunction(prefix, std::move(variables), options));
}

}  // namespace lockstep::train

#include "lockstep/common/cluster/tf_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/nearest_name.h"

namespace lockstep {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr double kMaxIndex = 1e6;

absl::Status Wrong(absl::string_view field, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(kTfConfigVariable, ": ", field, " must be ", expected));
}

// Returns the field, or null if it is absent or JSON's null.
const Value* Find(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() || found->second.has_null_value() ? nullptr : &found->second;
}

absl::Status ReadString(const Struct& object, const std::string& name, absl::string_view field,
                        absl::optional<std::string>* out) {
  const Value* value = Find(object, name);
  if (value == nullptr) return absl::OkStatus();
  if (value->kind_case() != Value::kStringValue) return Wrong(field, "a string");
  *out = value->string_value();
  return absl::OkStatus();
}

absl::StatusOr<int> IndexOf(absl::string_view text, absl::string_view field) {
  int index;
  if (!absl::SimpleAtoi(text, &index) || index < 0) return Wrong(field, absl::StrCat("0 or more, not ", text));
  return index;
}

absl::StatusOr<int> ReadIndex(const Value& value, absl::string_view field) {
  if (value.kind_case() == Value::kStringValue) return IndexOf(value.string_value(), field);
  if (value.kind_case() != Value::kNumberValue) return Wrong(field, "a number");
  const double number = value.number_value();
  if (number < 0 || number >= kMaxIndex || number != std::floor(number)) {
    return Wrong(field, absl::StrCat("a whole number in [0, ", kMaxIndex, "), not ", number));
  }
  return static_cast<int>(number);
}

absl::StatusOr<ClusterSpec::Tasks> ReadTasks(const std::string& job, const Value& value) {
  const std::string field = absl::StrCat("cluster.", job);
  ClusterSpec::Tasks tasks;
  if (value.has_list_value()) {
    for (const Value& address : value.list_value().values()) {
      if (address.kind_case() != Value::kStringValue) return Wrong(field, "a list of addresses, each a string");
      tasks.emplace(static_cast<int>(tasks.size()), address.string_value());
    }
  } else if (value.has_struct_value()) {
    for (const auto& [index, address] : value.struct_value().fields()) {
      if (address.kind_case() != Value::kStringValue) return Wrong(field, "addresses by index, each a string");
      ASSIGN_OR_RETURN(const int number, IndexOf(index, absl::StrCat(field, "'s index")));
      if (!tasks.emplace(number, address.string_value()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(kTfConfigVariable, ": ", field, " has index ", number, " twice"));
      }
    }
  } else {
    return Wrong(field, "a list of addresses, or an object with addresses by index");
  }
  return tasks;
}

absl::StatusOr<ClusterSpec> ReadCluster(const Value& value) {
  if (!value.has_struct_value()) return Wrong("cluster", "an object with a list of addresses for each job");
  std::map<std::string, ClusterSpec::Tasks> jobs;
  for (const auto& [job, tasks] : value.struct_value().fields()) {
    ASSIGN_OR_RETURN(ClusterSpec::Tasks read, ReadTasks(job, tasks));
    // Skip a job that was scaled down to zero tasks.
    if (!read.empty()) jobs.emplace(job, std::move(read));
  }
  auto cluster = ClusterSpec::Create(std::move(jobs));
  if (!cluster.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kTfConfigVariable, ": ", cluster.status().message()));
  }
  return cluster;
}

// Rejects misspelled names and "sparseCluster", because a process that overlooked one of them would train alone. Other
// fields belong to other programs.
absl::Status CheckSpelling(const Struct& object) {
  constexpr size_t kMisspelt = 2;
  if (Find(object, "sparseCluster") != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTfConfigVariable,
                     " has a \"sparseCluster\", which leaves out tasks that a process has to know; "
                     "have the job describe its whole \"cluster\" (Kubeflow: no enableDynamicWorker)"));
  }
  const std::vector<std::string> known = {"cluster", "task", "environment", "model_dir"};
  for (const auto& [name, value] : object.fields()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    for (const std::string& meant : known) {
      if (EditDistance(absl::AsciiStrToLower(name), meant) > kMisspelt) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(kTfConfigVariable, " has a \"", name, "\"; did you mean \"", meant, "\"?"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json) {
  TfConfig config;
  if (json.empty()) return config;
  Struct object;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(json), &object);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTfConfigVariable, " is no JSON object: ", std::string(parsed.message())));
  }
  RETURN_IF_ERROR(CheckSpelling(object));
  if (const Value* cluster = Find(object, "cluster")) {
    ASSIGN_OR_RETURN(config.cluster, ReadCluster(*cluster));
  }
  if (const Value* task = Find(object, "task")) {
    if (!task->has_struct_value()) return Wrong("task", "an object with type and index");
    RETURN_IF_ERROR(ReadString(task->struct_value(), "type", "task.type", &config.task_type));
    if (const Value* index = Find(task->struct_value(), "index")) {
      ASSIGN_OR_RETURN(config.task_index, ReadIndex(*index, "task.index"));
    }
  }
  RETURN_IF_ERROR(ReadString(object, "environment", "environment", &config.environment));
  absl::optional<std::string> model_dir;
  RETURN_IF_ERROR(ReadString(object, "model_dir", "model_dir", &model_dir));
  config.model_dir = model_dir.value_or("");
  return config;
}

absl::StatusOr<TfConfig> TfConfigOfEnvironment() {
  const char* const json = std::getenv(kTfConfigVariable);
  return ParseTfConfig(json == nullptr ? "" : json);
}

}  // namespace lockstep

#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/cluster/cluster_spec.h"

namespace lockstep {

// The name of the environment variable in which TensorFlow's programs, Kubeflow and others tell a process its cluster.
inline constexpr char kTfConfigVariable[] = "TF_CONFIG";

// What the variable says:
//   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"], "ps": ["d:2222"]},
//    "task": {"type": "worker", "index": 1}, "environment": "cloud", "model_dir": "/runs/1"}
// A sparse job is {"worker": {"1": "c:2222"}}; an index may be a number or a string of one. All is optional. A value.
struct TfConfig {
  ClusterSpec cluster;
  absl::optional<std::string> task_type;
  absl::optional<int> task_index;
  absl::optional<std::string> environment;
  std::string model_dir;
};

// Fields that it does not know are ignored, as TensorFlow ignores them, but not one that is written almost as one of
// the four. The empty text says nothing. Errors: InvalidArgument names what is no JSON, the field that has another type
// or is misspelt, or what is wrong with the cluster.
absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json);

// Of this process's environment. Errors: those of ParseTfConfig.
absl::StatusOr<TfConfig> TfConfigOfEnvironment();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/cluster/cluster_spec.h"

namespace lockstep {

// The environment variable in which TensorFlow's programs, Kubeflow and others describe the cluster to a process.
inline constexpr char kTfConfigVariable[] = "TF_CONFIG";

// The contents of the variable:
//   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"], "ps": ["d:2222"]},
//    "task": {"type": "worker", "index": 1}, "environment": "cloud", "model_dir": "/runs/1"}
// A sparse job is {"worker": {"1": "c:2222"}}. An index may be a number or a string that contains one. Everything is
// optional. A value type.
struct TfConfig {
  ClusterSpec cluster;
  absl::optional<std::string> task_type;
  absl::optional<int> task_index;
  absl::optional<std::string> environment;
  std::string model_dir;
};

// Parses the variable's value. Ignores unknown fields, as TensorFlow does, except "sparseCluster" and names that are
// close misspellings of the four known ones. An empty string results in an empty configuration. Errors:
// InvalidArgument, which names invalid JSON, the field that is misspelled, not supported or of the wrong type, or the
// problem with the cluster.
absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json);

// Parses this process's environment variable. Returns the errors of ParseTfConfig.
absl::StatusOr<TfConfig> TfConfigOfEnvironment();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

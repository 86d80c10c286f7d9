#include "common/config/validation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/config/checks.h"
#include "common/config/config_problems.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace lockstep {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// More would not help, and numbers made of them stay small.
constexpr int64_t kMaxReplicas = 1 << 20;
constexpr int64_t kMaxThreads = 1024;
constexpr const char* kMetrics[] = {"accuracy", "top_5", "mean_loss", "rmse", "auc", "confusion_matrix"};

// Text and wire format take any number for an enum; only named ones mean something.
void CheckEnums(const std::string& prefix, const Message& message, ConfigProblems* problems) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  const auto& reflection = *message.GetReflection();
  for (const FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size && !field->is_map(); ++i) {
      const std::string path =
          field->is_repeated() ? absl::StrCat(prefix, field->name(), "[", i, "]") : absl::StrCat(prefix, field->name());
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CheckEnums(path + ".",
                   field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                        : reflection.GetMessage(message, field),
                   problems);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        const int value = field->is_repeated() ? reflection.GetRepeatedEnumValue(message, field, i)
                                               : reflection.GetEnumValue(message, field);
        problems->Require(path, value, field->enum_type()->FindValueByNumber(value) != nullptr,
                          absl::StrCat("a number that ", field->enum_type()->name(), " knows"));
      }
    }
  }
}

void CheckTransforms(const OptimizerConfig& optimizer, ConfigProblems* problems) {
  for (int i = 0; i < optimizer.multipliers_size(); ++i) {
    const std::string field = absl::StrCat("optimizer.multipliers[", i, "]");
    problems->RequireExpression(field + ".variables", optimizer.multipliers(i).variables());
    problems->RequireFinite(field + ".factor", optimizer.multipliers(i).factor());
  }
  problems->RequireNotNegative("optimizer.clip.by_value", optimizer.clip().by_value());
  problems->RequireNotNegative("optimizer.clip.by_norm", optimizer.clip().by_norm());
  problems->RequireNotNegative("optimizer.clip.by_global_norm", optimizer.clip().by_global_norm());
}

void CheckTraining(const TrainingConfig& training, ConfigProblems* problems) {
  problems->Require("training.steps", training.steps(), training.steps() > 0, "above 0, such as 1000");
  problems->Require("training.replicas_to_aggregate", training.replicas_to_aggregate(),
                    training.replicas_to_aggregate() >= 0 && training.replicas_to_aggregate() <= kMaxReplicas,
                    absl::StrCat("in [1, ", kMaxReplicas, "]"));
  problems->RequireNotNegative("training.startup_delay_steps", training.startup_delay_steps());
}

// "top_5" with any number above 0.
bool IsTopK(absl::string_view metric) {
  int64_t k = 0;
  return absl::ConsumePrefix(&metric, "top_") && absl::SimpleAtoi(metric, &k) && k > 0;
}

void CheckEvaluation(const EvaluationConfig& evaluation, const InputConfig& input, ConfigProblems* problems) {
  problems->RequireNotNegative("evaluation.every_steps", evaluation.every_steps());
  const auto has_name = [&](const InputConfig::Split& split) { return split.name() == evaluation.split(); };
  if (!evaluation.split().empty() && !absl::c_any_of(input.split(), has_name)) {
    problems->Add("evaluation.split",
                  absl::StrCat("is \"", evaluation.split(), "\", which is not a split of the input"));
  }
  for (int i = 0; i < evaluation.metric_size(); ++i) {
    const std::string& metric = evaluation.metric(i);
    if (absl::c_linear_search(kMetrics, metric) || IsTopK(metric)) continue;
    problems->Add(absl::StrCat("evaluation.metric[", i, "]"),
                  absl::StrCat("is \"", metric, "\", must be one of ", absl::StrJoin(kMetrics, ", ")));
  }
}

void CheckCluster(const ClusterConfig& cluster, ConfigProblems* problems) {
  if (cluster.has_lease_seconds()) problems->RequirePositive("cluster.lease_seconds", cluster.lease_seconds());
  problems->RequireNotNegative("cluster.chief_wait_seconds", cluster.chief_wait_seconds());
  problems->RequireNotNegative("cluster.linger_seconds", cluster.linger_seconds());
  problems->Require("cluster.compute_threads", cluster.compute_threads(),
                    cluster.compute_threads() >= 0 && cluster.compute_threads() <= kMaxThreads,
                    absl::StrCat("in [1, ", kMaxThreads, "]"));
}

void CheckCompression(const CompressionConfig& compression, ConfigProblems* problems) {
  if (!compression.has_top_k()) return;
  const double fraction = compression.top_k().fraction();
  problems->Require("compression.top_k.fraction", fraction, fraction > 0 && fraction <= 1, "in (0, 1], such as 0.1");
  if (compression.gradients() != CompressionConfig::FLOAT32) {
    problems->Add("compression.gradients", absl::StrCat("is ", CompressionConfig::Format_Name(compression.gradients()),
                                                        ", must be FLOAT32 together with compression.top_k"));
  }
}

}  // namespace

absl::Status ValidateRunConfig(const RunConfig& config) {
  ConfigProblems problems;
  CheckEnums("", config, &problems);
  CheckModel(config.model(), &problems);
  const bool needs_input = config.model().layer_size() > 0;
  if (needs_input || config.has_input()) CheckInput(config.input(), &problems);
  CheckOptimizerRule(config.optimizer(), &problems);
  CheckLearningRate(config.optimizer().learning_rate(), &problems);
  CheckTransforms(config.optimizer(), &problems);
  CheckTraining(config.training(), &problems);
  problems.RequireNotNegative("checkpoint.every_seconds", config.checkpoint().every_seconds());
  problems.RequireNotNegative("checkpoint.stop_seconds", config.checkpoint().stop_seconds());
  problems.RequireNotNegative("checkpoint.every_steps", config.checkpoint().every_steps());
  problems.RequireNotNegative("checkpoint.keep", config.checkpoint().keep());
  problems.RequireNotNegative("summary.every_steps", config.summary().every_steps());
  CheckEvaluation(config.evaluation(), config.input(), &problems);
  CheckCluster(config.cluster(), &problems);
  CheckCompression(config.compression(), &problems);
  return problems.ToStatus();
}

}  // namespace lockstep

#include "lockstep/common/config/validation/validation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "lockstep/common/config/validation/checks.h"
#include "lockstep/common/config/validation/config_problems.h"
#include "lockstep/common/config/validation/metric_names.h"
#include "lockstep/common/config/validation/warm_start_rules.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/common/step/training_policy.h"

namespace lockstep {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// Larger numbers would not help, and this limit keeps products small.
constexpr int64_t kMaxReplicas = 1 << 20;
constexpr int64_t kMaxThreads = 1024;

// The text and wire formats accept any number for an enum, but only named numbers have a meaning.
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

void CheckTransforms(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems) {
  for (int i = 0; i < optimizer.multipliers_size(); ++i) {
    const std::string field = absl::StrCat("optimizer.multipliers[", i, "]");
    problems->RequireExpression(field + ".variables", optimizer.multipliers(i).variables());
    problems->RequireFinite(field + ".factor", optimizer.multipliers(i).factor());
  }
  problems->RequireNotNegative("optimizer.clip.by_value", optimizer.clip().by_value());
  problems->RequireNotNegative("optimizer.clip.by_norm", optimizer.clip().by_norm());
  problems->RequireNotNegative("optimizer.clip.by_global_norm", optimizer.clip().by_global_norm());
  problems->RequireNotNegative("optimizer.clip.mean_by_global_norm", optimizer.clip().mean_by_global_norm());
}

// Checks that exactly one field determines the run's length.
void CheckSteps(const config::v1::TrainingConfig& training, ConfigProblems* problems) {
  if (training.additional_steps() != 0) {
    problems->RequirePositive("training.additional_steps", training.additional_steps());
    problems->Require("training.steps", training.steps(), training.steps() == 0,
                      "absent, as additional_steps is given");
    if (training.unbounded()) problems->Add("training.unbounded", "is true, but additional_steps is given");
  } else if (training.unbounded()) {
    problems->Require("training.steps", training.steps(), training.steps() == 0, "absent, as unbounded is given");
  } else {
    problems->Require("training.steps", training.steps(), training.steps() > 0, "above 0, such as 1000");
  }
}

void CheckTraining(const config::v1::TrainingConfig& training, ConfigProblems* problems) {
  CheckSteps(training, problems);
  problems->Require("training.replicas_to_aggregate", training.replicas_to_aggregate(),
                    training.replicas_to_aggregate() >= 0 && training.replicas_to_aggregate() <= kMaxReplicas,
                    absl::StrCat("in [1, ", kMaxReplicas, "]"));
  problems->RequireNotNegative("training.startup_delay_steps", training.startup_delay_steps());
  if (training.skip_non_finite() && training.end_on_non_finite()) {
    problems->Add("training.skip_non_finite",
                  "is true, but end_on_non_finite is, too; a step is skipped or ends the run");
  }
}

void CheckFirstArrivals(const config::v1::TrainingConfig& training, ConfigProblems* problems) {
  const int64_t replicas = std::max<int64_t>(1, training.replicas_to_aggregate());
  const config::v1::TrainingConfig::FirstArrivals& policy = training.first_arrivals();
  problems->Require("training.first_arrivals.total_replicas", policy.total_replicas(),
                    policy.total_replicas() >= 0 && policy.total_replicas() <= kMaxReplicas,
                    absl::StrCat("in [1, ", kMaxReplicas, "]"));
  if (policy.total_replicas() < 0) return;
  const int64_t total = policy.total_replicas() == 0 ? replicas : policy.total_replicas();
  const int64_t least = std::max<int64_t>(0, replicas - total);
  const int64_t tokens = policy.has_initial_tokens() ? policy.initial_tokens() : replicas;
  problems->Require("training.first_arrivals.initial_tokens", tokens, tokens >= least && tokens <= kMaxReplicas,
                    absl::StrCat("in [", least, ", ", kMaxReplicas, "]: ", total, " workers make a step of ", replicas,
                                 " contributions"));
  problems->Require("training.startup_delay_steps", training.startup_delay_steps(), training.startup_delay_steps() <= 0,
                    "absent, as first_arrivals is given, whose steps may need every worker");
}

// Rejects settings that require slots that any worker may compute, if the policy has none, and settings that would have
// no effect.
void CheckPolicy(const config::v1::RunSpec& config, ConfigProblems* problems) {
  const config::v1::TrainingConfig& training = config.training();
  const int64_t staged = config.cluster().max_staged_contributions();
  if (!ReadsStreams(training)) {
    problems->Require("cluster.max_staged_contributions", staged, staged == 0,
                      "absent: the policy is DETERMINISTIC, which sums contributions while they come in");
    if (training.record_order()) {
      problems->Add("training.record_order",
                    "is true, but the policy is DETERMINISTIC, whose weights depend on no order of arrival");
    }
    return;
  }
  problems->Require("cluster.max_staged_contributions", staged, staged >= 0 && staged <= kMaxReplicas,
                    absl::StrCat("in [1, ", kMaxReplicas, "]"));
  const std::string policy = PolicyName(training);
  if (config.has_audit()) {
    problems->Add("audit", absl::StrCat("is set, but the policy is ", policy,
                                        ": a batch is computed once, with values that no second worker has"));
  }
  if (config.compression().has_top_k()) {
    problems->Add("compression.top_k", absl::StrCat("is set, but the policy is ", policy,
                                                    ": estimates belong to the slots of a DETERMINISTIC run"));
  }
  if (config.cluster().max_partial_sums() != 0) {
    problems->Add("cluster.max_partial_sums",
                  absl::StrCat("is ", config.cluster().max_partial_sums(), ", must be absent: the policy is ", policy,
                               ", and contributions are summed in the order of their arrival"));
  }
  if (training.has_first_arrivals()) CheckFirstArrivals(training, problems);
  if (!training.has_async()) return;
  if (training.reduction() != config::v1::TrainingConfig::MEAN) {
    problems->Add("training.reduction", "is SUM, but async is given, and a step has one contribution");
  }
  problems->Require("training.replicas_to_aggregate", training.replicas_to_aggregate(),
                    training.replicas_to_aggregate() <= 1,
                    "absent, as async is given, and each contribution makes a step");
  if (training.async().has_max_staleness()) {
    problems->RequireNotNegative("training.async.max_staleness", training.async().max_staleness());
  }
}

void CheckEvaluation(const config::v1::EvaluationConfig& evaluation, const config::v1::InputConfig& input,
                     ConfigProblems* problems) {
  problems->RequireNotNegative("evaluation.every_steps", evaluation.every_steps());
  const auto has_name = [&](const config::v1::InputConfig::Split& split) { return split.name() == evaluation.split(); };
  const bool is_divided = input.test_fraction() > 0 && evaluation.split() == "test";
  if (!evaluation.split().empty() && !is_divided && !absl::c_any_of(input.split(), has_name)) {
    problems->Add("evaluation.split",
                  absl::StrCat("is \"", evaluation.split(), "\", which is not a split of the input"));
  }
  if (!evaluation.class_name().empty() && !evaluation.class_name_file().empty()) {
    problems->Add("evaluation.class_name_file", "is set, and so is class_name; use one of them");
  }
  for (int i = 0; i < evaluation.metric_size(); ++i) {
    const std::string& metric = evaluation.metric(i);
    if (IsBuiltInMetric(metric) || RegisteredMetricName(metric)) continue;
    problems->Add(absl::StrCat("evaluation.metric[", i, "]"),
                  absl::StrCat("is \"", metric, "\", must be one of ", MetricNames()));
  }
}

void CheckCluster(const config::v1::ClusterConfig& cluster, ConfigProblems* problems) {
  if (cluster.has_lease_seconds()) problems->RequirePositive("cluster.lease_seconds", cluster.lease_seconds());
  problems->RequireNotNegative("cluster.chief_wait_seconds", cluster.chief_wait_seconds());
  problems->RequireNotNegative("cluster.linger_seconds", cluster.linger_seconds());
  problems->Require("cluster.compute_threads", cluster.compute_threads(),
                    cluster.compute_threads() >= 0 && cluster.compute_threads() <= kMaxThreads,
                    absl::StrCat("in [1, ", kMaxThreads, "]"));
}

void CheckPartialSums(const config::v1::RunSpec& config, ConfigProblems* problems) {
  const int64_t bound = config.cluster().max_partial_sums();
  if (bound == 0) return;
  const int64_t slots = std::max<int64_t>(1, config.training().replicas_to_aggregate());
  // Top-k compression sums slot by slot, regardless of the order within a contribution.
  const bool top_k = config.compression().has_top_k();
  const int64_t least = top_k ? MostPartialSums(slots) : LeastPartialSums(slots);
  if (bound >= least) return;
  problems->Add("cluster.max_partial_sums", absl::StrCat("is ", bound, ", but the sums of ", slots, " slots need ",
                                                         least, " at least", top_k ? " with compression.top_k" : ""));
}

void CheckCompression(const config::v1::CompressionConfig& compression, ConfigProblems* problems) {
  if (!compression.has_top_k()) return;
  const double fraction = compression.top_k().fraction();
  problems->Require("compression.top_k.fraction", fraction, fraction > 0 && fraction <= 1, "in (0, 1], such as 0.1");
  if (compression.gradients() != config::v1::CompressionConfig::FLOAT32) {
    problems->Add("compression.gradients",
                  absl::StrCat("is ", config::v1::CompressionConfig::Format_Name(compression.gradients()),
                               ", must be FLOAT32 together with compression.top_k"));
  }
}

void CheckCheckpoints(const config::v1::CheckpointConfig& checkpoint, ConfigProblems* problems) {
  problems->RequireNotNegative("checkpoint.every_seconds", checkpoint.every_seconds());
  problems->RequireNotNegative("checkpoint.stop_seconds", checkpoint.stop_seconds());
  problems->RequireNotNegative("checkpoint.every_steps", checkpoint.every_steps());
  problems->RequireNotNegative("checkpoint.keep", checkpoint.keep());
  if (!checkpoint.has_warm_start_variables()) return;
  if (checkpoint.warm_start().empty()) {
    problems->Add("checkpoint.warm_start_variables", "is set, but checkpoint.warm_start names no checkpoint");
  }
  const absl::Status rules = WarmStartRules::Create(checkpoint.warm_start_variables()).status();
  if (rules.ok()) return;
  const std::pair<absl::string_view, absl::string_view> field_why =
      absl::StrSplit(rules.message(), absl::MaxSplits(' ', 1));
  problems->Add(absl::StrCat("checkpoint.warm_start_variables.", field_why.first), field_why.second);
}

}  // namespace

absl::Status ValidateRunSpec(const config::v1::RunSpec& config) {
  ConfigProblems problems;
  CheckEnums("", config, &problems);
  CheckModel(config.model(), &problems);
  const bool needs_input = config.model().layer_size() > 0;
  if (needs_input || config.has_input()) CheckInput(config.input(), needs_input, &problems);
  CheckOptimizerRule(config.optimizer(), &problems);
  CheckLearningRate(config.optimizer().learning_rate(), &problems);
  CheckTransforms(config.optimizer(), &problems);
  CheckTraining(config.training(), &problems);
  CheckCheckpoints(config.checkpoint(), &problems);
  problems.RequireNotNegative("summary.every_steps", config.summary().every_steps());
  problems.RequireNotNegative("summary.gradients_every_steps", config.summary().gradients_every_steps());
  CheckEvaluation(config.evaluation(), config.input(), &problems);
  CheckCluster(config.cluster(), &problems);
  CheckPolicy(config, &problems);
  CheckPartialSums(config, &problems);
  CheckCompression(config.compression(), &problems);
  if (config.training().skip_non_finite() && config.compression().has_top_k()) {
    problems.Add("training.skip_non_finite",
                 "is true, but with compression.top_k workers have kept what a skipped step would undo");
  }
  const double audited = config.audit().fraction();
  problems.Require("audit.fraction", audited, audited >= 0 && audited <= 1, "in [0, 1], such as 0.01");
  return problems.ToStatus();
}

}  // namespace lockstep

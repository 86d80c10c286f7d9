#include "lockstep/tests/conformance/script_op.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep::train {
namespace {

constexpr char kModel[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  optimizer { sgd {} learning_rate { initial: 0.05 } }
  training { unbounded: true replicas_to_aggregate: 1 }
)";
constexpr int kBatch = 2;

}  // namespace

absl::StatusOr<TrainOp> MakeScriptOp(const ScriptLine& line) {
  const int64_t steps = line.Int("input_steps").value_or(0);
  std::string input = absl::StrCat("split { name: 'train' synthetic { examples: ", kBatch * (steps > 0 ? steps : 8),
                                   " shape: 2 classes: 3 } } batch_size: ", kBatch);
  if (steps > 0) absl::StrAppend(&input, " epochs: 1");
  const std::string keep = line.Text("keep").empty() ? "" : absl::StrCat("checkpoint { keep: ", line.Text("keep"), "}");
  return CreateTrainOp(absl::StrCat(kModel, "input { ", input, " } ", keep));
}

}  // namespace lockstep::train

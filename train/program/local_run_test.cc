#include "lockstep/train/program/local_run.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/train/testing/hanging_model.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/model_registry.h"

namespace lockstep {
namespace {

REGISTER_MODEL("hangs",
               [](auto&, const ExampleSpec& examples,
                  const ModelOptions& options) -> absl::StatusOr<std::unique_ptr<Model>> {
                 config::v1::ModelConfig config;
                 const absl::Status parsed = ParseTextProto(
                     "layer { name: 'logits' dense { units: 3 } } loss { softmax_cross_entropy {} }", "hangs", &config);
                 if (!parsed.ok()) return parsed;
                 auto model = GraphModel::Create(config, examples, options);
                 if (!model.ok()) return model.status();
                 return std::make_unique<train::HangingModel>(*std::move(model), /*blocks=*/10);
               });

TEST(LocalRunTest, AHungWorkerDoesNotOutliveTheSaveOfAStop) {
  config::v1::RunSpec config;
  ASSERT_TRUE(ParseTextProto(R"(
    model { registered: "hangs" }
    optimizer { sgd {} learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { replicas_to_aggregate: 1 steps: 1000000000 })",
                             "test", &config)
                  .ok());
  ApplyDefaults(&config);
  const auto run = [&config] {
    LocalRunOptions options;
    options.logdir = testing::TempDir() + "/hangs";
    std::_Exit(RunLocal(config, options).exit_code);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kExitTerminated),
              "the last step is saved; a worker of this process hangs");
}

}  // namespace
}  // namespace lockstep

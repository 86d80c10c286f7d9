// A worker with its own model, "perceptron", which computes wrong results as specified by $ERRING_WORKER:
//   last_bit      in every slot
//   activation    with a different formula, which the model's fingerprint does not reveal
//   a path        in every slot once the file exists
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/tests/testing/erring_model.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/model_registry.h"
#include "lockstep/worker/session/worker_program.h"

namespace lockstep {
namespace {

class Perceptron : public ErringModel {
 public:
  using ErringModel::ErringModel;
  std::vector<Part> Fingerprint() const override { return {{"perceptron", "1"}}; }
};

absl::StatusOr<std::unique_ptr<Model>> CreatePerceptron(const ExampleSpec& examples, const ModelOptions& options) {
  const char* const errs = std::getenv("ERRING_WORKER");
  const std::string how = errs == nullptr ? "" : errs;
  config::v1::ModelConfig config;
  const absl::Status parsed = ParseTextProto(
      "layer { name: 'hidden' dense { units: 32 activation: RELU } } layer { name: 'logits' dense { units: 10 } } "
      "loss { softmax_cross_entropy {} }",
      "perceptron", &config);
  if (!parsed.ok()) return parsed;
  if (how == "activation") config.mutable_layer(0)->mutable_dense()->set_activation(config::v1::GELU);
  auto model = GraphModel::Create(config, examples, options);
  if (!model.ok()) return model.status();
  return std::make_unique<Perceptron>(*std::move(model), [how](const SlotKey&) {
    return how == "last_bit" || (how[0] == '/' && access(how.c_str(), F_OK) == 0);
  });
}

REGISTER_MODEL("perceptron", [](auto&, const ExampleSpec& examples, const ModelOptions& options) {
  return CreatePerceptron(examples, options);
});

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::WorkerMain(argc, argv); }

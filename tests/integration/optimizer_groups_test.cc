// Tests runs with optimizer groups, clipping of the mean gradient and slot weights, over real servers. The trained
// weights must depend neither on the number of workers nor on whether the chief is killed.
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 30;
constexpr int64_t kSlots = 4;

// A model that gives each slot a different weight.
class WeightedModel : public ForwardingModel {
 public:
  explicit WeightedModel(std::unique_ptr<Model> model) : ForwardingModel(std::move(model)) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    sink->OnWeight(0.3f * static_cast<float>((key.step + key.slot) % 5));
    return ForwardingModel::ComputeGradients(values, batch, key, sink);
  }
};

class OptimizerGroupsTest : public ::testing::Test {
 protected:
  OptimizerGroupsTest() {
    options_.config = SmallRunSpec(kSteps, kSlots);
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      nadam { weight_decay: 0.1 }
      learning_rate { table { steps: [0, 5, 30] rates: [0, 0.05, 0.01] } }
      clip { mean_by_global_norm: 0.01 }
      moving_average { decay: 0.9 variables: "kernel" variables: "bias" }
      group { variables: "bias$" weight_decay: 0 rate_factor: 2 moving_average: false }
    )",
                                                              options_.config.mutable_optimizer()));
    ApplyDefaults(&options_.config);
  }

  // Trains with this number of workers, and kills the chief once. Returns the digest.
  std::string Train(int workers) {
    TestCluster cluster(options_);
    EXPECT_TRUE(cluster.StartChief().ok());
    std::set<int> alive;
    for (int i = 0; i < workers; ++i) alive.insert(cluster.StartWorker());
    while (cluster.chief()->GetStatus().global_step() < 10) std::this_thread::yield();
    cluster.KillChief();
    EXPECT_TRUE(cluster.StartChief().ok());
    EXPECT_TRUE(cluster.Wait().ok());
    for (const int worker : alive) EXPECT_TRUE(cluster.JoinWorker(worker).ok());
    return cluster.Digest().value_or("none");
  }

  TestCluster::Options options_;
};

TEST_F(OptimizerGroupsTest, BitsDependOnNeitherWorkersNorKills) {
  std::set<std::string> digests;
  for (int workers = 1; workers <= 4; ++workers) digests.insert(Train(workers));
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(digests.count("none"), 0u);
}

TEST_F(OptimizerGroupsTest, WeightsOfSlotsKeepTheBits) {
  const std::string unweighted = Train(1);
  options_.change_workload = [](int, Workload* workload) {
    workload->model = std::make_unique<WeightedModel>(std::move(workload->model));
  };
  std::set<std::string> digests;
  for (int workers = 1; workers <= 4; ++workers) digests.insert(Train(workers));
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(digests.count(unweighted), 0u);
}

}  // namespace
}  // namespace lockstep

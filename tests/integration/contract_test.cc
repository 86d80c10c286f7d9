// Tests workers whose results differ from those of their run, over real servers. Each must be detected, and named, when
// it joins or is audited. The weights must be the same as in a run without it.
#include <algorithm>
#include <atomic>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/erring_model.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr int64_t kSteps = 40;

class ContractTest : public ::testing::TestWithParam<bool> {
 protected:
  ContractTest() {
    options_.config = SmallRunSpec(kSteps, /*slots=*/2);
    options_.local = GetParam();
  }

  std::string Undisturbed() {
    const auto digest = TrainAndDigest(options_, 1);
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.value_or("none");
  }
  // Lets worker 1 join a run while worker 0 waits at step 5, and expects that worker 1 is refused. Returns the error
  // message.
  std::string RefusalOfSecond() {
    const std::string expected = Undisturbed();
    std::atomic<bool> refused{false};
    options_.change_workload = [this](int index, Workload* workload) {
      if (index == 1) change_(workload);
    };
    options_.before_batch = [&refused](int64_t step) {
      while (step >= 5 && !refused.load()) std::this_thread::yield();
    };
    TestCluster cluster(options_);
    EXPECT_TRUE(cluster.StartChief().ok());
    const int first = cluster.StartWorker();
    while (cluster.chief()->GetStatus().global_step() < 2) std::this_thread::yield();
    const absl::Status status = cluster.JoinWorker(cluster.StartWorker());
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    refused = true;
    EXPECT_TRUE(cluster.Wait().ok());
    EXPECT_TRUE(cluster.JoinWorker(first).ok());
    EXPECT_EQ(cluster.Digest().value(), expected);
    return std::string(status.message());
  }
  // Starts a run with worker 0, kills that worker, and returns the final status of worker 1, which then joins the run.
  absl::Status JoinOfSecond(TestCluster* cluster) {
    EXPECT_TRUE(cluster->StartChief().ok());
    const int first = cluster->StartWorker();
    while (cluster->chief()->GetStatus().global_step() < 2) std::this_thread::yield();
    cluster->KillWorker(first);
    return cluster->JoinWorker(cluster->StartWorker());
  }

  TestCluster::Options options_;
  std::function<void(Workload*)> change_;
};

INSTANTIATE_TEST_SUITE_P(LocalAndRemote, ContractTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Local" : "Remote"; });

TEST_P(ContractTest, AnotherLastBitFailsTheCanary) {
  change_ = [](Workload* workload) {
    workload->model = std::make_unique<ErringModel>(std::move(workload->model), [](const SlotKey&) { return true; });
  };
  EXPECT_THAT(RefusalOfSecond(), HasSubstr("the gradient of logits/bias of worker-1 on host-1 differs from that of "
                                           "worker-0 on host-0"));
}

TEST_P(ContractTest, RefusesAnotherActivationByLayerName) {
  change_ = [this](Workload* workload) {
    config::v1::ModelConfig other = options_.config.model();
    other.mutable_layer(1)->mutable_batch_norm()->set_activation(config::v1::TANH);
    workload->model = CreateModel(other, workload->batches->spec()).value();
  };
  EXPECT_THAT(RefusalOfSecond(), HasSubstr("layer norm of worker-1 on host-1 differs from that of worker-0 on host-0"));
}

// A user's model without a fingerprint.
class SilentModel : public ErringModel {
 public:
  explicit SilentModel(std::unique_ptr<Model> model)
      : ErringModel(std::move(model), [](const SlotKey&) { return false; }) {}
  std::vector<Part> Fingerprint() const override { return {}; }
};

TEST_P(ContractTest, AnotherOwnActivationFailsTheCanary) {
  options_.change_workload = [this](int index, Workload* workload) {
    config::v1::ModelConfig model = options_.config.model();
    if (index == 1) model.mutable_layer(1)->mutable_batch_norm()->set_activation(config::v1::TANH);
    workload->model = std::make_unique<SilentModel>(CreateModel(model, workload->batches->spec()).value());
  };
  options_.config.mutable_training()->set_steps(1000000);
  TestCluster cluster(options_);
  const absl::Status status = JoinOfSecond(&cluster);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker-1 on host-1 differs from that of worker-0 on host-0"));
}

TEST_P(ContractTest, TheCanaryOutlivesTheChief) {
  options_.config.mutable_training()->set_steps(1000000);
  options_.change_workload = [](int index, Workload* workload) {
    if (index == 0) return;
    workload->model = std::make_unique<ErringModel>(std::move(workload->model), [](const SlotKey&) { return true; });
  };
  TestCluster cluster(options_);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int first = cluster.StartWorker();
  while (cluster.chief()->GetStatus().global_step() < 2) std::this_thread::yield();
  cluster.KillWorker(first);
  cluster.KillChief();
  ASSERT_TRUE(cluster.StartChief().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.JoinWorker(cluster.StartWorker())));
}

// The first step at which worker 1 computes wrong results, like a machine whose memory has become faulty. From then on,
// all its slots are wrong, but its canary is right.
constexpr int64_t kFlip = 10;

class AuditTest : public ContractTest {
 protected:
  void Audit(double fraction, config::v1::AuditConfig::OnMismatch on_mismatch) {
    options_.config.mutable_audit()->set_fraction(fraction);
    options_.config.mutable_audit()->set_on_mismatch(on_mismatch);
  }
  void LetWorkerOneErr() {
    options_.change_workload = [](int index, Workload* workload) {
      if (index != 1) return;
      workload->model = std::make_unique<ErringModel>(std::move(workload->model),
                                                      [](const SlotKey& key) { return key.step >= kFlip; });
    };
  }
  void Start(TestCluster* cluster, int workers) {
    ASSERT_TRUE(cluster->StartChief().ok());
    for (int i = 0; i < workers; ++i) cluster->StartWorker();
  }
};

INSTANTIATE_TEST_SUITE_P(LocalAndRemote, AuditTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Local" : "Remote"; });

TEST_P(AuditTest, DoesNotChangeTheWeights) {
  const std::string expected = Undisturbed();
  for (const double fraction : {0.0, 0.3, 1.0}) {
    Audit(fraction, config::v1::AuditConfig::FAIL);
    for (const int workers : {1, 2, 3}) {
      const auto digest = TrainAndDigest(options_, workers);
      ASSERT_TRUE(digest.ok()) << digest.status() << " " << workers << " workers, fraction " << fraction;
      EXPECT_EQ(*digest, expected) << workers << " workers, fraction " << fraction;
    }
  }
}

TEST_P(AuditTest, NamesTheWorkerWhoseMemoryErrs) {
  Audit(1, config::v1::AuditConfig::LOG);
  LetWorkerOneErr();
  options_.config.mutable_training()->set_steps(1000000);
  TestCluster cluster(options_);
  ASSERT_NO_FATAL_FAILURE(Start(&cluster, 3));
  v1::RunStatus status;
  do {
    std::this_thread::yield();
    status = cluster.chief()->GetStatus();
  } while (status.audit().last_difference().find("outvoted") == std::string::npos);
  EXPECT_THAT(status.audit().last_difference(),
              MatchesRegex("step [0-9]+, slot [01]: the gradient of logits/bias by worker-[0-9] on host-[0-9] differs "
                           "from that by worker-[0-9] on host-[0-9]; worker-1 on host-1 is outvoted by worker-0 on "
                           "host-0 and worker-2 on host-2"));
  EXPECT_GT(status.audit().differences(), 0);
  EXPECT_GE(status.audit().compared(), status.audit().differences());
  const int64_t step = status.global_step();
  while (cluster.chief()->GetStatus().global_step() < step + 5) std::this_thread::yield();  // it is only logged
}

TEST_P(AuditTest, AFlippedBitFailsTheRunBeforeCommit) {
  Audit(1, config::v1::AuditConfig::FAIL);
  LetWorkerOneErr();
  options_.config.mutable_training()->set_steps(100000);
  TestCluster cluster(options_);
  ASSERT_NO_FATAL_FAILURE(Start(&cluster, 2));
  const absl::Status status = cluster.Wait();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex("step [0-9]+, slot [01]: the gradient of logits/bias by worker-[01] on host-[01] differs from "
                   "that by worker-[01] on host-[01]"));
  const v1::RunStatus end = cluster.chief()->GetStatus();
  EXPECT_THAT(std::string(status.message()), HasSubstr("step " + std::to_string(end.global_step()) + ","))
      << "the step that was in progress";
}

TEST_P(AuditTest, SurvivesKills) {
  const std::string expected = Undisturbed();
  Audit(1, config::v1::AuditConfig::FAIL);
  TestCluster cluster(options_);
  ASSERT_NO_FATAL_FAILURE(Start(&cluster, 3));
  for (int i = 0; i < 4; ++i) {
    const int64_t step = cluster.chief()->GetStatus().global_step();
    while (cluster.chief()->GetStatus().global_step() < std::min<int64_t>(step + 5, kSteps)) std::this_thread::yield();
    cluster.KillWorker(i);
    cluster.StartWorker();
  }
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_EQ(cluster.Digest().value(), expected);
}

}  // namespace
}  // namespace lockstep

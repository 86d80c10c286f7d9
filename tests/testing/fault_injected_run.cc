#include "lockstep/tests/testing/fault_injected_run.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns a configuration in which the weights of the first layer have two segments and its normalization has an update
// op.
config::v1::RunSpec Config() {
  config::v1::RunSpec config = SmallRunSpec(FaultInjectedRun::kSteps, /*slots=*/4);
  config.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(6000);
  return config;
}

const std::string& Reference() {
  static const std::string* const digest = [] {
    TestCluster::Options options;
    options.config = Config();
    options.local = true;
    const auto result = TrainAndDigest(options, 1);
    EXPECT_TRUE(result.ok()) << result.status();
    return new std::string(result.value_or("none"));
  }();
  return *digest;
}

}  // namespace

constexpr int64_t FaultInjectedRun::kSteps;
constexpr int64_t FaultInjectedRun::kHeldStep;

FaultInjectedRun::FaultInjectedRun(const ChiefServer::Options& server, bool held)
    : held_(held), cluster_(Options(server)) {
  EXPECT_TRUE(cluster_.StartChief().ok());
  cluster_.StartWorker();
  MutexLock lock(&mutex_);
  while (held_ && !reached_) changed_.Wait(&mutex_);
}

FaultInjectedRun::~FaultInjectedRun() { Release(); }

TestCluster::Options FaultInjectedRun::Options(const ChiefServer::Options& server) {
  TestCluster::Options options;
  options.config = Config();
  options.server = server;
  options.before_batch = [this](int64_t step) { BeforeBatch(step); };
  return options;
}

void FaultInjectedRun::BeforeBatch(int64_t step) {
  MutexLock lock(&mutex_);
  if (step < kHeldStep) return;
  reached_ = true;
  changed_.SignalAll();
  while (held_) changed_.Wait(&mutex_);
}

void FaultInjectedRun::Release() {
  MutexLock lock(&mutex_);
  held_ = false;
  changed_.SignalAll();
}

void FaultInjectedRun::ExpectSameWeights() {
  Release();
  ASSERT_TRUE(cluster_.Wait().ok());
  for (const absl::Status& status : cluster_.JoinWorkers()) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(cluster_.Digest().value_or("none"), Reference());
}

}  // namespace lockstep

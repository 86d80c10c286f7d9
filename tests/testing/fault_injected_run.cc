#include "lockstep/tests/testing/fault_injected_run.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {
namespace {

// Returns a configuration in which the weights of the first layer have two segments and its normalization has an update
// op.
config::v1::RunSpec Config() {
  config::v1::RunSpec config = SmallRunSpec(FaultInjectedRun::kSteps, /*slots=*/4);
  config.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(6000);
  return config;
}

// The parts of a run that the tests compare.
struct Result {
  std::string digest;
  std::string counts;
};

std::string CountsOf(const Chief& chief) {
  v1::WatchRunReply reply;
  chief.FillWatch(&reply);
  const v1::RunStatus& status = reply.status();
  return absl::StrCat(reply.counters().sessions_opened(), " sessions, ", status.accepted(), " accepted, ",
                      status.duplicate(), " duplicate, ", status.stale(), " stale, ", status.rejected(), " rejected, ",
                      reply.counters().lease_expirations(), " leases expired");
}

// Waits for the end of the run.
Result ResultOf(TestCluster* cluster) {
  EXPECT_EQ(cluster->Wait(), absl::OkStatus());
  for (const absl::Status& status : cluster->JoinWorkers()) EXPECT_EQ(status, absl::OkStatus());
  return {cluster->Digest().value_or("none"), CountsOf(*cluster->chief())};
}

// Returns the result of an undisturbed run. It has a long lease, on which the result does not depend.
const Result& Reference() {
  static const Result* const result = [] {
    TestCluster::Options options;
    options.config = Config();
    options.config.mutable_cluster()->set_lease_seconds(FaultInjectedRun::kLongLeaseSeconds);
    options.local = true;
    TestCluster cluster(options);
    EXPECT_EQ(cluster.StartChief(), absl::OkStatus());
    cluster.StartWorker();
    return new Result(ResultOf(&cluster));
  }();
  return *result;
}

}  // namespace

constexpr int64_t FaultInjectedRun::kSteps;
constexpr int64_t FaultInjectedRun::kHeldStep;
constexpr double FaultInjectedRun::kLongLeaseSeconds;

FaultInjectedRun::FaultInjectedRun(const ChiefServer::Options& server, bool held, const GrpcClientOptions& client,
                                   double lease_seconds)
    : held_(held), cluster_(Options(server, client, lease_seconds)) {
  EXPECT_TRUE(cluster_.StartChief().ok());
  cluster_.StartWorker();
  MutexLock lock(&mutex_);
  while (held_ && !reached_) changed_.Wait(&mutex_);
}

FaultInjectedRun::~FaultInjectedRun() { Release(); }

TestCluster::Options FaultInjectedRun::Options(const ChiefServer::Options& server, const GrpcClientOptions& client,
                                               double lease_seconds) {
  TestCluster::Options options;
  options.config = Config();
  if (lease_seconds > 0) options.config.mutable_cluster()->set_lease_seconds(lease_seconds);
  options.server = server;
  options.client = client;
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
  EXPECT_EQ(ResultOf(&cluster_).digest, Reference().digest);
}

void FaultInjectedRun::ExpectUndisturbed() {
  ExpectSameWeights();
  EXPECT_EQ(CountsOf(*cluster_.chief()), Reference().counts);
}

}  // namespace lockstep

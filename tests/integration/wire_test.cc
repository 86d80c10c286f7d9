// Tests a foreign client that was written from proto/lockstep/v1/chief.proto alone.
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

// Trains to the end of the run.
void Train(TestCluster* cluster, ProtoOnlyWorker* stranger) {
  absl::Status waited;
  std::thread waiter([&] { waited = cluster->Wait(); });
  stranger->Train();
  if (testing::Test::HasFatalFailure()) cluster->chief()->ends()->RequestStop();
  waiter.join();
  ASSERT_TRUE(waited.ok()) << waited;
}

void ExpectTheSameBits(const config::v1::RunSpec& config) {
  TestCluster::Options options;
  options.config = config;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker stranger(cluster.address(), "proto_only_worker", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  ASSERT_NO_FATAL_FAILURE(Train(&cluster, &stranger));
  EXPECT_EQ(stranger.results()[v1::CONTRIBUTION_ACCEPTED], config.training().steps());
  EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(options, 2).value_or("no reference"));
}

TEST(WireTest, AStrangersClientTrainsToTheSameBits) {
  for (const int64_t slots : {1, 3}) ExpectTheSameBits(SmallRunSpec(/*steps=*/25, slots));
}

TEST(WireTest, AStrangersClientSpeaksBfloat16) {
  config::v1::RunSpec config = SmallRunSpec(/*steps=*/25, /*slots=*/3);
  config.mutable_compression()->set_gradients(config::v1::CompressionConfig::BFLOAT16);
  config.mutable_compression()->set_values(config::v1::CompressionConfig::BFLOAT16);
  ExpectTheSameBits(config);
}

// The run's other worker is Lockstep's own, so the canary and the digests of both are compared. The run ends once that
// has happened, because it is unknown how many steps one of the two makes before the other starts.
TEST(WireTest, AForeignClientsDigestsMatchOurs) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1'000'000'000, /*slots=*/2);
  options.config.mutable_compression()->set_gradients(config::v1::CompressionConfig::BFLOAT16);
  options.config.mutable_audit()->set_fraction(1);
  options.config.mutable_audit()->set_on_mismatch(config::v1::AuditConfig::FAIL);
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker stranger(cluster.address(), "proto_only_worker", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  stranger.AllowOthers();
  cluster.StartWorker();
  std::thread watch([&] {
    v1::RunStatus status;
    while ((status = cluster.chief()->GetStatus()).audit().compared() < 20) {
      if (testing::Test::HasFatalFailure()) return;  // Train has stopped the chief
      std::this_thread::yield();
    }
    EXPECT_EQ(status.worker_size(), 2);
    for (const v1::WorkerStatus& worker : status.worker()) {
      EXPECT_THAT(worker.address(), testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*")) << worker.name();
    }
    EXPECT_TRUE(cluster.chief()->ends()->RequestFinish("enough is compared").ok());
  });
  Train(&cluster, &stranger);
  watch.join();
  EXPECT_EQ(cluster.chief()->GetStatus().audit().differences(), 0);
}

// The chief is killed before the first step, and the worker that brought the values does not come back.
TEST(WireTest, AForeignClientBringsInitialValues) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/25, /*slots=*/2);
  TestCluster undisturbed(options), cluster(options);
  ASSERT_TRUE(undisturbed.StartChief().ok());
  ProtoOnlyWorker alone(undisturbed.address(), "alone", 1);
  alone.BringValues(0.01f);
  ASSERT_NO_FATAL_FAILURE(alone.Open());
  const std::string brought = alone.session().initial_values_digest();
  EXPECT_EQ(brought, alone.open_request().initial_values_digest());
  v1::ReadVariablesRequest read;
  read.add_name(alone.model().variables(0).name());
  const auto values = undisturbed.chief()->ReadVariables(read);
  ASSERT_TRUE(values.ok()) << values.status();
  const std::string& content = values->part(0).content();
  std::vector<float> expected(content.size() / sizeof(float));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = 0.01f * static_cast<float>(1 + i % 5);
  EXPECT_EQ(std::memcmp(content.data(), expected.data(), content.size()), 0);
  ASSERT_NO_FATAL_FAILURE(Train(&undisturbed, &alone));
  EXPECT_NE(undisturbed.Digest().value(), TrainAndDigest(options, 1).value()) << "the values count";

  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker first(cluster.address(), "first", 1);
  first.BringValues(0.01f);
  ASSERT_NO_FATAL_FAILURE(first.Open());
  cluster.KillChief();
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker other(cluster.address(), "other", 2);
  other.BringValues(0.02f);
  ASSERT_NO_FATAL_FAILURE(other.Open());
  EXPECT_EQ(other.session().initial_values_digest(), brought) << "its own are not the run's";
  cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  EXPECT_EQ(cluster.Digest().value(), undisturbed.Digest().value());
}

TEST(WireTest, AChiefListensOnSeveralAddresses) {
  const std::string socket = absl::StrCat("unix-abstract:lockstep-wire-test-", getpid());
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/5, /*slots=*/1);
  options.server.address = absl::StrCat(socket, ",127.0.0.1:0,127.0.0.1:0");
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  EXPECT_THAT(cluster.address(), testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*")) << "the first that has a port";
  ProtoOnlyWorker by_port(cluster.address(), "by port", 1), by_name(socket, "by name", 2);
  ASSERT_NO_FATAL_FAILURE(by_port.Open());
  ASSERT_NO_FATAL_FAILURE(by_name.Open());
  ASSERT_NO_FATAL_FAILURE(Train(&cluster, &by_name));
  EXPECT_EQ(by_name.results()[v1::CONTRIBUTION_ACCEPTED], 5);
  v1::WatchRunReply watched;
  cluster.chief()->FillWatch(&watched);
  EXPECT_GT(watched.counters().unix_bytes_received(), 0);
  EXPECT_EQ(watched.counters().unix_bytes_received(), watched.counters().bytes_received()) << "one worker trained";
  EXPECT_EQ(watched.counters().unix_bytes_sent(), watched.counters().bytes_sent());
}

}  // namespace
}  // namespace lockstep

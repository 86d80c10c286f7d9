// A stranger's client, made from proto/chief.proto alone.
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/stranger.h"
#include "tests/testing/test_cluster.h"

namespace lockstep {
namespace {

// To the end of the run.
void Train(TestCluster* cluster, Stranger* stranger) {
  absl::Status waited;
  std::thread waiter([&] { waited = cluster->Wait(); });
  stranger->Train();
  if (testing::Test::HasFatalFailure()) cluster->chief()->RequestStop();
  waiter.join();
  ASSERT_TRUE(waited.ok()) << waited;
}

void ExpectTheSameBits(const RunConfig& config) {
  TestCluster::Options options;
  options.config = config;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  Stranger stranger(cluster.address(), "stranger", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  ASSERT_NO_FATAL_FAILURE(Train(&cluster, &stranger));
  EXPECT_EQ(stranger.fates()[ACCEPTED], config.training().steps());
  EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(options, 2).value_or("no reference"));
}

TEST(WireTest, AStrangersClientTrainsToTheSameBits) {
  for (const int64_t slots : {1, 3}) ExpectTheSameBits(SmallRunConfig(/*steps=*/25, slots));
}

TEST(WireTest, AStrangersClientSpeaksBfloat16) {
  RunConfig config = SmallRunConfig(/*steps=*/25, /*slots=*/3);
  config.mutable_compression()->set_gradients(CompressionConfig::BFLOAT16);
  config.mutable_compression()->set_values(CompressionConfig::BFLOAT16);
  ExpectTheSameBits(config);
}

TEST(WireTest, AChiefListensOnSeveralAddresses) {
  const std::string socket = absl::StrCat("unix-abstract:lockstep-wire-test-", getpid());
  TestCluster::Options options;
  options.config = SmallRunConfig(/*steps=*/5, /*slots=*/1);
  options.server.address = absl::StrCat(socket, ",127.0.0.1:0,127.0.0.1:0");
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  EXPECT_THAT(cluster.address(), testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*")) << "the first that has a port";
  Stranger by_port(cluster.address(), "by port", 1), by_name(socket, "by name", 2);
  ASSERT_NO_FATAL_FAILURE(by_port.Open());
  ASSERT_NO_FATAL_FAILURE(by_name.Open());
  ASSERT_NO_FATAL_FAILURE(Train(&cluster, &by_name));
  EXPECT_EQ(by_name.fates()[ACCEPTED], 5);
}

}  // namespace
}  // namespace lockstep

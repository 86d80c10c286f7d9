// A stranger's client, made from proto/chief.proto alone.
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/stranger.h"
#include "tests/testing/test_cluster.h"

namespace lockstep {
namespace {

TEST(WireTest, AStrangersClientTrainsToTheSameBits) {
  for (const int64_t slots : {1, 3}) {
    TestCluster::Options options;
    options.config = SmallRunConfig(/*steps=*/25, slots);
    TestCluster cluster(options);
    ASSERT_TRUE(cluster.StartChief().ok());
    Stranger stranger(cluster.address(), "stranger", 1);
    ASSERT_NO_FATAL_FAILURE(stranger.Open());
    absl::Status waited;
    std::thread waiter([&] { waited = cluster.Wait(); });
    stranger.Train();
    if (testing::Test::HasFatalFailure()) cluster.chief()->RequestStop();
    waiter.join();
    ASSERT_TRUE(waited.ok()) << waited;
    EXPECT_EQ(stranger.fates()[ACCEPTED], 25);
    EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(options, 2).value_or("no reference"));
  }
}

}  // namespace
}  // namespace lockstep

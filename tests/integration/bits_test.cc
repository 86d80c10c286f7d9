// Tests that the weights depend only on the configuration, the data and the seed.
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 60;
constexpr int64_t kSlots = 4;

TestCluster::Options SmallCluster() {
  TestCluster::Options options;
  options.config = SmallRunSpec(kSteps, kSlots);
  return options;
}

std::string Reference() {
  static const std::string* const digest = [] {
    TestCluster::Options options = SmallCluster();
    options.local = true;
    const auto result = TrainAndDigest(options, 1);
    EXPECT_TRUE(result.ok()) << result.status();
    return new std::string(result.value_or("none"));
  }();
  return *digest;
}

class BitsTest : public testing::TestWithParam<int> {};

TEST_P(BitsTest, DoNotDependOnTheNumberOfWorkers) {
  const auto digest = TrainAndDigest(SmallCluster(), GetParam());
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, Reference());
}

INSTANTIATE_TEST_SUITE_P(Workers, BitsTest, testing::Values(1, 2, 3, 4, 6));

TEST(BitsTest, DoNotDependOnThreeLocalWorkers) {
  TestCluster::Options options = SmallCluster();
  options.local = true;
  const auto digest = TrainAndDigest(options, 3);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, Reference());
}

// Trains to the end with two workers, one of which has `compute_threads` threads. Kills the other worker and the chief
// three times.
void TrainAndKill(TestCluster* cluster, int compute_threads = 1) {
  ASSERT_TRUE(cluster->StartChief().ok());
  int worker = cluster->StartWorker();
  cluster->StartWorker(compute_threads);
  for (const int64_t step : {15, 30, 45}) {
    while (cluster->chief()->GetStatus().global_step() < step) std::this_thread::yield();
    cluster->KillWorker(worker);
    worker = cluster->StartWorker();
    cluster->KillChief();
    ASSERT_TRUE(cluster->StartChief().ok());
  }
  ASSERT_TRUE(cluster->Wait().ok());
}

struct Kind {
  const char* name;
  const char* compression;
};

config::v1::RunSpec Compressed(const Kind& kind) {
  config::v1::RunSpec config = SmallRunSpec(kSteps, kSlots);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kind.compression, config.mutable_compression()));
  return config;
}

// Compression changes the weights, but they still depend on nothing else.
class CompressedBitsTest : public testing::TestWithParam<Kind> {
 protected:
  CompressedBitsTest() { options_.config = Compressed(GetParam()); }

  std::string LocalDigest() {
    TestCluster::Options options = options_;
    options.local = true;
    return TrainAndDigest(options, 1).value_or("no reference");
  }

  TestCluster::Options options_;
};

TEST_P(CompressedBitsTest, DoNotDependOnWorkersNorOnTheWire) {
  const std::string reference = LocalDigest();
  EXPECT_NE(reference, Reference()) << "compression has no effect";
  TestCluster::Options local = options_;
  local.local = true;
  EXPECT_EQ(TrainAndDigest(local, 3).value_or("none"), reference);
  for (const int workers : {1, 2, 3, 4, 6}) {
    EXPECT_EQ(TrainAndDigest(options_, workers).value_or("none"), reference) << workers << " workers";
  }
}

TEST_P(CompressedBitsTest, DoNotDependOnWorkersForAnySlotCount) {
  options_.config.mutable_training()->set_replicas_to_aggregate(7);
  const std::string reference = LocalDigest();
  for (const int workers : {1, 2, 3}) {
    EXPECT_EQ(TrainAndDigest(options_, workers).value_or("none"), reference) << workers << " workers";
  }
}

TEST_P(CompressedBitsTest, SurviveDyingWorkersAndAKilledChief) {
  options_.config.mutable_checkpoint()->set_every_steps(7);
  TestCluster cluster(options_);
  ASSERT_NO_FATAL_FAILURE(TrainAndKill(&cluster));
  EXPECT_EQ(cluster.Digest().value_or("none"), LocalDigest());
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedBitsTest,
                         testing::Values(Kind{"Gradients", "gradients: BFLOAT16"}, Kind{"Values", "values: FLOAT16"},
                                         Kind{"Bfloat16", "gradients: BFLOAT16 values: BFLOAT16"},
                                         Kind{"Float16", "gradients: FLOAT16 values: FLOAT16"},
                                         Kind{"TopK", "top_k { fraction: 0.1 }"},
                                         Kind{"TopKAndValues", "top_k { fraction: 0.02 } values: BFLOAT16"}),
                         [](const auto& info) { return info.param.name; });

TEST(BitsTest, DependOnTheSeed) {
  TestCluster::Options options = SmallCluster();
  options.config.mutable_training()->set_seed(8);
  const auto digest = TrainAndDigest(options, 2);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_NE(*digest, Reference());
}

TEST(BitsTest, SurviveDyingWorkersAndAKilledChief) {
  TestCluster::Options options = SmallCluster();
  options.config.mutable_checkpoint()->set_every_steps(7);
  TestCluster cluster(options);
  ASSERT_NO_FATAL_FAILURE(TrainAndKill(&cluster, /*compute_threads=*/2));
  const auto digest = cluster.Digest();
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, Reference());
}

TEST(BitsTest, SurviveAStopAndAResume) {
  TestCluster::Options options = SmallCluster();
  options.config.mutable_training()->set_steps(kSteps / 2);
  TestCluster first(options);
  ASSERT_TRUE(first.StartChief().ok());
  first.StartWorker();
  ASSERT_TRUE(first.Wait().ok());
  first.JoinWorkers();
  first.KillChief();

  TestCluster::Options resumed = SmallCluster();
  TestCluster second(resumed);
  ASSERT_TRUE(second.fs()->CreateDirectory(TestCluster::kLogdir).ok());
  const auto names = *first.fs()->ListDirectory(TestCluster::kLogdir);
  for (const std::string& name : names) {
    const std::string path = JoinPath(TestCluster::kLogdir, name);
    ASSERT_TRUE(WriteFileAtomically(second.fs(), path, *ReadFile(first.fs(), path)).ok());
  }
  ASSERT_TRUE(second.StartChief().ok());
  EXPECT_EQ(second.chief()->GetStatus().global_step(), kSteps / 2);
  second.StartWorker();
  second.StartWorker();
  ASSERT_TRUE(second.Wait().ok());
  EXPECT_EQ(second.Digest().value_or("none"), Reference());
}

}  // namespace
}  // namespace lockstep

// Workers that read other data than their run, over real servers: they are refused, by name, and the run is as if they
// had never come.
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/config/defaults.h"
#include "common/io/memory_file_system.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/test_cluster.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;

constexpr char kFile[] = "/data.csv";

RunConfig CsvRunConfig() {
  RunConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
    input {
      split { name: "train" csv { file: "/data.csv" column { name: "x" } column { name: "y" type: LABEL } } }
      batch_size: 4
    }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { steps: 40 replicas_to_aggregate: 2 seed: 3 }
    checkpoint { every_steps: 10 }
    cluster { lease_seconds: 2 }
  )",
                                                            &config));
  ApplyDefaults(&config);
  return config;
}

class OtherDataTest : public ::testing::TestWithParam<bool> {
 protected:
  OtherDataTest() {
    options_.config = CsvRunConfig();
    options_.local = GetParam();
    options_.data = &data_;
  }

  void WriteRows(int rows) {
    std::string text = "x,y\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, (i * 37) % 11, ",", i % 2, "\n");
    ASSERT_TRUE(WriteFileAtomically(&data_, kFile, text).ok());
  }

  // Of a run that nothing happens to.
  std::string Undisturbed() {
    TestCluster cluster(options_);
    WriteRows(100);
    EXPECT_TRUE(cluster.StartChief().ok());
    cluster.StartWorker();
    EXPECT_TRUE(cluster.Wait().ok());
    return cluster.Digest().value();
  }

  static void ExpectRefused(const absl::Status& status, const std::string& worker) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ContainsRegex(worker + " reads 101 examples with CRC32C [0-9a-f]{8}, the run 100 examples with CRC32C "
                                       "[0-9a-f]{8}"));
  }

  MemoryFileSystem data_;
  TestCluster::Options options_;
};

INSTANTIATE_TEST_SUITE_P(LocalAndRemote, OtherDataTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Local" : "Remote"; });

TEST_P(OtherDataTest, AWorkerWithOneMoreRowIsRefusedAndTheRunGoesOn) {
  const std::string expected = Undisturbed();
  Mutex mutex;
  CondVar changed;
  bool begun = false, refused = false;
  options_.before_batch = [&](int64_t step) {
    MutexLock lock(&mutex);
    begun = true;
    changed.SignalAll();
    while (step >= 5 && !refused) changed.Wait(&mutex);
  };
  TestCluster cluster(options_);
  WriteRows(100);
  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  {
    MutexLock lock(&mutex);
    while (!begun) changed.Wait(&mutex);
  }
  WriteRows(101);
  const int other = cluster.StartWorker();
  ExpectRefused(cluster.JoinWorker(other), "worker-1");
  {
    MutexLock lock(&mutex);
    refused = true;
    changed.SignalAll();
  }
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorkers()[0].ok());
  EXPECT_EQ(cluster.Digest().value(), expected);
}

TEST_P(OtherDataTest, AResumeWithOtherDataIsRefusedAndOneWithTheSameGoesOn) {
  const std::string expected = Undisturbed();
  TestCluster cluster(options_);
  WriteRows(100);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int first = cluster.StartWorker();
  while (cluster.chief()->GetStatus().checkpoint().empty()) std::this_thread::yield();
  cluster.KillWorker(first);
  cluster.KillChief();

  WriteRows(101);
  ASSERT_TRUE(cluster.StartChief().ok());
  ExpectRefused(cluster.JoinWorker(cluster.StartWorker()), "worker-1");
  WriteRows(100);
  const int last = cluster.StartWorker();
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(last).ok());
  EXPECT_EQ(cluster.Digest().value(), expected);
}

}  // namespace
}  // namespace lockstep

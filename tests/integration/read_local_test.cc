// Tests clients that read variables during training, in a cluster without sockets. Each read must return the state of
// exactly one step, and reads must not change the weights.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/client/read_all.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 40;
constexpr int kReaders = 3;

TestCluster::Options LocalCluster(int64_t steps) {
  TestCluster::Options options;
  options.config = SmallRunSpec(steps, /*slots=*/4);
  options.config.mutable_checkpoint()->set_every_steps(3);
  options.local = true;
  options.housekeeping_period = absl::Milliseconds(1);
  return options;
}

// Returns the digest of a checkpoint that consists of the variables that were read.
std::string DigestOf(const VariablesAtStep& read) {
  MemoryFileSystem fs;
  auto writer = BundleWriter::Create(&fs, "read").value();
  for (const VariablesAtStep::Variable& variable : read.variables) {
    EXPECT_TRUE(writer->Add(variable.name, variable.dtype, variable.shape, variable.value.bytes()).ok());
  }
  EXPECT_TRUE(writer->Finish().ok());
  return CheckpointDigest(*BundleReader::Open(&fs, "read").value()).value();
}

// The digests of reads, by step. Thread-safe.
class ReadSteps {
 public:
  void Add(const VariablesAtStep& read) ABSL_LOCKS_EXCLUDED(mutex_) {
    const std::string digest = DigestOf(read);
    MutexLock lock(&mutex_);
    const auto it = digests_.emplace(read.step, digest).first;
    EXPECT_EQ(it->second, digest) << "two reads of step " << read.step << " differ";
    ++count_;
  }
  int count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return count_;
  }
  std::map<int64_t, std::string> digests() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return digests_;
  }

 private:
  mutable Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::string> digests_ ABSL_GUARDED_BY(mutex_);
};

TEST(ReadLocalTest, ReadsSeeOneStepAndDoNotDisturb) {
  ReadSteps steps;
  std::atomic<bool> over{false};
  TestCluster::Options options = LocalCluster(kSteps);
  // Workers wait, so that on average there is at least one read per step.
  options.before_batch = [&](int64_t step) {
    while (steps.count() < step && !over.load()) std::this_thread::yield();
  };
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 2; ++i) cluster.StartWorker();
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      const auto client = cluster.NewClient();
      while (!over.load()) {
        const auto read = ReadAll(client.get(), {});
        if (absl::IsUnavailable(read.status())) continue;  // there is no model yet
        EXPECT_TRUE(read.ok()) << read.status();
        if (!read.ok()) {
          over = true;
          return;
        }
        steps.Add(*read);
      }
    });
  }
  const absl::Status waited = cluster.Wait();
  over = true;
  for (std::thread& reader : readers) reader.join();
  ASSERT_TRUE(waited.ok()) << waited;
  cluster.JoinWorkers();
  EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(LocalCluster(kSteps), 1).value_or("no reference"));

  const std::map<int64_t, std::string> read = steps.digests();
  int compared = 0;
  for (const auto& [step, digest] : read) {
    if (step == 0 || (compared > 0 && step % 7 != 0 && step != kSteps)) continue;
    EXPECT_EQ(digest, TrainAndDigest(LocalCluster(step), 2).value_or("no reference")) << "step " << step;
    ++compared;
  }
  EXPECT_GT(read.size(), 1u) << "reads end, and others begin at later steps";
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace lockstep

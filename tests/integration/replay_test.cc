// Tests that replays (train/replay) recompute steps and slots of recorded runs to the same bits. The runs have real
// chiefs and workers.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/train/replay/run_replay.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::RunSpec RecordedRunSpec(int64_t steps, int64_t slots, int64_t save_every) {
  config::v1::RunSpec config = SmallRunSpec(steps, slots);
  config.mutable_checkpoint()->set_every_steps(save_every);
  config.mutable_checkpoint()->set_keep(0);
  return config;
}

// A gate at which workers meet at the second batch of their streams, so that they compute at the same time. They also
// wait there at batch `held` until the chief has been killed and restarted.
class Gate {
 public:
  Gate(int workers, int64_t held) : workers_(workers), held_(held) {}

  void BeforeBatch(int64_t position) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (position == 1) ++met_;
    if (position == held_) reached_ = true;
    changed_.SignalAll();
    while (position == 1 && met_ < workers_) changed_.Wait(&mutex_);
    while (position == held_ && !open_) changed_.Wait(&mutex_);
  }
  void AwaitReached() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!reached_) changed_.Wait(&mutex_);
  }
  void Open() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }

 private:
  const int workers_;
  const int64_t held_;
  Mutex mutex_;
  CondVar changed_;
  int met_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

// Trains to the end. Meanwhile, the chief is killed and restarted.
std::unique_ptr<TestCluster> TrainWithKill(const config::v1::RunSpec& config, int workers, int64_t held) {
  auto gate = std::make_shared<Gate>(workers, held);
  TestCluster::Options options;
  options.config = config;
  options.before_batch = [gate](int64_t position) { gate->BeforeBatch(position); };
  auto cluster = std::make_unique<TestCluster>(options);
  EXPECT_TRUE(cluster->StartChief().ok());
  for (int i = 0; i < workers; ++i) cluster->StartWorker();
  gate->AwaitReached();
  cluster->KillChief();
  EXPECT_TRUE(cluster->StartChief().ok());
  gate->Open();
  EXPECT_TRUE(cluster->Wait().ok());
  EXPECT_EQ(cluster->chief()->generation(), 2);
  for (const absl::Status& status : cluster->JoinWorkers()) EXPECT_TRUE(status.ok()) << status;
  return cluster;
}

RunReplay::Options ReplayOf(FileSystem* fs) {
  RunReplay::Options options;
  options.fs = fs;
  options.logdir = TestCluster::kLogdir;
  options.make_workload = [fs](const config::v1::RunSpec& config) {
    WorkloadOptions workload;
    workload.fs = fs;
    return LoadWorkload(config, workload);
  };
  return options;
}

// Recomputes the steps after `first` up to `last`. Returns the digest of the last one, and adds the number of compared
// checkpoints to `compared`.
std::string Replay(FileSystem* fs, int64_t first, int64_t last, int* compared) {
  RunReplay::Options options = ReplayOf(fs);
  options.on_step = [&](const RunReplay::Step& step) {
    if (step.checkpoint) ++*compared;
    EXPECT_FALSE(step.difference.has_value()) << "step " << step.step << " differs in " << *step.difference;
  };
  const auto replay = RunReplay::Open(options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  if (!replay.ok()) return "";
  const absl::Status computed = (*replay)->ComputeSteps(first, last);
  EXPECT_TRUE(computed.ok()) << computed;
  const auto writer = BundleWriter::Create(fs, "/replayed").value();
  EXPECT_TRUE(WriteSnapshot((*replay)->TakeSnapshot(), writer.get()).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return CheckpointDigest(*BundleReader::Open(fs, "/replayed").value()).value();
}

// Returns the digest of the step's checkpoint without the positions of streams, which are stored in the checkpoint but
// are not values.
std::string DigestOfValues(TestCluster* cluster, int64_t step) {
  const std::string prefix = absl::StrCat(TestCluster::kLogdir, "/model.ckpt-", step);
  const auto reader = BundleReader::Open(cluster->fs(), prefix).value();
  const auto writer = BundleWriter::Create(cluster->fs(), "/recorded").value();
  for (const std::string& name : reader->names()) {
    if (absl::StartsWith(name, "lockstep/")) continue;
    const Tensor tensor = reader->Read(name).value();
    EXPECT_TRUE(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()).ok());
  }
  EXPECT_TRUE(writer->Finish().ok());
  return CheckpointDigest(*BundleReader::Open(cluster->fs(), "/recorded").value()).value();
}

TEST(ReplayTest, AsynchronousRunUnderAKill) {
  config::v1::RunSpec config = RecordedRunSpec(/*steps=*/40, /*slots=*/1, /*save_every=*/10);
  config.mutable_training()->mutable_async();
  config.mutable_training()->set_record_order(true);
  const auto cluster = TrainWithKill(config, /*workers=*/2, /*held=*/12);
  int compared = 0;
  EXPECT_EQ(Replay(cluster->fs(), 0, 40, &compared), DigestOfValues(cluster.get(), 40));
  EXPECT_EQ(compared, 4);
  // Some contributions span the checkpoint of step 30, so the replay starts from an earlier one.
  EXPECT_EQ(Replay(cluster->fs(), 39, 40, &compared), DigestOfValues(cluster.get(), 40));
}

TEST(ReplayTest, FirstArrivalsUnderAKill) {
  config::v1::RunSpec config = RecordedRunSpec(/*steps=*/30, /*slots=*/2, /*save_every=*/10);
  config.mutable_training()->mutable_first_arrivals()->set_total_replicas(3);
  config.mutable_training()->set_record_order(true);
  const auto cluster = TrainWithKill(config, /*workers=*/3, /*held=*/8);
  int compared = 0;
  EXPECT_EQ(Replay(cluster->fs(), 0, 30, &compared), DigestOfValues(cluster.get(), 30));
  EXPECT_EQ(compared, 3);
}

TEST(ReplayTest, OrderThatIsNotOnRecord) {
  config::v1::RunSpec config = RecordedRunSpec(/*steps=*/4, /*slots=*/1, /*save_every=*/2);
  config.mutable_training()->mutable_async();
  TestCluster::Options options;
  options.config = config;
  options.local = true;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  RunReplay::Options replayed = ReplayOf(cluster.fs());
  const absl::Status status = RunReplay::Open(replayed).value()->ComputeSteps(0, 4);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("/logdir has no order of arrival for step 4; training.record_order keeps it"));
}

// The replay sums a step's slots along the same tree as the run, no matter how gradients and values were sent.
TEST(ReplayTest, DeterministicSteps) {
  for (const char* compression : {"", "gradients: BFLOAT16 values: FLOAT16", "top_k { fraction: 0.1 }"}) {
    config::v1::RunSpec config = RecordedRunSpec(/*steps=*/6, /*slots=*/3, /*save_every=*/2);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(compression, config.mutable_compression()));
    TestCluster::Options options;
    options.config = config;
    options.local = true;
    TestCluster cluster(options);
    ASSERT_TRUE(cluster.StartChief().ok());
    for (int i = 0; i < 2; ++i) cluster.StartWorker();
    ASSERT_TRUE(cluster.Wait().ok());
    int compared = 0;
    EXPECT_EQ(Replay(cluster.fs(), 0, 6, &compared), DigestOfValues(&cluster, 6)) << compression;
    EXPECT_EQ(compared, 3);
    EXPECT_EQ(Replay(cluster.fs(), 5, 6, &compared), DigestOfValues(&cluster, 6)) << compression;
  }
}

// With learning rate 1, the difference between one checkpoint and the next is the mean of the gradients that the
// workers computed.
TEST(ReplayTest, DeterministicSlotsMakeTheStep) {
  config::v1::RunSpec config = RecordedRunSpec(/*steps=*/6, /*slots=*/4, /*save_every=*/1);
  config.mutable_optimizer()->mutable_sgd();
  config.mutable_optimizer()->mutable_learning_rate()->set_initial(1);
  TestCluster::Options options;
  options.config = config;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 2; ++i) cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  std::vector<RunReplay::Slot> slots;
  for (int64_t slot = 0; slot < 4; ++slot) {
    RunReplay::Options replayed = ReplayOf(cluster.fs());
    const auto replay = RunReplay::Open(replayed);
    ASSERT_TRUE(replay.ok()) << replay.status();
    const auto computed = (*replay)->ComputeSlot(6, slot);
    ASSERT_TRUE(computed.ok()) << computed.status();
    EXPECT_EQ((*replay)->checkpoint(), "/logdir/model.ckpt-5");
    slots.push_back(*computed);
  }
  const auto before = BundleReader::Open(cluster.fs(), "/logdir/model.ckpt-5").value();
  const auto after = BundleReader::Open(cluster.fs(), "/logdir/model.ckpt-6").value();
  int variables = 0;
  for (size_t i = 0; i < slots[0].tensors.size(); ++i) {
    absl::string_view name = slots[0].tensors[i].first;
    if (!absl::ConsumePrefix(&name, "gradient/")) continue;
    ++variables;
    const Tensor old_value = before->Read(name).value(), new_value = after->Read(name).value();
    for (int64_t k = 0; k < old_value.num_elements(); ++k) {
      const auto g = [&](int slot) { return slots[slot].tensors[i].second.flat<float>()[k]; };
      const float mean = ((g(0) + g(1)) + (g(2) + g(3))) / 4;
      ASSERT_EQ(new_value.flat<float>()[k], old_value.flat<float>()[k] - mean) << name << "[" << k << "]";
    }
  }
  EXPECT_GE(variables, 4);
  EXPECT_NE(slots[0].loss, slots[1].loss);
  EXPECT_EQ(slots[0].tensors.back().first, "input/labels");

  for (const char* step : {"3", "4"}) {
    ASSERT_TRUE(cluster.fs()->Remove(absl::StrCat("/logdir/model.ckpt-", step, ".index")).ok());
  }
  // The replay includes the steps in between, which have no checkpoint.
  RunReplay::Options replayed = ReplayOf(cluster.fs());
  const auto replay = RunReplay::Open(replayed).value();
  ASSERT_TRUE(replay->ComputeSlot(5, 0).ok());
  EXPECT_EQ(replay->checkpoint(), "/logdir/model.ckpt-2");
}

TEST(ReplayTest, OtherDataAreRefused) {
  TestCluster::Options options;
  options.config = RecordedRunSpec(/*steps=*/2, /*slots=*/1, /*save_every=*/1);
  options.local = true;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  RunReplay::Options replayed = ReplayOf(cluster.fs());
  replayed.set = {"input.split[0].synthetic.examples=600"};
  EXPECT_THAT(RunReplay::Open(replayed).status().message(),
              HasSubstr("the worker's data are not the run's: this program reads 600 examples"));
  replayed.set = {"model.layer[0].dense.units=25"};
  EXPECT_THAT(
      RunReplay::Open(replayed).status().message(),
      ::testing::AllOf(HasSubstr(" in this program, "), HasSubstr("; --program=//FOLDER:TARGET names a program")));
  replayed.set = {"model.layer[0].dense.activation=TANH"};
  EXPECT_THAT(RunReplay::Open(replayed).status().message(),
              HasSubstr("layer hidden of this program differs from that of "));
}

}  // namespace
}  // namespace lockstep

// Tests runs that end before the last step, over real servers: because a contribution requests it, because the input
// ends, or because of an explicit request. With any number of workers, delays and kills, the run must end at the same
// step with the same weights, and all processes must succeed.
#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 60;
constexpr int64_t kSlots = 4;

// A model that requests the end in one slot of one step, and reports a summary for every slot.
class EndingModel : public ForwardingModel {
 public:
  EndingModel(std::unique_ptr<Model> model, int64_t step, int64_t slot)
      : ForwardingModel(std::move(model)), step_(step), slot_(slot) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    v1::Summary summary;
    v1::Summary::Value* const value = summary.add_value();
    value->set_tag(absl::StrCat("slot/", key.slot));
    value->set_simple_value(static_cast<float>(key.step));
    RETURN_IF_ERROR(sink->OnSummary(summary));
    if (key.step == step_ && key.slot == slot_) sink->RequestStop();
    return ForwardingModel::ComputeGradients(values, batch, key, sink);
  }

 private:
  const int64_t step_, slot_;
};

// A model that produces values that are not finite, each at a different step: the losses of two slots, the gradients of
// a third, and an update value of a fourth.
class DivergingModel : public ForwardingModel {
 public:
  explicit DivergingModel(std::unique_ptr<Model> model) : ForwardingModel(std::move(model)) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    Sink diverging(sink, key);
    return ForwardingModel::ComputeGradients(values, batch, key, &diverging);
  }

 private:
  class Sink : public ForwardingSink {
   public:
    Sink(GradientSink* sink, const SlotKey& key) : ForwardingSink(sink), key_(key) {}

    bool OnLoss(float loss) override { return sink()->OnLoss(Is(8, 3) || Is(25, 0) ? kNaN : loss); }
    void OnUpdate(int index, Elements value) override {
      std::vector<float> changed(value.as<float>(), value.as<float>() + value.size());
      if (Is(20, 1)) changed.back() = -std::numeric_limits<float>::infinity();
      sink()->OnUpdate(index, changed);
    }
    void OnGradient(int variable) override {
      if (Is(14, 2)) *sink()->GradientBuffer(variable) = kNaN;
      sink()->OnGradient(variable);
    }

   private:
    static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    bool Is(int64_t step, int64_t slot) const { return key_.step == step && key_.slot == slot; }

    const SlotKey key_;
  };
};

class EndsTest : public ::testing::Test {
 protected:
  EndsTest() { options_.config = SmallRunSpec(kSteps, kSlots); }

  // Trains with this number of workers. Repeatedly kills the chief or a worker, and starts another one. Returns the
  // digest.
  std::string Train(int workers, uint64_t seed) {
    TestCluster cluster(options_);
    EXPECT_TRUE(cluster.StartChief().ok());
    std::set<int> alive;
    for (int i = 0; i < workers; ++i) alive.insert(cluster.StartWorker());
    std::mt19937_64 random(seed);
    for (const int64_t step : {5, 11, 17}) {
      while (cluster.chief()->GetStatus().global_step() < step) std::this_thread::yield();
      const bool chief = random() % 3 == 0;
      if (chief) {
        cluster.KillChief();
        EXPECT_TRUE(cluster.StartChief().ok());
      } else if (workers > 1) {
        const int victim = *std::next(alive.begin(), static_cast<int>(random() % alive.size()));
        cluster.KillWorker(victim);
        alive.erase(victim);
        alive.insert(cluster.StartWorker());
      }
    }
    EXPECT_TRUE(cluster.Wait().ok());
    for (const int worker : alive) EXPECT_TRUE(cluster.JoinWorker(worker).ok());
    steps_.insert(cluster.chief()->GetStatus().global_step());
    return cluster.Digest().value_or("none");
  }
  // Trains with one to five workers, and expects that all runs end at `step` with the same digest. Returns the digest.
  std::string ExpectOneEnd(int64_t step) {
    std::set<std::string> digests;
    for (int workers = 1; workers <= 5; ++workers) digests.insert(Train(workers, workers));
    EXPECT_EQ(digests.size(), 1u);
    EXPECT_EQ(steps_, std::set<int64_t>({step}));
    return *digests.begin();
  }

  // Returns the contents of a step's checkpoint, without the global step.
  static std::map<std::string, std::string> Values(TestCluster* cluster, int64_t step) {
    const auto reader = BundleReader::Open(cluster->fs(), absl::StrCat(TestCluster::kLogdir, "/model.ckpt-", step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::map<std::string, std::string> values;
    if (!reader.ok()) return values;
    for (const std::string& key : (*reader)->names()) {
      if (key == "global_step") continue;
      const Tensor tensor = (*reader)->Read(key).value();
      values[key] = std::string(tensor.bytes());
    }
    return values;
  }

  TestCluster::Options options_;
  std::set<int64_t> steps_;
};

TEST_F(EndsTest, AContributionCanEndTheRunAtItsStep) {
  options_.change_workload = [](int, Workload* workload) {
    workload->model = std::make_unique<EndingModel>(std::move(workload->model), /*step=*/29, /*slot=*/2);
  };
  ExpectOneEnd(30);
}

TEST_F(EndsTest, EndOfInputEndsBeforeTheMissingStep) {
  const int64_t examples = options_.config.input().split(0).synthetic().examples();
  const int64_t per_step = kSlots * options_.config.input().batch_size();
  const int64_t epochs = 25 * per_step / examples + 1;
  options_.config.mutable_input()->set_epochs(epochs);
  const int64_t last = epochs * examples / per_step;
  options_.config.mutable_training()->clear_steps();
  options_.config.mutable_training()->set_unbounded(true);
  ASSERT_GE(last, 20) << "the kills come before";
  ExpectOneEnd(last);
}

TEST_F(EndsTest, SkippedNonFiniteStepsOnlyCount) {
  options_.change_workload = [](int, Workload* workload) {
    workload->model = std::make_unique<DivergingModel>(std::move(workload->model));
  };
  options_.config.mutable_training()->set_skip_non_finite(true);
  const std::string digest = ExpectOneEnd(kSteps);
  // Also tests an undisturbed run in which the worker maps the values. Exactly these four steps must be skipped, and
  // the checkpoint of each must be the same as that of the previous step.
  options_.share_memory = true;
  options_.config.mutable_checkpoint()->set_every_steps(1);
  options_.config.mutable_checkpoint()->set_keep(0);
  TestCluster cluster(options_);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int worker = cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(worker).ok());
  EXPECT_EQ(cluster.chief()->GetStatus().skipped_steps(), 4);
  EXPECT_EQ(cluster.Digest().value(), digest);
  std::set<int64_t> unchanged;
  for (int64_t step = 1; step <= kSteps; ++step) {
    if (Values(&cluster, step) == Values(&cluster, step - 1)) unchanged.insert(step);
  }
  EXPECT_EQ(unchanged, std::set<int64_t>({9, 15, 21, 26}));
}

TEST_F(EndsTest, AWorkersEndHoldsForAllGenerations) {
  TestCluster cluster(options_);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int worker = cluster.StartWorker();
  while (cluster.chief()->GetStatus().global_step() < 10) std::this_thread::yield();
  // A peer without the session's secret id is rejected.
  v1::RequestEndRequest request;
  request.set_session_id(12345);
  request.set_generation(cluster.chief()->generation());
  EXPECT_TRUE(absl::IsAborted(cluster.NewClient()->RequestFinish(request).status()));
  ASSERT_TRUE(cluster.RequestFinish(worker, "enough").ok());
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(worker).ok());
  const int64_t ended = cluster.chief()->GetStatus().global_step();
  EXPECT_LT(ended, kSteps);
  const auto record = ReadRunRecord(cluster.fs(), cluster.kLogdir);
  ASSERT_TRUE(record.ok() && *record);
  EXPECT_EQ((*record)->end().step(), ended);
  EXPECT_EQ((*record)->end().reason(), "worker-0 on host-0 asked for it: enough");
  // When the chief is restarted, the run continues.
  cluster.KillChief();
  ASSERT_TRUE(cluster.StartChief().ok());
  const int other = cluster.StartWorker();
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(other).ok());
  EXPECT_EQ(cluster.chief()->GetStatus().global_step(), kSteps);
  options_.change_workload = nullptr;
  EXPECT_EQ(cluster.Digest().value(), TrainAndDigest(options_, 2).value());
}

}  // namespace
}  // namespace lockstep

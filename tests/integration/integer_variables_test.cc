// Tests variables of integers: update ops change them, gradients depend on them, and they survive a killed chief.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSteps = 20, kSlots = 4;
constexpr int64_t kLarge = int64_t{1} << 40;
constexpr char kIntegers[] = R"pb(
  variables {
    name: "seen"
    dtype: DT_INT64
    shape: 2
    initializer { constant { value: -1 } }
  }
  variables { name: "last" dtype: DT_UINT8 shape: 3 }
  variables {
    name: "factor"
    dtype: DT_INT32
    initializer { constant { value: 3 } }
  }
  variables {
    name: "flags"
    dtype: DT_BOOL
    shape: 5
    initializer { constant { value: 1 } }
  }
  update_ops { variable: "seen" kind: ASSIGN_ADD }
  update_ops { variable: "last" kind: ASSIGN })pb";

// Passes a base model's results on, with gradients of its first variable that are multiplied by a number, and its own
// updates.
class CountingSink : public GradientSink {
 public:
  // `sink` must outlive this object.
  CountingSink(float factor, int64_t elements, int first_update, const SlotKey& key, GradientSink* sink)
      : factor_(factor), elements_(elements), first_update_(first_update), key_(key), sink_(*sink) {}
  bool OnLoss(float loss) override {
    if (!sink_.OnLoss(loss)) return false;
    const int64_t seen[] = {1, kLarge + key_.slot};
    const auto last = static_cast<uint8_t>(key_.step * 16 + key_.slot);
    sink_.OnUpdate(first_update_, seen);
    sink_.OnUpdate(first_update_ + 1, std::vector<uint8_t>{last, 0, 255});
    return true;
  }
  void OnUpdate(int index, Elements value) override { sink_.OnUpdate(index, value); }
  float* GradientBuffer(int variable) override { return sink_.GradientBuffer(variable); }
  void OnGradient(int variable) override {
    float* const gradient = GradientBuffer(variable);
    for (int64_t i = 0; variable == 0 && i < elements_; ++i) gradient[i] *= factor_;
    sink_.OnGradient(variable);
  }

 private:
  const float factor_;
  const int64_t elements_;
  const int first_update_;
  const SlotKey key_;
  GradientSink& sink_;
};

class CountingModel : public Model {
 public:
  explicit CountingModel(std::unique_ptr<Model> model) : model_(std::move(model)), spec_(model_->spec()) {
    v1::ModelSpec integers;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kIntegers, &integers));
    spec_.MergeFrom(integers);
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    const int first = model_->spec().variables_size();
    // All of them count, so that a value that a worker lacks changes the gradients.
    int64_t sum = ValueAs<int64_t>(values, first)[0] + ValueAs<int64_t>(values, first)[1] % 1000;
    for (int i = 0; i < 3; ++i) sum += ValueAs<uint8_t>(values, first + 1)[i];
    sum *= ValueAs<int32_t>(values, first + 2)[0];
    for (int i = 0; i < 5; ++i) sum += ValueAs<bool>(values, first + 3)[i] ? 1 : 0;
    const auto& shape = spec_.variables(0).shape();
    CountingSink counting(1 + static_cast<float>(sum % 64) / 64, shape[0] * shape[1], model_->spec().update_ops_size(),
                          key, sink);
    return model_->ComputeGradients(values.subspan(0, static_cast<size_t>(first)), batch, key, &counting);
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  const std::unique_ptr<Model> model_;
  v1::ModelSpec spec_;
};

enum class Path { kInProcess, kStreamed, kShared };

TestCluster::Options ClusterOf(Path path) {
  TestCluster::Options options;
  options.config = SmallRunSpec(kSteps, kSlots);
  options.local = path == Path::kInProcess;
  options.share_memory = path == Path::kShared;
  options.change_workload = [](int, Workload* workload) {
    workload->model = std::make_unique<CountingModel>(std::move(workload->model));
  };
  return options;
}

TEST(IntegerVariablesTest, BitsDoNotDependOnThePath) {
  const auto reference = TrainAndDigest(ClusterOf(Path::kInProcess), 1);
  ASSERT_TRUE(reference.ok()) << reference.status();
  for (const Path path : {Path::kStreamed, Path::kShared}) {
    for (const int workers : {1, 3}) {
      EXPECT_EQ(TrainAndDigest(ClusterOf(path), workers).value_or("none"), *reference)
          << static_cast<int>(path) << " with " << workers << " workers";
    }
  }
}

TEST(IntegerVariablesTest, AreExactAfterAKilledChief) {
  TestCluster cluster(ClusterOf(Path::kStreamed));
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 2; ++i) cluster.StartWorker();
  while (cluster.chief()->GetStatus().global_step() < kSteps / 2) std::this_thread::yield();
  cluster.KillChief();
  ASSERT_TRUE(cluster.StartChief().ok());
  ASSERT_TRUE(cluster.Wait().ok());
  for (const absl::Status& status : cluster.JoinWorkers()) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(ClusterOf(Path::kInProcess), 1).value());
  const auto reader = BundleReader::Open(cluster.fs(), absl::StrCat(TestCluster::kLogdir, "/model.ckpt-", kSteps));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Tensor seen = (*reader)->Read("seen").value(), last = (*reader)->Read("last").value();
  ASSERT_EQ(seen.dtype(), v1::DT_INT64);
  ASSERT_EQ(last.dtype(), v1::DT_UINT8);
  const int64_t slots = kSteps * kSlots;
  EXPECT_THAT(seen.flat<int64_t>(), ElementsAre(slots - 1, slots * kLarge + kSteps * (0 + 1 + 2 + 3) - 1));
  EXPECT_THAT(last.flat<uint8_t>(), ElementsAre(static_cast<uint8_t>((kSteps - 1) * 16 + kSlots - 1), 0, 255));
  EXPECT_EQ((*reader)->Read("flags").value().dtype(), v1::DT_BOOL);
}

}  // namespace
}  // namespace lockstep

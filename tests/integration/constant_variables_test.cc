// Tests variables that are neither trained nor written by update ops. Every worker keeps them, and they are sent once.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 200000;  // in the constant variable, which has four segments
constexpr char kBase[] = R"pb(
  name: "base"
  dtype: DT_FLOAT
  shape: 200000
  initializer { constant { value: 0.5 } })pb";

v1::VariableSpec Base() {
  v1::VariableSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kBase, &spec));
  return spec;
}

// A sink that multiplies gradients by a number.
class ScaledSink : public ForwardingSink {
 public:
  // `model` and `sink` must outlive this object.
  ScaledSink(float factor, const v1::ModelSpec* model, GradientSink* sink)
      : ForwardingSink(sink), factor_(factor), model_(*model) {}
  void OnGradient(int variable) override {
    int64_t elements = 1;
    for (const int64_t size : model_.variables(variable).shape()) elements *= size;
    float* const gradient = GradientBuffer(variable);
    std::transform(gradient, gradient + elements, gradient, [this](float element) { return element * factor_; });
    sink()->OnGradient(variable);
  }

 private:
  const float factor_;
  const v1::ModelSpec& model_;
};

// A model whose gradients are multiplied by the last element of a constant variable.
class ScaledModel : public Model {
 public:
  explicit ScaledModel(std::unique_ptr<Model> model) : model_(std::move(model)), spec_(model_->spec()) {
    *spec_.add_variables() = Base();
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    ScaledSink scaled(values.back()[kElements - 1], &spec_, sink);
    return model_->ComputeGradients(values.subspan(0, values.size() - 1), batch, key, &scaled);
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    return model_->Predict(values.subspan(0, values.size() - 1), batch);
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return model_->EvaluateLoss(values.subspan(0, values.size() - 1), batch);
  }

 private:
  const std::unique_ptr<Model> model_;
  v1::ModelSpec spec_;
};

enum class Path { kInProcess, kStreamed, kShared };

TestCluster::Options ClusterOf(Path path) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/20, /*slots=*/4);
  options.local = path == Path::kInProcess;
  options.share_memory = path == Path::kShared;
  options.change_workload = [](int, Workload* workload) {
    workload->model = std::make_unique<ScaledModel>(std::move(workload->model));
  };
  return options;
}

TEST(ConstantVariablesTest, BitsDoNotDependOnThePath) {
  const auto reference = TrainAndDigest(ClusterOf(Path::kInProcess), 1);
  ASSERT_TRUE(reference.ok()) << reference.status();
  for (const Path path : {Path::kStreamed, Path::kShared}) {
    for (const int workers : {1, 3}) {
      EXPECT_EQ(TrainAndDigest(ClusterOf(path), workers).value_or("none"), *reference)
          << static_cast<int>(path) << " with " << workers << " workers";
    }
  }
}

// A worker that the test controls, in a run with the trained variable "w" [2] and the constant "base". All its
// gradients are 1.
class Hand {
 public:
  Hand(TestCluster* cluster, Path path) : client_(cluster->NewClient()) {
    v1::OpenSessionRequest open;
    open.set_worker("hand");
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(name: "w" dtype: DT_FLOAT shape: 2 trainable: true)pb", open.mutable_model()->add_variables()));
    *open.mutable_model()->add_variables() = Base();
    CompleteDeclaration(&open);
    const auto session = client_->OpenSession(open);
    EXPECT_TRUE(session.ok()) << session.status();
    ChiefClient::StepOptions options;
    options.session_id = session->session_id();
    options.generation = session->generation();
    if (path == Path::kShared) options.chief_memory = session->shared_memory();
    channel_ = client_->OpenStepChannel(options, open.model()).value();
  }
  void AwaitToken(int64_t step) {
    auto assignment = channel_->AwaitToken();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    assignment_ = *std::move(assignment);
    ASSERT_EQ(assignment_.token.step(), step);
  }
  void Push() {
    ASSERT_TRUE(channel_->SendReports({v1::SlotReport()}).ok());
    std::fill_n(channel_->GradientBuffer(0), 2, 1.0f);
    ASSERT_TRUE(channel_->SendGradient(0).ok());
  }
  float first() const { return assignment_.values[1][0]; }
  float last() const { return assignment_.values[1][kElements - 1]; }

 private:
  const std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
};

class ConstantVariablesPathTest : public ::testing::TestWithParam<Path> {
 protected:
  ConstantVariablesPathTest() {
    TestCluster::Options options;
    options.config = SmallRunSpec(/*steps=*/100, /*slots=*/1);
    options.with_logdir = false;
    options.local = GetParam() == Path::kInProcess;
    options.share_memory = GetParam() == Path::kShared;
    options.clock = &clock_;
    cluster_ = std::make_unique<TestCluster>(options);
    EXPECT_TRUE(cluster_->StartChief().ok());
  }
  int64_t BytesSent() const { return cluster_->chief()->GetStatus().worker(0).bytes_sent(); }
  SyncReplicas* sync() const { return cluster_->chief()->training()->sync(); }
  // Makes a program set "base" after the step of the worker's token, and makes the worker finish that step. Returns the
  // global step at which "base" is set.
  int64_t Set(float value, Hand* hand) {
    const int64_t boundary = sync()->HoldForChange();
    std::thread program([&] {
      EXPECT_EQ(sync()->AwaitHeld(), boundary);
      const std::vector<float> values(kElements, value);
      EXPECT_TRUE(sync()->Assign({{"base", Tensor::FromValues<float>({kElements}, values)}}).ok());
      sync()->ReleaseAfterChange();
    });
    hand->Push();
    hand->AwaitToken(boundary);
    program.join();
    return boundary;
  }

  SimulatedClock clock_;  // stands still, so that no lease expires
  std::unique_ptr<TestCluster> cluster_;
};

TEST_P(ConstantVariablesPathTest, TravelOnceAndWhenTheyAreSet) {
  Hand hand(cluster_.get(), GetParam());
  const int64_t bytes = GetParam() == Path::kStreamed ? kElements * static_cast<int64_t>(sizeof(float)) : 0;
  hand.AwaitToken(0);
  const int64_t first = BytesSent();
  EXPECT_GE(first, bytes);
  EXPECT_LT(first, bytes + 4096);
  for (int64_t step = 1; step <= 5; ++step) {
    hand.Push();
    hand.AwaitToken(step);
    EXPECT_EQ(hand.first(), 0.5f);
    EXPECT_EQ(hand.last(), 0.5f);
  }
  EXPECT_LT(BytesSent() - first, 4096) << "five steps";
  for (const float value : {7.0f, 8.0f}) {
    const int64_t before = BytesSent();
    Set(value, &hand);
    EXPECT_EQ(hand.first(), value);
    EXPECT_EQ(hand.last(), value);
    EXPECT_LT(BytesSent() - before, bytes + 4096);
  }
}

TEST_P(ConstantVariablesPathTest, AWorkerThatJoinsGetsWhatWasSet) {
  auto first = std::make_unique<Hand>(cluster_.get(), GetParam());
  first->AwaitToken(0);
  const int64_t step = Set(7, first.get());
  first.reset();
  Hand second(cluster_.get(), GetParam());
  second.AwaitToken(step);
  EXPECT_EQ(second.first(), 7);
  EXPECT_EQ(second.last(), 7);
}

INSTANTIATE_TEST_SUITE_P(Paths, ConstantVariablesPathTest,
                         ::testing::Values(Path::kInProcess, Path::kStreamed, Path::kShared));

}  // namespace
}  // namespace lockstep

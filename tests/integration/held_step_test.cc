// Tests that a worker that has received values of the next step, and then gets a second token in the current step,
// computes with the current step's values.
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

namespace lockstep {
namespace {

constexpr int64_t kElements = 70000;  // two segments

v1::ModelSpec TwoVariables() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "small" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "large" dtype: DT_FLOAT shape: 70000 trainable: true }
  )",
                                                            &model));
  return model;
}

// A worker that the test controls. Its gradients are 1 in every element of each slot.
class Hand {
 public:
  Hand(TestCluster* cluster, const std::string& name) : client_(cluster->NewClient()) {
    v1::OpenSessionRequest open;
    open.set_worker(name);
    *open.mutable_model() = TwoVariables();
    CompleteDeclaration(&open);
    const auto session = client_->OpenSession(open);
    EXPECT_TRUE(session.ok()) << session.status();
    ChiefClient::StepOptions options;
    options.session_id = session->session_id();
    options.generation = session->generation();
    channel_ = client_->OpenStepChannel(options, TwoVariables()).value();
  }
  void AwaitToken() {
    auto assignment = channel_->AwaitToken();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    assignment_ = *std::move(assignment);
  }
  void Report() {
    std::vector<v1::SlotReport> reports(token().slot_count());
    for (size_t i = 0; i < reports.size(); ++i) reports[i].set_slot(token().first_slot() + static_cast<int64_t>(i));
    ASSERT_TRUE(channel_->SendReports(reports).ok());
  }
  void Send(int variable) {
    float* const gradient = channel_->GradientBuffer(variable);
    std::fill(gradient, gradient + (variable == 0 ? 3 : kElements), static_cast<float>(token().slot_count()));
    ASSERT_TRUE(channel_->SendGradient(variable).ok());
  }
  void Push() {
    Report();
    Send(1);
    Send(0);
  }
  const v1::Token& token() const { return assignment_.token; }
  // Expects the values of the token's step. After n steps, each value is -n.
  void ExpectValuesOfTheStep() const {
    for (int variable : {0, 1}) {
      const float* const values = assignment_.values[variable];
      for (int64_t i = 0; i < (variable == 0 ? 3 : kElements); ++i) {
        ASSERT_EQ(values[i], -static_cast<float>(token().step())) << "variable " << variable << ", element " << i;
      }
    }
  }
  StepChannel* channel() { return channel_.get(); }

 private:
  const std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
};

// Returns the number of bytes sent to worker "a", which is the first because the status lists workers in order of name.
int64_t BytesSentToTheFirst(const TestCluster& cluster) { return cluster.chief()->GetStatus().worker(0).bytes_sent(); }

TEST(HeldStepTest, ASecondTokenFindsItsStepsValues) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1000, /*slots=*/2);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }",
                                                            options.config.mutable_optimizer()));
  options.with_logdir = false;
  SimulatedClock clock;  // stands still, so that no slot is reissued because its worker is slow
  options.clock = &clock;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  Hand a(&cluster, "a"), b(&cluster, "b");
  a.AwaitToken();
  std::thread second([&] { b.AwaitToken(); });
  // Repeats until each worker has one slot of a step.
  while (a.token().slot_count() == 2) {
    a.Push();
    ASSERT_NO_FATAL_FAILURE(a.AwaitToken());
  }
  second.join();
  ASSERT_EQ(b.token().step(), a.token().step());
  const int64_t step = a.token().step();
  a.ExpectValuesOfTheStep();

  // The large variable is completed, and its next values are sent to the first worker. Then the second worker dies.
  b.Report();
  b.Send(1);
  const int64_t sent = BytesSentToTheFirst(cluster);
  a.Push();
  std::thread death([&] {
    while (BytesSentToTheFirst(cluster) < sent + kElements * int64_t{sizeof(float)}) std::this_thread::yield();
    b.channel()->Cancel();
    EXPECT_FALSE(b.channel()->AwaitToken().ok());
  });
  a.AwaitToken();
  death.join();
  ASSERT_EQ(a.token().step(), step);
  EXPECT_EQ(a.token().slot_count(), 1);
  a.ExpectValuesOfTheStep();
  a.Push();
  a.AwaitToken();
  ASSERT_EQ(a.token().step(), step + 1);
  a.ExpectValuesOfTheStep();
}

}  // namespace
}  // namespace lockstep

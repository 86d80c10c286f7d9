// Tests hooks on workers, with a real chief in this process. A hook that waits in BeforeRun must not hold up other
// processes.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/hooks/global_step_waiter_hook.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {
namespace {

// A hook that waits in BeforeRun until the run has reached a step, which takes longer than a block may be held. Does
// not call LimitHold.
class SlowHook : public Hook {
 public:
  SlowHook(int64_t step, std::function<void()> wait) : step_(step), wait_(std::move(wait)) {}
  std::string name() const override { return "SlowHook"; }
  absl::Status BeforeRun(RunContext& context) override {
    wait_();
    while (context.session().GlobalStep().value() < step_) std::this_thread::yield();
    return absl::OkStatus();
  }

 private:
  const int64_t step_;
  const std::function<void()> wait_;
};

class WorkerHooksTest : public ::testing::Test {
 protected:
  WorkerHooksTest()
      : op_(CreateTrainOp(R"(
          model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
          optimizer { sgd {} learning_rate { initial: 0.05 } }
          input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
          training { replicas_to_aggregate: 2 unbounded: true } cluster { lease_seconds: 3600 })")
                .value()) {
    SessionOptions options;
    options.op = op_;
    options.fs = &fs_;
    options.listen = "127.0.0.1:0";
    options.local_workers = 0;
    options.port_file = "port";
    std::thread opening([&] { chief_ = ChiefSession::Open(options).value(); });
    while (!fs_.Exists("port").value()) std::this_thread::yield();
    for (auto& worker : workers_) {
      SessionOptions worker_options;
      worker_options.op = op_;
      worker_options.is_chief = false;
      worker_options.clock = &clock_;
      worker_options.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs_, "port").value()));
      worker = OpenSession(worker_options).value();
    }
    opening.join();
  }

  // Returns the number of workers whose first frame the chief has received.
  int Asking() {
    int asking = 0;
    const v1::RunStatus run = chief_->chief()->GetStatus();
    for (const v1::WorkerStatus& worker : run.worker()) asking += worker.bytes_received() > 0;
    return asking;
  }

  // Performs a worker's first Run with this hook, while another worker computes.
  StepResult FirstRunWith(Hook* hook) {
    HookedSession::Options options;
    options.hooks = {hook};
    auto hooked = HookedSession::Open(workers_[0].get(), options).value();
    while (Asking() < 2) std::this_thread::yield();
    chief_->AllowThrough(0);
    // Both workers have a block of the first step.
    EXPECT_EQ(workers_[1]->NextStep().value(), 0);
    EXPECT_EQ(workers_[0]->NextStep().value(), 0);
    std::thread other([this] {
      while (workers_[1]->Run(op_).ok()) {
      }
    });
    chief_->AllowThrough(StepMachine::kNoLimit);
    const auto result = hooked->Run(op_);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(chief_->RequestStop("enough").ok());
    EXPECT_TRUE(chief_->Close().ok());
    other.join();
    EXPECT_TRUE(hooked->Close().ok());
    EXPECT_TRUE(workers_[1]->Close().ok());
    return result.value_or(StepResult());
  }

  const TrainOp op_;
  MemoryFileSystem fs_;
  SimulatedClock clock_;  // used by the workers
  std::unique_ptr<ChiefSession> chief_;
  std::unique_ptr<Session> workers_[2];
};

TEST_F(WorkerHooksTest, TheWaiterHoldsNoBlockWhileItWaits) {
  GlobalStepWaiterOptions options;
  options.wait_until_step = 100;
  options.poll_interval = absl::Milliseconds(1);
  const auto waiter = GlobalStepWaiterHook::Create(options).value();
  EXPECT_GT(FirstRunWith(waiter.get()).global_step, 100) << "the block is not the one of before the wait";
}

TEST_F(WorkerHooksTest, AHookThatTakesLongLosesItsBlockAndGetsAnother) {
  SlowHook hook(100, [this] {
    clock_.Advance(HookedSession::kMaxHold);
    // The stream ends when the block is returned to the chief.
    while (chief_->chief()->GetStatus().worker_size() == 2) std::this_thread::yield();
  });
  EXPECT_GT(FirstRunWith(&hook).global_step, 100);
}

}  // namespace
}  // namespace lockstep::train

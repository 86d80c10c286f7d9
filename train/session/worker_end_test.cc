// Tests how workers' programs react to the end of a run, with real chiefs in this process.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/session/worker_session.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

// A disk that refuses to replace the run's record a few times.
class FullDisk : public ForwardingFileSystem {
 public:
  explicit FullDisk(FileSystem* base) : ForwardingFileSystem(base) {}
  void RefuseRecords(int times) { left_ = times; }
  int left() const { return left_; }

 private:
  absl::Status Before(Operation operation, const std::string& path) override {
    if (operation != Operation::kRename || !absl::StrContains(path, kRunRecordFile) || left_ == 0) {
      return absl::OkStatus();
    }
    --left_;
    return absl::ResourceExhaustedError("no space left on device");
  }

  std::atomic<int> left_{0};
};

class WorkerEndTest : public ::testing::Test {
 protected:
  void Configure(double lease_seconds, int64_t steps = 12) {
    op_ = CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
      optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
      input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
      cluster { lease_seconds: )",
                                     lease_seconds, " } training { replicas_to_aggregate: 2 steps: ", steps, "}"))
              .value();
  }
  void SetUp() override { Configure(60); }

  // Opens a chief that only serves, and its workers. No step begins before AllowThrough.
  void Open(int workers) {
    SessionOptions options;
    options.op = op_;
    options.listen = "127.0.0.1:0";
    options.local_workers = 0;
    options.logdir = "run";
    options.address_file = "run.address";
    options.fs = &fs_;
    OpenChief(options, workers);
  }
  void OpenChief(const SessionOptions& options, int workers) {
    std::thread opening([&] {
      auto session = ChiefSession::Open(options);
      EXPECT_TRUE(session.ok()) << session.status();
      if (session.ok()) chief_ = *std::move(session);
    });
    for (int i = 0; i < workers; ++i) {
      auto worker = OpenSession(WorkerOptions(absl::StrCat("worker-", i)));
      EXPECT_TRUE(worker.ok()) << worker.status();
      if (worker.ok()) workers_.push_back(*std::move(worker));
    }
    opening.join();
    options_ = options;
    // Waits until all workers have asked for a slot, so that each gets one of the first step's slots.
    while (Asking() < workers) std::this_thread::yield();
  }
  // Returns the number of workers whose first frame the chief has received.
  int64_t Asking() {
    const v1::RunStatus run = chief_->chief()->GetStatus();
    return std::count_if(run.worker().begin(), run.worker().end(),
                         [](const v1::WorkerStatus& worker) { return worker.bytes_received() > 0; });
  }
  SessionOptions WorkerOptions(const std::string& name) {
    SessionOptions options;
    options.op = op_;
    options.is_chief = false;
    options.name = name;
    options.master = "file:run.address";
    options.fs = &fs_;
    return options;
  }
  // Starts a thread that runs a worker's loop until the end of the run.
  std::thread Runs(Session* worker) {
    return std::thread([this, worker] {
      while (!worker->ShouldStop()) {
        const absl::Status status = worker->Run(op_).status();
        if (absl::IsOutOfRange(status)) return;
        EXPECT_TRUE(status.ok() || absl::IsAborted(status) || absl::IsUnavailable(status)) << status;
      }
    });
  }
  int64_t RunChief() {
    int64_t last = 0;
    while (!chief_->ShouldStop()) {
      const auto result = chief_->Run(op_);
      if (!result.ok()) break;
      last = result->global_step;
    }
    return last;
  }
  int64_t Accepted(const std::string& worker) {
    const v1::RunStatus run = chief_->chief()->GetStatus();
    for (const v1::WorkerStatus& status : run.worker()) {
      if (absl::StartsWith(status.name(), worker)) return status.accepted();
    }
    return 0;
  }
  v1::RunRecord Record() { return ReadRunRecord(&fs_, "run").value().value(); }

  TrainOp op_;
  MemoryFileSystem memory_;
  FullDisk fs_{&memory_};
  SessionOptions options_;
  std::unique_ptr<ChiefSession> chief_;
  std::vector<std::unique_ptr<Session>> workers_;
};

TEST_F(WorkerEndTest, AProgramThatDoesNotRunHoldsNoStepUp) {
  Configure(0.2);
  Open(2);
  chief_->AllowThrough(StepMachine::kNoLimit);
  // The first worker takes a block and then does something else.
  ASSERT_EQ(workers_[0]->NextStep().value(), 0);
  std::thread other = Runs(workers_[1].get());
  EXPECT_EQ(RunChief(), 12);
  EXPECT_TRUE(chief_->Close().ok());
  other.join();
  EXPECT_TRUE(absl::IsOutOfRange(workers_[0]->Run(op_).status()));
}

TEST_F(WorkerEndTest, AStopInAReportThatCameTooLateIsAskedForAgain) {
  Configure(0.2, /*steps=*/100000000);
  Open(2);
  chief_->AllowThrough(0);
  ASSERT_EQ(workers_[0]->NextStep().value(), 0);
  ASSERT_TRUE(workers_[0]->RequestStop("enough").ok());
  std::thread other = Runs(workers_[1].get());
  ASSERT_EQ(chief_->Run(op_)->global_step, 1) << "the other one has computed its slot";
  std::thread late = Runs(workers_[0].get());
  chief_->AllowThrough(StepMachine::kNoLimit);
  EXPECT_LT(RunChief(), 100000000);
  EXPECT_TRUE(chief_->Close().ok());
  late.join();
  other.join();
  EXPECT_THAT(Record().end().reason(), HasSubstr("worker-0"));
  EXPECT_THAT(Record().end().reason(), HasSubstr("asked for it: enough"));
}

TEST_F(WorkerEndTest, AStopIsSentAgainAfterABrokenStream) {
  Open(2);
  chief_->AllowThrough(0);
  ASSERT_EQ(workers_[0]->NextStep().value(), 0);
  ASSERT_EQ(workers_[1]->NextStep().value(), 0);
  ASSERT_TRUE(workers_[0]->RequestStop("enough").ok());
  // Runs only one block: the chief may also offer this worker the other slot, which would end the step and the run.
  std::thread reporting([&] { workers_[0]->Run(op_).IgnoreError(); });
  while (Accepted("worker-0") == 0) std::this_thread::yield();
  // No worker computes the other slot, so the step and with it the report are lost when the chief is destroyed.
  SessionOptions next = options_;
  next.listen = chief_->listening();
  chief_.reset();
  EXPECT_TRUE(workers_[1]->Close().ok());
  chief_ = ChiefSession::Open(next).value();
  reporting.join();
  std::thread asking = Runs(workers_[0].get());
  chief_->AllowThrough(StepMachine::kNoLimit);
  EXPECT_EQ(RunChief(), 1);
  EXPECT_TRUE(chief_->Close().ok());
  asking.join();
}

TEST_F(WorkerEndTest, AStopThatNoBlockCanCarryIsSentByClose) {
  Open(1);
  chief_->AllowThrough(0);
  ASSERT_EQ(workers_[0]->NextStep().value(), 0);
  ASSERT_TRUE(workers_[0]->RequestStop("enough").ok());
  EXPECT_TRUE(workers_[0]->Close().ok()) << "the block is given up";
  EXPECT_EQ(RunChief(), 0) << "the run waits for nobody else";
  EXPECT_TRUE(chief_->Close().ok());
  EXPECT_EQ(Record().end().step(), 0);
  EXPECT_THAT(Record().end().reason(), HasSubstr("asked for it: enough"));
  EXPECT_TRUE(Record().finished());
}

TEST_F(WorkerEndTest, WithoutWorkersTheRunEndsBetweenSteps) {
  Open(1);
  chief_->AllowThrough(StepMachine::kNoLimit);
  std::thread computing([&] {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(workers_[0]->Run(op_).ok());
  });
  computing.join();
  EXPECT_TRUE(workers_[0]->Close().ok());
  EXPECT_EQ(chief_->Run(op_)->global_step, 1);
  EXPECT_TRUE(chief_->Close().ok());
  const int64_t end = Record().end().step();
  EXPECT_GE(end, 1);
  EXPECT_LE(end, 3);
  EXPECT_TRUE(Record().finished());
  EXPECT_THAT(chief_->chief()->GetStatus().checkpoint(), HasSubstr(absl::StrCat("-", end)));
}

TEST_F(WorkerEndTest, WithoutWorkersChangesApplyNow) {
  Open(1);
  chief_->AllowThrough(StepMachine::kNoLimit);
  EXPECT_TRUE(workers_[0]->Close().ok());
  workers_.clear();
  const Tensor zeros = Tensor::FromValues<float>({3}, {0, 0, 7});
  ASSERT_TRUE(chief_->Assign({{"logits/bias", zeros}}).ok());
  SettingsChange change;
  change.batch_size = 8;
  ASSERT_TRUE(chief_->ChangeSettings(change).ok());
  EXPECT_EQ(Record().assignment(0).step(), 0);
  EXPECT_EQ(Record().change(0).step(), 0);
  EXPECT_EQ(chief_->Read({"logits/bias"})->values[0].value.flat<float>()[2], 7);
  auto other = OpenSession(WorkerOptions("worker-1")).value();
  std::thread rest = Runs(other.get());
  EXPECT_EQ(RunChief(), 12) << "it goes on";
  EXPECT_TRUE(chief_->Close().ok());
  rest.join();
}

TEST_F(WorkerEndTest, ALongReasonThatIsNoTextEndsTheRunAsAnyOther) {
  for (const bool by_worker : {true, false}) {
    Open(1);
    chief_->AllowThrough(0);
    const std::string reason = absl::StrCat("caf\xe9 ", std::string(5000, 'x'));
    if (by_worker) {
      EXPECT_TRUE(workers_[0]->RequestStop(reason).ok());
      EXPECT_TRUE(workers_[0]->Close().ok());
    } else {
      EXPECT_TRUE(chief_->RequestStop(reason).ok());
      EXPECT_TRUE(workers_[0]->Close().ok());
    }
    EXPECT_TRUE(chief_->Close().ok());
    EXPECT_TRUE(IsUtf8(Record().end().reason()));
    EXPECT_THAT(Record().end().reason(), HasSubstr("caf? xxx"));
    EXPECT_LE(Record().end().reason().size(), 1024);
    workers_.clear();
    chief_.reset();
  }
}

TEST_F(WorkerEndTest, ANameMayBeGivenTwice) {
  Open(1);
  const Tensor first = Tensor::FromValues<float>({3}, {1, 1, 1}), second = Tensor::FromValues<float>({3}, {2, 3, 4});
  ASSERT_TRUE(chief_->Assign({{"logits/bias", first}, {"logits/bias", second}}).ok());
  for (Session* session : {static_cast<Session*>(chief_.get()), workers_[0].get()}) {
    const auto read = session->Read({"logits/bias", "global_step", "logits/bias"});
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->values.size(), 3);
    EXPECT_EQ(read->values[1].name, "global_step");
    for (const int i : {0, 2}) {
      EXPECT_EQ(read->values[i].name, "logits/bias");
      EXPECT_EQ(read->values[i].value.flat<float>()[1], 3);
    }
  }
  EXPECT_TRUE(workers_[0]->Close().ok());
  EXPECT_TRUE(chief_->Close().ok());
}

TEST_F(WorkerEndTest, AnEndThatTheDiskRefusesIsTriedAgain) {
  Open(1);
  chief_->AllowThrough(0);
  std::thread computing = Runs(workers_[0].get());
  ASSERT_EQ(chief_->Run(op_)->global_step, 1);
  fs_.RefuseRecords(2);
  ASSERT_TRUE(workers_[0]->RequestStop("enough").ok());
  EXPECT_TRUE(absl::IsOutOfRange(chief_->Run(op_).status())) << "it is over, though no step follows";
  EXPECT_EQ(fs_.left(), 0);
  EXPECT_EQ(Record().end().step(), 1);
  EXPECT_TRUE(chief_->Close().ok());
  computing.join();
}

TEST_F(WorkerEndTest, TheAddressFileFindsTheChiefAndEnd) {
  Open(1);
  EXPECT_EQ(ReadFile(&fs_, "run.address").value(), absl::StrCat("grpc://", chief_->address(), "\n"));
  chief_->AllowThrough(StepMachine::kNoLimit);
  std::thread computing = Runs(workers_[0].get());
  EXPECT_EQ(RunChief(), 12);
  EXPECT_TRUE(chief_->Close().ok());
  computing.join();
  EXPECT_EQ(ReadFile(&fs_, "run.address").value(), "finished\n");
  SessionOptions late = WorkerOptions("late");
  late.max_wait = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsOutOfRange(OpenSession(late).status()));
  // A chief that cannot use the logdir does not remove the end mark.
  SessionOptions other = options_;
  other.op.spec.mutable_training()->set_seed(77);
  chief_.reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(ChiefSession::Open(other).status()));
  EXPECT_EQ(ReadFile(&fs_, "run.address").value(), "finished\n");
}

}  // namespace
}  // namespace lockstep::train

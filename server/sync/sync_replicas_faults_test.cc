// Tests faulty frames from a worker: each one is answered with an error that names the fault, and the run continues
// unchanged.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/no_failures.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGeneration = 5;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// A run with one worker, which has the token for slots [0,2) of step 1.
struct TestRun {
  TestRun() {
    config::v1::OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    store = VariableStore::Create(FrameModel(), optimizer).value();
    store->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock;
    options.machine.generation = kGeneration;
    options.machine.slots = 2;
    options.machine.total_steps = 10;
    options.events = &events;
    sync = std::make_unique<SyncReplicas>(std::move(options), std::make_unique<StepShard>(store.get(), /*slots=*/2),
                                          FramePolicy(/*slots=*/2));
    worker = Connect(1);
    EXPECT_TRUE(worker->Ask().ok());
    EXPECT_TRUE(worker->Push().ok());
    EXPECT_TRUE(worker->token().has_value());
  }

  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, kGeneration, [this, session](std::shared_ptr<StepListener> listener) {
      return sync->Connect(session, absl::StrCat("worker-", session), ValuePath::kStreamed, std::move(listener));
    });
  }
  // Returns a whole contribution for the token.
  StepFrame Whole() {
    StepFrame frame = worker->NewFrame(*worker->token());
    worker->AddReports(&frame);
    worker->AddAllPieces(&frame);
    frame.end = true;
    return frame;
  }
  // Lets another worker do the remaining work, and expects the same values as if nothing had happened.
  void ExpectGoesOn() {
    worker.reset();  // as when its stream ends
    const auto other = Connect(2);
    ASSERT_TRUE(other->Ask().ok());
    ASSERT_TRUE(other->Push().ok());
    EXPECT_EQ(sync->step(), 2);
    EXPECT_EQ(store->values()->as<float>()[0], -1.5f * 3);
    EXPECT_EQ(other->value(2, 65539), -1.5f * 3);
    v1::RunStatus status;
    sync->FillStatus(&status);
    EXPECT_EQ(status.rejected(), 1);
  }

  SimulatedClock clock;
  NoFailures events;
  std::unique_ptr<VariableStore> store;
  std::unique_ptr<SyncReplicas> sync;
  std::unique_ptr<FrameWorker> worker;
};

struct Fault {
  std::string name;
  // Sends the faulty frame and returns the resulting status.
  std::function<absl::Status(TestRun*)> commit;
  absl::StatusCode code;
  std::string text;
};

// Returns a function that sends a whole contribution with one change.
std::function<absl::Status(TestRun*)> Changed(std::function<void(TestRun*, StepFrame*)> change) {
  return [change](TestRun* run) {
    StepFrame frame = run->Whole();
    change(run, &frame);
    return run->worker->Send(frame);
  };
}

std::vector<Fault> Faults() {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  constexpr auto kAborted = absl::StatusCode::kAborted;
  const auto block = [](int64_t step, int64_t first, int64_t count) {
    return Changed([=](TestRun*, StepFrame* frame) {
      frame->step = step;
      frame->block = {first, count};
    });
  };
  return {
      {"OldGeneration", Changed([](TestRun*, StepFrame* f) { f->generation = 4; }), kAborted,
       "generation 4 is over, the chief's is 5"},
      {"ForeignSession", Changed([](TestRun*, StepFrame* f) { f->session_id = 77; }), kInvalid,
       "a frame of session 77 on the stream of session 1"},
      {"OtherSlots", block(1, 0, 1), kPrecondition,
       "a contribution to slots [0,1) of step 1 without a token for it; the "
       "session's last token is slots [0,2) of step 1"},
      {"OtherStep", block(2, 0, 2), kPrecondition, "slots [0,2) of step 2 without a token"},
      {"NegativeStep", block(kMin, 0, 2), kPrecondition, "of step -9223372036854775808 without a token"},
      {"HugeSlot", block(1, kMax, 2), kPrecondition, "without a token"},
      {"HugeCount", block(1, 1, kMax), kPrecondition, "without a token"},
      {"NegativeCount", block(1, 0, -2), kPrecondition, "without a token"},
      {"GradientsWithoutABlock", block(1, 0, 0), kInvalid, "gradients or reports without a block of slots"},
      {"NoReports", Changed([](TestRun*, StepFrame* f) { f->reports.clear(); }), kInvalid,
       "gradients came before the reports"},
      {"OneReportTooFew", Changed([](TestRun*, StepFrame* f) { f->reports.pop_back(); }), kInvalid,
       "1 reports in a contribution to slots [0,2), expected 2"},
      {"ForeignReport", Changed([](TestRun*, StepFrame* f) { f->reports[1].set_slot(5); }), kInvalid,
       "a report for slot 5"},
      {"ReportsTwice",
       [](TestRun* run) {
         StepFrame frame = run->worker->NewFrame(*run->worker->token());
         run->worker->AddReports(&frame);
         EXPECT_TRUE(run->worker->Send(frame).ok());
         return run->worker->Send(frame);
       },
       kInvalid, "reports were sent twice"},
      {"ForeignVariable", Changed([](TestRun*, StepFrame* f) { f->gradients[0].variable = 3; }), kInvalid,
       "variable number 3; the model has 3"},
      {"NotTrainable", Changed([](TestRun*, StepFrame* f) { f->gradients[0].variable = 1; }), kInvalid,
       "not trainable"},
      {"OffsetTooLarge", Changed([](TestRun*, StepFrame* f) { f->gradients[1].offset = kMax; }), kInvalid,
       "does not lie within its 3 elements"},
      {"OffsetInASegment", Changed([](TestRun*, StepFrame* f) { f->gradients[0].offset = 4; }), kInvalid,
       "the gradient of big"},
      {"PieceTwice", Changed([](TestRun* run, StepFrame* f) {
         f->gradients.clear();
         run->worker->AddPiece(0, 0, 3, f);
         run->worker->AddAllPieces(f);
         std::swap(f->gradients[1], f->gradients[2]);
       }),
       kInvalid, "the gradient of w from element 0 was sent twice"},
      {"PieceMissing", Changed([](TestRun*, StepFrame* f) { f->gradients.pop_back(); }), kInvalid,
       "the contribution to slots [0,2) of step 1 has 2 of 3 pieces"},
      {"NothingButTheEnd", Changed([](TestRun*, StepFrame* f) {
         f->reports.clear();
         f->gradients.clear();
       }),
       kInvalid, "has 0 of 3 pieces"},
      {"EndOfInputBeforeTheEnd", Changed([](TestRun*, StepFrame* f) {
         f->end = false;
         f->end_of_input = true;
       }),
       kInvalid, "in a frame that is not the contribution's last"},
      {"EndOfInputWithAForeignReport", Changed([](TestRun*, StepFrame* f) {
         f->reports[1].set_slot(5);
         f->end_of_input = true;
       }),
       kInvalid, "a report for slot 5"},
      {"OtherBlockInTheMiddle",
       [](TestRun* run) {
         StepFrame frame = run->worker->NewFrame(*run->worker->token());
         run->worker->AddReports(&frame);
         EXPECT_TRUE(run->worker->Send(frame).ok());
         StepFrame other = run->worker->NewFrame(*run->worker->token());
         other.block = {0, 1};
         return run->worker->Send(other);
       },
       kInvalid, "a frame for slots [0,1) of step 1 inside a contribution to slots [0,2) of step 1"},
      {"AskingInTheMiddle",
       [](TestRun* run) {
         StepFrame frame = run->worker->NewFrame(*run->worker->token());
         run->worker->AddReports(&frame);
         EXPECT_TRUE(run->worker->Send(frame).ok());
         return run->worker->Ask();
       },
       kInvalid, "the previous contribution was not finished"},
      {"AskingTwice",
       [](TestRun* run) {
         StepFrame frame = run->worker->NewFrame(v1::Token());
         frame.end = true;
         EXPECT_TRUE(run->worker->Send(frame).ok());
         return run->worker->Send(frame);
       },
       kInvalid, "a token is already pending"},
  };
}

class SyncReplicasFaultsTest : public ::testing::TestWithParam<Fault> {};

TEST_P(SyncReplicasFaultsTest, IsNamedAndTheRunGoesOn) {
  TestRun run;
  const absl::Status status = GetParam().commit(&run);
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().text));
  run.ExpectGoesOn();
}

INSTANTIATE_TEST_SUITE_P(Faults, SyncReplicasFaultsTest, ::testing::ValuesIn(Faults()),
                         [](const auto& info) { return info.param.name; });

TEST(SyncReplicasFaultsTest, ATokenIsGoodForOneContribution) {
  TestRun run;
  const StepFrame frame = run.Whole();
  ASSERT_TRUE(run.worker->Send(frame).ok());
  const absl::Status status = run.worker->Send(frame);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  run.worker.reset();
  EXPECT_EQ(run.sync->step(), 2);
}

TEST(SyncReplicasFaultsTest, AStreamThatWasClosedTakesNothing) {
  TestRun run;
  const StepFrame frame = run.Whole();
  run.worker->connection()->Close();
  EXPECT_TRUE(absl::IsAborted(run.worker->Send(frame)));
  StepReplyFrame reply;
  EXPECT_FALSE(run.worker->connection()->NextReply(&reply));
  run.worker->connection()->Close();
  run.ExpectGoesOn();
}

}  // namespace
}  // namespace lockstep

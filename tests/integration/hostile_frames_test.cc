// Tests workers that each break one rule of proto/lockstep/v1/chief.proto. The error must name the rule, and the run
// must continue unchanged.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/fault_injected_run.h"
#include "lockstep/tests/testing/proto_only_worker.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Frames = std::vector<v1::StepRequest>;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// A way to break a rule. The first two pieces of a contribution are those of hidden/kernel. A fault must not send all
// pieces, because that would complete the step.
struct Fault {
  std::string name;
  // Returns the frames to send instead of the whole contribution.
  std::function<Frames(const v1::StepRequest& whole)> frames;
  grpc::StatusCode code;
  std::string text;
};

Fault Changed(const std::string& name, std::function<void(v1::StepRequest*)> change, grpc::StatusCode code,
              const std::string& text) {
  const auto frames = [change](v1::StepRequest whole) {
    change(&whole);
    return Frames{whole};
  };
  return {name, frames, code, text};
}

// Sends only the reports and one piece, which `change` makes wrong.
Fault WrongPiece(const std::string& name, std::function<void(v1::TensorPiece*)> change, const std::string& text) {
  const auto frames = [change](v1::StepRequest whole) {
    const v1::TensorPiece piece = whole.gradient(0);
    whole.clear_gradient();
    *whole.add_gradient() = piece;
    change(whole.mutable_gradient(0));
    return Frames{whole};
  };
  return {name, frames, grpc::StatusCode::INVALID_ARGUMENT, text};
}

// Sends the first part of a contribution twice, modified by `change` the second time.
Fault Twice(const std::string& name, std::function<void(v1::StepRequest* second)> change, grpc::StatusCode code,
            const std::string& text) {
  const auto frames = [change](v1::StepRequest whole) {
    whole.set_end(false);
    whole.clear_gradient();
    v1::StepRequest second = whole;
    change(&second);
    return Frames{whole, second};
  };
  return {name, frames, code, text};
}

std::vector<Fault> NamesAndNumbers() {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  constexpr auto kPrecondition = grpc::StatusCode::FAILED_PRECONDITION;
  const auto block = [](int64_t step, int64_t first, int64_t count) {
    return [=](v1::StepRequest* f) {
      f->set_step(f->step() + step);
      f->set_first_slot(first);
      f->set_slot_count(count);
    };
  };
  return {
      Changed(
          "OldGeneration", [](v1::StepRequest* f) { f->set_generation(0); }, grpc::StatusCode::ABORTED,
          "generation 0 is over"),
      Changed(
          "HugeGeneration", [](v1::StepRequest* f) { f->set_generation(kMax); }, grpc::StatusCode::ABORTED, "is over"),
      Changed(
          "ForeignSession", [](v1::StepRequest* f) { f->set_session_id(12345); }, kInvalid, "a frame of session 12345"),
      Changed("LaterStep", block(1, 0, 4), kPrecondition, "without a token for it"),
      Changed("EarlierStep", block(-1, 0, 4), kPrecondition, "without a token for it"),
      Changed("NegativeSlot", block(0, -4, 4), kPrecondition, "without a token for it"),
      Changed("LowestSlot", block(0, kMin, 4), kPrecondition, "without a token for it"),
      Changed("HighestSlot", block(0, kMax, 4), kPrecondition, "without a token for it"),
      Changed("HugeCount", block(0, 0, kMax), kPrecondition, "without a token for it"),
      Changed("NegativeCount", block(0, 0, -1), kPrecondition, "without a token for it"),
      Changed("OtherBlock", block(0, 0, 3), kPrecondition, "slots [0,3)"),
      Changed("NoBlock", block(0, 0, 0), kInvalid, "gradients or reports without a block"),
      Twice("OtherBlockInTheMiddle", block(0, 0, 2), kInvalid, "inside a contribution to slots [0,4)"),
      Twice(
          "AskingInTheMiddle",
          [block](v1::StepRequest* f) {
            f->clear_report();
            block(0, 0, 0)(f);
            f->set_end(true);
          },
          kInvalid, "the previous contribution was not finished"),
  };
}

std::vector<Fault> Reports() {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  return {
      Changed(
          "PiecesBeforeReports", [](v1::StepRequest* f) { f->clear_report(); }, kInvalid,
          "gradients came before the reports"),
      Changed(
          "ReportMissing", [](v1::StepRequest* f) { f->mutable_report()->RemoveLast(); }, kInvalid,
          "3 reports in a contribution to slots [0,4), expected 4"),
      Changed(
          "ReportOfAForeignSlot", [](v1::StepRequest* f) { f->mutable_report(3)->set_slot(4); }, kInvalid,
          "a report for slot 4 in a contribution to slots [0,4)"),
      Changed(
          "ReportOfANegativeSlot", [](v1::StepRequest* f) { f->mutable_report(0)->set_slot(kMin); }, kInvalid,
          "a report for slot -9223372036854775808"),
      Changed(
          "ReportTwiceInAFrame", [](v1::StepRequest* f) { f->mutable_report(1)->set_slot(0); }, kInvalid,
          "two reports for slot 0"),
      Twice(
          "ReportsTwice", [](v1::StepRequest*) {}, kInvalid, "reports were sent twice"),
      Changed(
          "UpdateMissing", [](v1::StepRequest* f) { f->mutable_report(2)->mutable_update()->RemoveLast(); }, kInvalid,
          "the report of slot 2 has 1 update values; the model has 2 update ops"),
      Changed(
          "UpdateTooMany", [](v1::StepRequest* f) { f->mutable_report(2)->add_update("1234"); }, kInvalid,
          "the report of slot 2 has 3 update values"),
      Changed(
          "UpdateOfAnotherSize", [](v1::StepRequest* f) { f->mutable_report(0)->mutable_update(1)->pop_back(); },
          kInvalid, "for slot 0 has 23999 bytes, expected 24000"),
  };
}

std::vector<Fault> Pieces() {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  return {
      WrongPiece(
          "ForeignVariable", [](v1::TensorPiece* p) { p->set_variable(99); }, "a gradient for variable number 99"),
      WrongPiece(
          "LastVariableNumber", [](v1::TensorPiece* p) { p->set_variable(4294967295u); }, "number 4294967295"),
      WrongPiece(
          "NotTrainable", [](v1::TensorPiece* p) { p->set_variable(4); }, "is for a variable that is not trainable"),
      WrongPiece(
          "Empty", [](v1::TensorPiece* p) { p->clear_content(); }, "with 0 bytes has no whole number"),
      WrongPiece(
          "HalfAnElement", [](v1::TensorPiece* p) { p->mutable_content()->pop_back(); }, "has no whole number"),
      WrongPiece(
          "AnElementShort", [](v1::TensorPiece* p) { p->mutable_content()->resize(p->content().size() - 4); },
          "is not made of whole pieces of 65536 elements"),
      WrongPiece(
          "LongerThanItsVariable", [](v1::TensorPiece* p) { p->mutable_content()->resize(72001 * 4); },
          "does not lie within its 72000 elements"),
      WrongPiece(
          "OffsetInsideASegment", [](v1::TensorPiece* p) { p->set_offset(1); }, "is not made of whole pieces"),
      WrongPiece(
          "OffsetAtTheEnd", [](v1::TensorPiece* p) { p->set_offset(72000); }, "does not lie within"),
      WrongPiece(
          "HugeOffset", [](v1::TensorPiece* p) { p->set_offset(kMax); }, "does not lie within"),
      WrongPiece(
          "OffsetBeyondAnyNumber", [](v1::TensorPiece* p) { p->set_offset(~uint64_t{0}); }, "field 7 is malformed"),
      Changed(
          "PieceTwice", [](v1::StepRequest* f) { *f->mutable_gradient(f->gradient_size() - 1) = f->gradient(0); },
          kInvalid, "from element 0 was sent twice"),
      Changed(
          "PiecesThatOverlap",
          [](v1::StepRequest* f) {
            // Sends the whole variable after one of its parts.
            const std::string whole = f->gradient(0).content() + f->gradient(1).content();
            f->mutable_gradient(0)->set_content(whole);
            f->mutable_gradient()->RemoveLast();
          },
          kInvalid, "from element 65536 was sent twice"),
      Changed(
          "PieceMissing", [](v1::StepRequest* f) { f->mutable_gradient()->RemoveLast(); }, kInvalid, "pieces of 65536"),
      Changed(
          "EndWithoutPieces", [](v1::StepRequest* f) { f->clear_gradient(); }, kInvalid, "has 0 of"),
      Changed(
          "EndWithoutAnything",
          [](v1::StepRequest* f) {
            f->clear_gradient();
            f->clear_report();
          },
          kInvalid, "has 0 of"),
      {"MorePiecesThanThereAre",
       [](v1::StepRequest whole) {
         whole.clear_gradient();
         for (int i = 0; i < 1000000; ++i) whole.add_gradient();
         return Frames{whole};
       },
       grpc::StatusCode::RESOURCE_EXHAUSTED, "pieces in one message"},
      {"MoreReportsThanThereAre",
       [](v1::StepRequest whole) {
         whole.clear_gradient();
         for (int i = 0; i < 1000000; ++i) whole.add_report();
         return Frames{whole};
       },
       grpc::StatusCode::RESOURCE_EXHAUSTED, "more than 4 reports in one message"},
  };
}

void ExpectNamed(ProtoOnlyWorker* stranger, const Fault& fault) {
  SCOPED_TRACE(fault.name);
  grpc::ClientContext context;
  const auto stream = stranger->NewStream(&context);
  ASSERT_TRUE(stream->Write(stranger->AskForToken()));
  // The good worker is stuck and holds every slot, so this worker gets a second copy of the slots.
  v1::Token token;
  ASSERT_TRUE(stranger->ReadToken(stream.get(), &token));
  ASSERT_EQ(token.slot_count(), 4);
  for (const v1::StepRequest& frame : fault.frames(stranger->Compute(token))) stream->Write(frame);
  EXPECT_FALSE(stranger->ReadToken(stream.get(), &token));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), fault.code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(fault.text));
}

void ExpectAllNamed(const std::vector<Fault>& faults) {
  FaultInjectedRun run;
  ProtoOnlyWorker stranger(run.address(), "wrong", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  for (const Fault& fault : faults) ASSERT_NO_FATAL_FAILURE(ExpectNamed(&stranger, fault));
  run.ExpectSameWeights();
}

TEST(HostileFramesTest, WrongNamesAndNumbersAreNamed) { ExpectAllNamed(NamesAndNumbers()); }
TEST(HostileFramesTest, WrongReportsAreNamed) { ExpectAllNamed(Reports()); }
TEST(HostileFramesTest, WrongPiecesAreNamed) { ExpectAllNamed(Pieces()); }

TEST(HostileFramesTest, NamesFramesWithoutSessionOrToken) {
  FaultInjectedRun run;
  ProtoOnlyWorker stranger(run.address(), "hasty", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  v1::Token token;
  token.set_step(FaultInjectedRun::kHeldStep);
  token.set_slot_count(4);
  v1::StepRequest unknown = stranger.AskForToken();
  unknown.set_session_id(987654321);
  v1::StepRequest old = stranger.AskForToken();
  old.set_generation(old.generation() - 1);
  const std::vector<std::pair<v1::StepRequest, std::string>> cases = {
      {unknown, "session 987654321 of generation 1 is unknown"},
      {old, "of generation 0 is unknown; the chief's generation is 1"},
      {v1::StepRequest(), "session 0 of generation 0 is unknown"},
      {stranger.NewRequest(token),
       "a contribution to slots [0,4) of step 20 without a token for it; the session's last token is none"},
  };
  for (const auto& hasty : cases) {
    grpc::ClientContext context;
    const auto stream = stranger.NewStream(&context);
    stream->Write(hasty.first);
    EXPECT_FALSE(stranger.ReadToken(stream.get(), &token));
    EXPECT_THAT(stream->Finish().error_message(), HasSubstr(hasty.second));
  }
  run.ExpectSameWeights();
}

TEST(HostileFramesTest, RefusesAnotherModelByFirstDifference) {
  FaultInjectedRun run;
  ProtoOnlyWorker stranger(run.address(), "other", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  const auto open = [&](std::function<void(v1::ModelSpec*)> change) {
    v1::OpenSessionRequest request = stranger.open_request();
    change(request.mutable_model());
    v1::OpenSessionReply reply;
    grpc::ClientContext context;
    const grpc::Status status = stranger.stub()->OpenSession(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    return status.error_message();
  };
  EXPECT_THAT(open([](v1::ModelSpec* m) { m->mutable_variables(0)->set_name("other"); }),
              HasSubstr("variable 1 is \"other\" (12, 6000) in other, \"hidden/kernel\" (12, 6000) in worker-0"));
  EXPECT_THAT(open([](v1::ModelSpec* m) { m->mutable_variables(1)->set_dtype(v1::DT_INT64); }),
              HasSubstr("variables[1].dtype"));
  EXPECT_THAT(open([](v1::ModelSpec* m) { m->mutable_variables(0)->set_shape(0, -1); }),
              HasSubstr("variable 1 is \"hidden/kernel\" (-1, 6000) in other"));
  EXPECT_THAT(open([](v1::ModelSpec* m) { m->mutable_variables()->RemoveLast(); }),
              HasSubstr("variable 8 is none in other"));
  EXPECT_THAT(open([](v1::ModelSpec* m) { m->Clear(); }), HasSubstr("variable 1 is none in other"));
  run.ExpectSameWeights();
}

TEST(HostileFramesTest, AHalfContributionCostsALeaseAtMost) {
  FaultInjectedRun run;
  ProtoOnlyWorker stranger(run.address(), "half", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  grpc::ClientContext context;
  const auto stream = stranger.NewStream(&context);
  ASSERT_TRUE(stream->Write(stranger.AskForToken()));
  v1::Token token;
  ASSERT_TRUE(stranger.ReadToken(stream.get(), &token));
  v1::StepRequest half = stranger.Compute(token);
  v1::StepRequest rest = half;
  half.set_end(false);
  half.mutable_gradient()->DeleteSubrange(1, half.gradient_size() - 1);
  rest.clear_report();
  rest.mutable_gradient()->DeleteSubrange(0, 1);
  // The status lists "half" before "worker-0".
  const auto received = [&run] { return run.chief()->GetStatus().worker(0).bytes_received(); };
  ASSERT_EQ(run.chief()->GetStatus().worker(0).name(), "half");
  const int64_t asked = received();
  ASSERT_TRUE(stream->Write(half));
  while (received() == asked) std::this_thread::yield();
  run.Release();
  while (run.chief()->GetStatus().global_step() < FaultInjectedRun::kHeldStep + 2) std::this_thread::yield();
  // A late contribution is dropped, but is not an error.
  ASSERT_TRUE(stream->Write(rest));
  while (stranger.results().empty() && stranger.ReadToken(stream.get(), &token)) {
  }
  EXPECT_EQ(stranger.results().count(v1::CONTRIBUTION_DUPLICATE) + stranger.results().count(v1::CONTRIBUTION_ACCEPTED),
            1u);
  context.TryCancel();
  run.ExpectSameWeights();
}

TEST(HostileFramesTest, AWorkerThatNeverReadsBlocksNoOthers) {
  FaultInjectedRun run;
  std::vector<std::unique_ptr<ProtoOnlyWorker>> strangers;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
  for (uint64_t i = 0; i < 3; ++i) {
    strangers.push_back(std::make_unique<ProtoOnlyWorker>(run.address(), "deaf", i));
    ASSERT_NO_FATAL_FAILURE(strangers.back()->Open());
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(strangers.back()->NewStream(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(strangers.back()->AskForToken()));
  }
  run.ExpectSameWeights();
  for (const auto& context : contexts) context->TryCancel();
}

}  // namespace
}  // namespace lockstep

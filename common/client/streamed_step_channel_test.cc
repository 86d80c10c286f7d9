#include "lockstep/common/client/streamed_step_channel.h"

#include <deque>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// A script for ScriptedStream: the replies to play back, one list per Receive. It also records the frames that were
// sent.
struct Script {
  FrameSizes sizes;
  std::deque<std::vector<StepReplyFrame>> replies;
  // Replies that arrive while frames wait to be sent.
  std::vector<StepReplyFrame> early;
  absl::Status send_status;

  std::vector<StepFrame> sent;
  // True if the stream keeps the memory of pieces alive after Send returns.
  bool hold_memory = false;
  int drains = 0, closes = 0, cancelled_waits = 0, cancels = 0;
  bool wait_cancelled = false;
};

class ScriptedStream : public StepStream {
 public:
  explicit ScriptedStream(Script* script) : script_(*script) {}

  FrameSizes sizes() const override { return script_.sizes; }
  absl::Status Send(const StepFrame& frame) override {
    if (!script_.send_status.ok()) return script_.send_status;
    script_.sent.push_back(frame);
    for (StepPiece& piece : script_.sent.back().gradients) {
      if (!script_.hold_memory) piece.owner.reset();
    }
    return absl::OkStatus();
  }
  absl::Status Poll(Receiver* receiver) override {
    for (const StepReplyFrame& reply : std::exchange(script_.early, {})) {
      const auto more = receiver->OnReply(reply);
      if (!more.ok()) return more.status();
    }
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Receive(Receiver* receiver) override {
    if (script_.wait_cancelled) return false;
    if (script_.replies.empty()) return absl::UnavailableError("the script is over");
    std::vector<StepReplyFrame> replies = std::move(script_.replies.front());
    script_.replies.pop_front();
    for (size_t i = 0; i < replies.size(); ++i) {
      const auto more = receiver->OnReply(replies[i]);
      if (!more.ok()) return more.status();
      EXPECT_EQ(*more, i + 1 < replies.size()) << "reading on at reply " << i;
    }
    return true;
  }
  void Drain() override { ++script_.drains; }
  absl::Status Close() override {
    ++script_.closes;
    return absl::UnavailableError("closed");
  }
  void CancelWait() override { ++script_.cancelled_waits; }
  void Cancel() override { ++script_.cancels; }

 private:
  Script& script_;
};

const float kValues[] = {7, 1, 2};

class StreamedStepChannelTest : public ::testing::Test {
 protected:
  // Opens a stream for a model with the variables a[2] and b[1].
  void Open(const ChiefClient::StepOptions& options = {}) {
    v1::ModelSpec model;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
             variables { name: "b" dtype: DT_FLOAT shape: 1 trainable: true })pb",
        &model));
    channel_ = std::make_unique<StreamedStepChannel>(std::make_unique<ScriptedStream>(&script_), options,
                                                     ParameterLayout::Create(model).value());
  }
  static StepReplyFrame Values(int64_t step) {
    StepReplyFrame reply;
    reply.values_step = step;
    reply.values.resize(2);
    reply.values[0].content = FloatChunks(kValues, 2);
    reply.values[1].variable = 1;
    reply.values[1].content = FloatChunks(kValues + 2, 1);
    return reply;
  }
  static StepReplyFrame TokenFor(int64_t step, int64_t first_slot = 0) {
    StepReplyFrame reply;
    reply.token.emplace();
    reply.token->set_step(step);
    reply.token->set_first_slot(first_slot);
    reply.token->set_slot_count(1);
    return reply;
  }
  static StepReplyFrame Finished(const std::string& message) {
    StepReplyFrame reply;
    reply.finished = true;
    reply.finish_message = message;
    return reply;
  }

  Script script_;
  std::unique_ptr<StreamedStepChannel> channel_;
};

TEST_F(StreamedStepChannelTest, SendsEndAndTokenRequestInOneFrame) {
  script_.sizes.frame_bytes = 1000;
  script_.replies = {{Values(7), TokenFor(7, 3)}, {Finished("done")}};
  ChiefClient::StepOptions options;
  options.session_id = 5;
  options.generation = 6;
  Open(options);
  auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.first_slot(), 3);
  EXPECT_EQ(assignment->values[0][0], 7);
  EXPECT_EQ(assignment->values[1][0], 2);
  ASSERT_TRUE(channel_->SendReports({v1::SlotReport()}).ok());
  channel_->GradientBuffer(1)[0] = -1;
  ASSERT_TRUE(channel_->SendGradient(1).ok());
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_TRUE(assignment->finished);
  EXPECT_EQ(assignment->finish_message, "done");
  ASSERT_EQ(script_.sent.size(), 2u);
  EXPECT_EQ(script_.sent[0].block.count, 0);
  EXPECT_EQ(script_.sent[0].session_id, 5u);
  EXPECT_EQ(script_.sent[0].generation, 6);
  EXPECT_EQ(script_.sent[1].step, 7);
  EXPECT_EQ(script_.sent[1].block.first, 3);
  EXPECT_EQ(script_.sent[1].reports.size(), 1u);
  EXPECT_EQ(script_.sent[1].gradients.size(), 2u);
  EXPECT_TRUE(script_.sent[1].end);
}

// At step 0 a worker creates the estimates itself, so a token of a few bytes could make it allocate any amount of
// memory.
TEST_F(StreamedStepChannelTest, RefusesATokenForSlotsThatThereAreNot) {
  for (const auto& [first, count, text] : std::vector<std::tuple<int64_t, int64_t, std::string>>{
           {0, 5, "a token for 5 slots of step 0 from 0 on; a step has 4"},
           {3, 2, "from 3 on"},
           {4, 1, "from 4 on"},
           {-1, 1, "from -1 on"},
           {1, std::numeric_limits<int64_t>::max(), "a token for 9223372036854775807 slots"},
           {3, 1, ""}}) {
    StepReplyFrame token = TokenFor(0, first);
    token.token->set_slot_count(count);
    script_.replies = {{Values(0), token}};
    ChiefClient::StepOptions options;
    options.slots = 4;
    options.compression.top_k = 0.5;
    Open(options);
    const auto status = channel_->AwaitToken().status();
    EXPECT_EQ(absl::IsInvalidArgument(status), !text.empty()) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST_F(StreamedStepChannelTest, CutsLongGradientsToTheStreamsSize) {
  script_.sizes.piece_elements = 1;
  script_.replies = {{Values(7), TokenFor(7)}};
  Open();
  ASSERT_TRUE(channel_->AwaitToken().ok());
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  ASSERT_EQ(script_.sent.size(), 3u) << "each leaves at once";
  EXPECT_EQ(script_.sent[1].gradients[0].offset, 0);
  EXPECT_EQ(script_.sent[2].gradients[0].offset, 1);
  EXPECT_EQ(script_.sent[2].gradients[0].content.size(), 1);
}

TEST_F(StreamedStepChannelTest, KeepsValuesReceivedWhileSending) {
  script_.replies = {{Values(7), TokenFor(7)}, {TokenFor(8)}};
  script_.early = {Values(8)};
  Open();
  ASSERT_TRUE(channel_->AwaitToken().ok());
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  const auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.step(), 8);
}

TEST_F(StreamedStepChannelTest, ReportsAResultOnceWithTheNextToken) {
  StepReplyFrame result = Values(8);
  result.result = v1::CONTRIBUTION_DUPLICATE;
  script_.replies = {{Values(7), TokenFor(7)}, {result, TokenFor(8)}, {TokenFor(8)}};
  Open();
  EXPECT_EQ(channel_->AwaitToken()->result, v1::CONTRIBUTION_NONE);
  EXPECT_EQ(channel_->AwaitToken()->result, v1::CONTRIBUTION_DUPLICATE);
  EXPECT_EQ(channel_->AwaitToken()->result, v1::CONTRIBUTION_NONE);
}

TEST_F(StreamedStepChannelTest, DoesNotOverwriteGradientsBeingSent) {
  script_.hold_memory = true;
  script_.replies = {{Values(7), TokenFor(7)}, {Values(8), TokenFor(8)}};
  Open();
  ASSERT_TRUE(channel_->AwaitToken().ok());
  const float* const first = channel_->GradientBuffer(0);
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  const auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok());
  EXPECT_NE(assignment->values[0], first);
  EXPECT_NE(channel_->GradientBuffer(0), first);
}

// Because a value is received into the memory of a sent gradient, a worker needs only two buffers per variable, not
// three.
TEST_F(StreamedStepChannelTest, ReceivesAValueInItsGradientsPlace) {
  for (int64_t step = 7; step < 12; ++step) script_.replies.push_back({Values(step), TokenFor(step)});
  Open();
  auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok());
  const float* values = assignment->values[0];
  const float* gradients = channel_->GradientBuffer(0);
  for (int64_t step = 8; step < 12; ++step) {
    ASSERT_TRUE(channel_->SendGradient(0).ok());
    assignment = channel_->AwaitToken();
    ASSERT_TRUE(assignment.ok());
    EXPECT_EQ(assignment->values[0], gradients) << step;
    EXPECT_EQ(channel_->GradientBuffer(0), values) << step;
    std::swap(values, gradients);
  }
}

TEST_F(StreamedStepChannelTest, AnErrorOfTheStreamStays) {
  script_.replies = {{Values(7), TokenFor(7)}};
  Open();
  ASSERT_TRUE(channel_->AwaitToken().ok());
  script_.send_status = absl::AbortedError("generation 2 is over");
  EXPECT_EQ(channel_->SendGradient(0), script_.send_status);
  const absl::Status first = std::exchange(script_.send_status, absl::OkStatus());
  EXPECT_EQ(channel_->SendGradient(1), first);
  EXPECT_EQ(channel_->SendReports({v1::SlotReport()}), first);
  EXPECT_EQ(channel_->AwaitToken().status(), first);
  channel_->Leave();
  EXPECT_EQ(script_.drains, 0) << "nobody hears a goodbye";
}

// The next token would replace the values of the current one.
TEST_F(StreamedStepChannelTest, RefusesAnUnrequestedToken) {
  script_.replies = {{Values(7), TokenFor(7)}};
  script_.early = {Values(8), TokenFor(8)};
  Open();
  const auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok());
  const absl::Status status = channel_->SendGradient(0);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a token for step 8 that was not asked for"));
  EXPECT_EQ(assignment->values[0][0], 7);
  EXPECT_EQ(assignment->values[1][0], 2);
}

TEST_F(StreamedStepChannelTest, ATokenOfNoSlotsIsRefused) {
  StepReplyFrame reply = TokenFor(7);
  reply.token->set_slot_count(0);
  script_.replies = {{Values(7), reply}};
  Open();
  const absl::Status status = channel_->AwaitToken().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a token for step 7 without slots"));
}

TEST_F(StreamedStepChannelTest, ACancelledWaitEndsTheContribution) {
  script_.replies = {{Values(7), TokenFor(7)}};
  Open();
  ASSERT_TRUE(channel_->AwaitToken().ok());
  channel_->CancelWait();
  EXPECT_EQ(script_.cancelled_waits, 1);
  script_.wait_cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(channel_->AwaitToken().status()));
  EXPECT_TRUE(script_.sent.back().end);
  channel_->Leave();
  EXPECT_TRUE(script_.sent.back().leave);
  EXPECT_EQ(script_.drains, 1);
  EXPECT_EQ(script_.closes, 1);
  EXPECT_FALSE(channel_->AwaitToken().ok());
}

TEST_F(StreamedStepChannelTest, CopiesHandedOverEstimatesUnlessHeld) {
  ChiefClient::StepOptions options;
  options.compression.top_k = 0.5;
  AlignedBuffer estimate(32 * sizeof(float)), other(32 * sizeof(float));
  for (int i = 0; i < 32; ++i) {
    estimate.as<float>()[i] = 3;
    other.as<float>()[i] = 4;
  }
  StepReplyFrame with_estimates = TokenFor(7), again = TokenFor(8);
  with_estimates.handed_over.emplace().flat = std::make_shared<AlignedBuffer>(32 * sizeof(float));
  with_estimates.handed_over->estimates = {&estimate};
  again.handed_over = with_estimates.handed_over;
  again.handed_over->estimates = {&other};
  script_.replies = {{with_estimates}, {again}};
  Open(options);
  auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  ASSERT_EQ(assignment->estimates.size(), 1u);
  EXPECT_EQ(assignment->estimates[0][0], 3);
  assignment->estimates[0][0] = 5;  // brought to the next step
  assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->estimates[0][0], 5);
}

}  // namespace
}  // namespace lockstep

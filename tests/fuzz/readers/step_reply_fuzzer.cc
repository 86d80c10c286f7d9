#include <cstring>
#include <utility>

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace lockstep {
namespace {

// A stream whose replies are the messages in an input, each preceded by its length.
class InputStream : public StepStream {
 public:
  explicit InputStream(FuzzInput input) : input_(input) {}

  FrameSizes sizes() const override { return {}; }
  absl::Status Send(const StepFrame&) override { return absl::OkStatus(); }
  // A reply may arrive while a contribution is sent.
  absl::Status Poll(Receiver* receiver) override { return input_.empty() ? absl::OkStatus() : Next(receiver).status(); }
  absl::StatusOr<bool> Receive(Receiver* receiver) override {
    while (!input_.empty()) {
      const absl::StatusOr<bool> more = Next(receiver);
      if (!more.ok()) return more.status();
      if (!*more) return true;
    }
    return Close();
  }
  void Drain() override {}
  absl::Status Close() override { return absl::UnavailableError("the input ends"); }
  void CancelWait() override {}
  void Cancel() override {}

 private:
  absl::StatusOr<bool> Next(Receiver* receiver) {
    const absl::string_view message = input_.TakeSized();
    const grpc::Slice slice(message.data(), message.size());
    Decoded<StepReplyFrame> decoded;
    RETURN_IF_ERROR(DecodeStepReply(grpc::ByteBuffer(&slice, 1), &decoded));
    return receiver->OnReply(decoded.frame);
  }

  FuzzInput input_;
};

const v1::ModelSpec& Model() {
  static const auto* const model = [] {
    auto* const parsed = new v1::ModelSpec;
    CHECK(google::protobuf::TextFormat::ParseFromString(
        R"pb(variables { name: "a" dtype: DT_FLOAT shape: 3 trainable: true }
             variables { name: "mean" dtype: DT_FLOAT shape: 2 }
             variables { name: "b" dtype: DT_FLOAT trainable: true }
             variables { name: "fixed" dtype: DT_FLOAT shape: 2 }
             update_ops { variable: "mean" })pb",
        parsed));
    return parsed;
  }();
  return *model;
}

// Reads every element of an array that the channel lets a worker read.
void Touch(const float* values, int64_t elements) {
  std::vector<float> copy(static_cast<size_t>(elements));
  std::memcpy(copy.data(), values, copy.size() * sizeof(float));
}

// Runs an input, which is a byte (1: 16-bit values, 2: compressed gradients, 4: a gradient is sent for each token)
// followed by the replies.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const uint8_t bits = in.TakeByte();
  ChiefClient::StepOptions options;
  options.session_id = 1;
  options.slots = 4;
  if (bits & 1) options.compression.values = v1::DT_BFLOAT16;
  if (bits & 2) options.compression.top_k = 0.5;
  const ParameterLayout layout = ParameterLayout::Create(Model()).value();
  StreamedStepChannel channel(std::make_unique<InputStream>(in), options, layout);
  for (int tokens = 0;; ++tokens) {
    const auto assignment = channel.AwaitToken();
    if (!assignment.ok()) return tokens > 0 && absl::IsUnavailable(assignment.status());
    if (assignment->finished) return true;
    CHECK_GT(assignment->token.slot_count(), 0);
    CHECK_EQ(assignment->values.size(), layout.variables().size());
    for (size_t i = 0; i < assignment->values.size(); ++i) {
      Touch(assignment->values[i], layout.variables()[i].elements);
    }
    if (bits & 2) CHECK_EQ(assignment->estimates.size(), static_cast<size_t>(assignment->token.slot_count()));
    for (const float* const estimate : assignment->estimates) Touch(estimate, layout.trained_elements());
    if (!(bits & 4)) continue;
    // The token's values must stay unchanged, whatever arrives in the meantime.
    std::vector<std::vector<float>> before;
    for (size_t i = 0; i < assignment->values.size(); ++i) {
      before.emplace_back(assignment->values[i], assignment->values[i] + layout.variables()[i].elements);
    }
    std::memset(channel.GradientBuffer(0), 0xff, before[0].size() * sizeof(float));
    const absl::Status sent = channel.SendGradient(0);
    for (size_t i = 0; i < before.size(); ++i) {
      CHECK(std::memcmp(before[i].data(), assignment->values[i], before[i].size() * sizeof(float)) == 0);
    }
    if (!sent.ok()) return false;
  }
}

std::string Message(const StepReplyFrame& reply) {
  std::vector<grpc::Slice> slices;
  CHECK(EncodeStepReply(reply).Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return Sized(bytes);
}

std::vector<std::string> Seeds() {
  const float numbers[] = {1, 2, 3};
  const uint16_t rounded[] = {0x3f80, 0x4000, 0};
  const auto piece = [](int64_t variable, FloatChunks content) {
    StepPiece made;
    made.variable = variable;
    made.content = std::move(content);
    return made;
  };
  StepReplyFrame values;
  values.values_step = 4;
  values.values = {piece(0, {numbers, 3}), piece(1, {numbers, 2}), piece(2, {numbers, 1}), piece(3, {numbers, 2})};
  StepReplyFrame rounded_values = values;
  rounded_values.values[0].content = FloatChunks(v1::DT_BFLOAT16, rounded, 3);
  rounded_values.values[2].content = FloatChunks(v1::DT_BFLOAT16, rounded, 1);
  StepReplyFrame estimates;
  estimates.estimates_step = 4;
  for (const int64_t slot : {2, 3}) {
    for (const int64_t variable : {0, 2}) {
      estimates.estimates.push_back(piece(variable, {numbers, variable == 0 ? 3 : 1}));
      estimates.estimates.back().slot = slot;
    }
  }
  StepReplyFrame token;
  token.result = v1::CONTRIBUTION_ACCEPTED;
  token.token.emplace();
  token.token->set_step(4);
  token.token->set_first_slot(2);
  token.token->set_slot_count(2);
  StepReplyFrame first_values = values, first_token = token;
  first_values.values_step = 0;
  first_token.token->set_step(0);
  StepReplyFrame finished;
  finished.finished = true;
  finished.finish_message = "done";
  const auto joined = [](char bits, const std::vector<StepReplyFrame>& replies) {
    std::string seed(1, bits);
    for (const StepReplyFrame& reply : replies) seed += Message(reply);
    return seed;
  };
  StepReplyFrame next_values = values, next_token = token;
  next_values.values_step = 5;
  next_values.values.pop_back();  // a worker already has the constant variable
  next_token.token->set_step(5);
  return {joined('\4', {values, token, next_values, next_token, finished}), joined('\0', {values, token, finished}),
          joined('\1', {rounded_values, token, token}), joined('\2', {values, estimates, token, finished}),
          joined('\2', {first_values, first_token, finished})};
}

const FuzzTarget kTarget({"step_reply", kProtobufReserve + (256 << 10), 200, Run, Seeds});

}  // namespace
}  // namespace lockstep

#include "tests/testing/stranger.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "worker/session/configured_task.h"

namespace lockstep {
namespace {

// The gradients and the report of one slot, as the model hands them out.
class SlotResult : public GradientSink {
 public:
  SlotResult(const ModelSpec& spec, int64_t slot) {
    report.set_slot(slot);
    for (const VariableSpec& variable : spec.variables()) {
      int64_t elements = 1;
      for (const int64_t size : variable.shape()) elements *= size;
      gradients.emplace_back(static_cast<size_t>(elements) * sizeof(float));
    }
  }
  bool OnLoss(float loss) override {
    report.set_loss(loss);
    return true;
  }
  void OnUpdate(int, absl::Span<const float> value) override {
    report.add_update(std::string(reinterpret_cast<const char*>(value.data()), value.size() * sizeof(float)));
  }
  float* GradientBuffer(int variable) override { return gradients[variable].as<float>(); }
  void OnGradient(int) override {}

  SlotReport report;
  std::vector<AlignedBuffer> gradients;
};

// bfloat16 by the book: the upper half of a float, rounded to the nearest, ties to even. The numbers here are finite.
uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float FromBfloat16(uint16_t number) {
  const uint32_t bits = static_cast<uint32_t>(number) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void RoundToBfloat16(SlotResult* slot) {
  for (AlignedBuffer& gradient : slot->gradients) {
    for (size_t i = 0; i < gradient.size() / sizeof(float); ++i) {
      gradient.as<float>()[i] = FromBfloat16(ToBfloat16(gradient.as<float>()[i]));
    }
  }
}

// The floats of `content` as bfloat16.
std::string EncodeBfloat16(const std::string& content) {
  std::string encoded;
  for (size_t at = 0; at < content.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, content.data() + at, sizeof(value));
    const uint16_t number = ToBfloat16(value);
    encoded.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return encoded;
}

// The reverse.
std::string DecodeBfloat16(const std::string& content) {
  std::string decoded;
  for (size_t at = 0; at < content.size(); at += sizeof(uint16_t)) {
    uint16_t number;
    std::memcpy(&number, content.data() + at, sizeof(number));
    const float value = FromBfloat16(number);
    decoded.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return decoded;
}

// The sum over [first, first + size) cut at `end` along the binary tree, into the first slot's gradients; with
// `bfloat16` each gradient and each sum is rounded.
void SumTree(std::vector<SlotResult>* slots, int64_t first, int64_t size, int64_t end, bool bfloat16) {
  if (size == 1) {
    if (bfloat16) RoundToBfloat16(&(*slots)[first]);
    return;
  }
  SumTree(slots, first, size / 2, end, bfloat16);
  if (first + size / 2 >= end) return;
  SumTree(slots, first + size / 2, size / 2, end, bfloat16);
  for (size_t v = 0; v < (*slots)[first].gradients.size(); ++v) {
    AlignedBuffer& left = (*slots)[first].gradients[v];
    const AlignedBuffer& right = (*slots)[first + size / 2].gradients[v];
    for (size_t i = 0; i < left.size() / sizeof(float); ++i) left.as<float>()[i] += right.as<float>()[i];
  }
  if (bfloat16) RoundToBfloat16(&(*slots)[first]);
}

}  // namespace

Stranger::Stranger(const std::string& address, std::string name, uint64_t incarnation)
    : stub_(ChiefService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
  open_.set_worker(std::move(name));
  open_.set_incarnation(incarnation);
}

void Stranger::Open() {
  GetRunReply run;
  grpc::ClientContext run_context;
  ASSERT_TRUE(stub_->GetRun(&run_context, GetRunRequest(), &run).ok());
  config_ = run.config();
  auto task = MakeConfiguredTask(config_, ConfiguredTaskOptions());
  ASSERT_TRUE(task.ok()) << task.status();
  task_ = *std::move(task);
  *open_.mutable_model() = task_.model->spec();
  if (task_.data) *open_.mutable_data() = *task_.data;
  grpc::Status status;
  do {  // while the chief makes the model that another worker has declared
    grpc::ClientContext open_context;
    status = stub_->OpenSession(&open_context, open_, &session_);
  } while (status.error_code() == grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(session_.epoch(), run.epoch());
}

StepRequest Stranger::NewRequest(const Token& token) const {
  StepRequest request;
  request.set_session_id(session_.session_id());
  request.set_epoch(session_.epoch());
  request.set_step(token.step());
  request.set_first_slot(token.first_slot());
  request.set_slot_count(token.slot_count());
  return request;
}

StepRequest Stranger::AskForToken() const {
  StepRequest request = NewRequest(Token());
  request.set_end(true);
  return request;
}

bool Stranger::ReadToken(Stream* stream, Token* token) {
  while (stream->Read(&reply_)) {
    TakeValues(reply_);
    if (reply_.fate() != FATE_NONE) ++fates_[reply_.fate()];
    if (reply_.finished() || testing::Test::HasFatalFailure()) return false;
    if (!reply_.has_token()) continue;
    *token = reply_.token();
    return true;
  }
  return false;
}

void Stranger::TakeValues(const StepReply& reply) {
  if (reply.value().empty()) return;
  auto& values = values_[reply.values_step()];
  if (values.empty()) values = SlotResult(model(), 0).gradients;
  for (const TensorPiece& piece : reply.value()) {
    ASSERT_LT(piece.variable(), values.size());
    AlignedBuffer& variable = values[piece.variable()];
    ASSERT_EQ(piece.offset() % session_.piece_elements(), 0u);
    const std::string content = piece.dtype() == DT_BFLOAT16 ? DecodeBfloat16(piece.content()) : piece.content();
    ASSERT_LE(piece.offset() * sizeof(float) + content.size(), variable.size());
    std::memcpy(variable.as<float>() + piece.offset(), content.data(), content.size());
  }
}

StepRequest Stranger::Compute(const Token& token) {
  std::vector<const float*> values;
  for (const AlignedBuffer& variable : values_.at(token.step())) values.push_back(variable.as<float>());
  StepRequest request = NewRequest(token);
  std::vector<SlotResult> slots;
  for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
    slots.emplace_back(model(), slot);
    const auto batch = task_.batches->Get(token.step(), slot);
    EXPECT_TRUE(batch.ok()) << batch.status();
    SlotKey key;
    key.seed = config_.training().seed();
    key.step = token.step();
    key.slot = slot;
    EXPECT_TRUE(task_.model->ComputeGradients(values, *batch, key, &slots.back()).ok());
    *request.add_report() = slots.back().report;
  }
  values_.erase(values_.begin(), values_.find(token.step()));
  const bool bfloat16 = config_.compression().gradients() == CompressionConfig::BFLOAT16;
  SumTree(&slots, 0, int64_t{1} << 20, token.slot_count(), bfloat16);
  for (int v = 0; v < model().variables_size(); ++v) {
    if (!model().variables(v).trainable()) continue;
    const AlignedBuffer& gradient = slots[0].gradients[v];
    const uint64_t piece_bytes = session_.piece_elements() * sizeof(float);
    for (uint64_t at = 0; at < gradient.size(); at += piece_bytes) {
      TensorPiece* const piece = request.add_gradient();
      piece->set_variable(static_cast<uint32_t>(v));
      piece->set_offset(at / sizeof(float));
      piece->set_content(gradient.data() + at, std::min<uint64_t>(piece_bytes, gradient.size() - at));
      if (!bfloat16) continue;
      piece->set_dtype(DT_BFLOAT16);
      piece->set_content(EncodeBfloat16(piece->content()));
    }
  }
  request.set_end(true);
  return request;
}

void Stranger::Train() {
  grpc::ClientContext context;
  const auto stream = NewStream(&context);
  ASSERT_TRUE(stream->Write(AskForToken()));
  for (Token token; ReadToken(stream.get(), &token);) {
    const StepRequest whole = Compute(token);
    // The reports in a frame of their own, then one frame for each piece, then the end.
    StepRequest reports = NewRequest(token);
    *reports.mutable_report() = whole.report();
    ASSERT_TRUE(stream->Write(reports));
    for (const TensorPiece& piece : whole.gradient()) {
      StepRequest frame = NewRequest(token);
      *frame.add_gradient() = piece;
      ASSERT_TRUE(stream->Write(frame));
    }
    StepRequest end = NewRequest(token);
    end.set_end(true);
    ASSERT_TRUE(stream->Write(end));
    if (token.step() % 10 == 0) CallTheRest(token.step());
    if (testing::Test::HasFatalFailure()) return;
  }
  ASSERT_TRUE(reply_.finished());
  EXPECT_EQ(reply_.finish_message(), "");
  StepRequest leave = NewRequest(Token());
  leave.set_leave(true);
  EXPECT_TRUE(stream->Write(leave));
  EXPECT_FALSE(stream->Read(&reply_)) << "the chief ends the stream";
  EXPECT_TRUE(stream->Finish().ok());
}

void Stranger::CallTheRest(int64_t step) {
  HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session_.session_id());
  heartbeat.set_epoch(session_.epoch());
  HeartbeatReply beat;
  grpc::ClientContext heartbeat_context;
  ASSERT_TRUE(stub_->Heartbeat(&heartbeat_context, heartbeat, &beat).ok());
  EXPECT_GE(beat.global_step(), step);
  RunStatus status;
  grpc::ClientContext status_context;
  ASSERT_TRUE(stub_->GetStatus(&status_context, GetStatusRequest(), &status).ok());
  ASSERT_EQ(status.worker_size(), 1);
  EXPECT_EQ(status.worker(0).name(), open_.worker());
}

}  // namespace lockstep
